"""Makes the texts of the sources of a request: fetches addresses and evaluates Jsonnet."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from parser_svc.sources import Encoding, Source, encoding_of, size
from services.addresses import without_user
from services.core import source_names
from services.core.errors import EncodingInvalid
from services.fetching import Fetcher
from services.jsonnet.evaluation import EvaluationLimits, evaluate
from services.settings import Bounds, Settings
from services.syntax.usage import Usage

FETCHES = 8
EVALUATIONS = 2
"""How many run at the same time, of all requests. Each evaluation may need a core and all memory of its bound."""

GATHERED_PACKAGES = 8
"""
How many packages whose texts the parser makes exist at the same time. A short request can have it fetch or evaluate as
much text as a package may have.
"""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """
    A source as a request has it.

    Attributes:
        name: Its name; empty: it has none.
        encoding: Its encoding; None: the request has none.
        text: The text; ignored if there is an address.
        url: The address of the text; empty: *text* is the text.
        generated: Whether a program wrote the text, so that lines and columns are not reported.
    """

    name: str = ""
    encoding: Encoding | None = None
    text: str = ""
    url: str = ""
    generated: bool = False


@dataclass(frozen=True, slots=True)
class Gatherer:
    """
    Makes the sources of packages within the limits that the operator sets.

    Attributes:
        bounds: The limits of one package.
        allow_jsonnet: Whether programs are evaluated.
        libraries: Folders whose files programs can import; the first one is searched first.
        fetcher: Fetches the texts at addresses.
    """

    bounds: Bounds = field(default_factory=Bounds)
    allow_jsonnet: bool = False
    libraries: Sequence[Path] = ()
    fetcher: Fetcher = field(default_factory=Fetcher)
    _packages: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(GATHERED_PACKAGES), init=False)
    _fetches: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(FETCHES), init=False)
    _evaluations: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(EVALUATIONS), init=False)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The gatherer that the settings describe."""
        fetcher = Fetcher(may_ask=lambda _: True) if settings.allow_private_addresses else Fetcher()
        return cls(settings.bounds, settings.allow_jsonnet, settings.libraries, fetcher)

    @asynccontextmanager
    async def place(self, sources: Sequence[SourceSpec]) -> AsyncIterator[None]:
        """
        Open the block when *sources* may be gathered; close it when their texts are no longer needed.

        Packages with texts of the request only do not wait here: a slow address must not delay them.
        """
        if any(source.url or _encoding(source) is Encoding.JSONNET for source in sources):
            async with self._packages:
                yield
        else:
            yield

    async def gather(self, sources: Sequence[SourceSpec]) -> list[Source]:
        """
        Make the sources of one package.

        Returns:
            The sources in the same order; of a program, the JSON that it evaluates to.

        Raises:
            EncodingInvalid: A source is Jsonnet, and the operator does not allow it; then nothing was fetched.
            SourceUnreadable: The text at an address cannot be read.
            SourceUndecodable: A source is no UTF-8 text, or no valid program.
            SourceTooLarge: The sources exceed a bound.
        """
        usage = Usage(self.bounds, asyncio.get_running_loop().time)
        for source in sources:
            if _encoding(source) is Encoding.JSONNET and not self.allow_jsonnet:
                remedy = (
                    "the operator of the parser can allow it with PKGER_ALLOW_JSONNET=1;"
                    " or evaluate it first and send the JSON that it gives"
                )
                raise EncodingInvalid(_name(source), "jsonnet", remedy)
            if not source.url:
                usage.take_bytes(_name(source), size(_name(source), source.text))
        tasks = [asyncio.ensure_future(self._source(source, usage)) for source in sources]
        try:
            # Of several errors, the first in the order of the sources is raised, not the first in time.
            return [await task for task in tasks]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _source(self, source: SourceSpec, usage: Usage) -> Source:
        name, text, encoding = _name(source), source.text, _encoding(source)
        if source.url:
            async with self._fetches:
                text = await self.fetcher.fetch(source.url, usage)
        if encoding is not Encoding.JSONNET:
            return Source(name, text, encoding, source.generated)
        async with self._evaluations:
            usage.check_time(name)
            limits = EvaluationLimits(self.bounds.bytes, self.bounds.memory, usage.seconds_left)
            result = await evaluate(text, name, folder=None, limits=limits, libraries=self.libraries)
        usage.take_bytes(name, size(name, result))
        return Source(name, result, Encoding.JSON, generated=True)


def _name(source: SourceSpec) -> str:
    return source.name or without_user(source.url) or source_names.TEXT


def _encoding(source: SourceSpec) -> Encoding | None:
    by_address, by_name = encoding_of(source.url), encoding_of(source.name)
    # An address with an ending of Jsonnet is a program, whatever the request says (docs/reference/package-format.md,
    # "Jsonnet").
    if by_address is Encoding.JSONNET:
        return Encoding.JSONNET
    return source.encoding or by_address or by_name
