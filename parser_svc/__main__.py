"""The parser as a process: ``python -m parser_svc``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from parser_svc.document_cache import DocumentCache
from parser_svc.servicer import SERVICE, register
from parser_svc.source_texts import Gatherer
from services.rpc.process import Service, run_process
from services.settings import Settings


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Service]:
    """The parser with its cache of documents, if the settings give it memory."""
    cache = DocumentCache(settings.document_cache) if settings.document_cache else None
    yield Service([register(Gatherer.of(settings), cache)], [SERVICE])


if __name__ == "__main__":
    run_process("parser", opened)
