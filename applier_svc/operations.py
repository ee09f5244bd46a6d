"""Operations of this service: started, cancelled, waited for."""

import asyncio
import contextvars
import logging
import math
import os
import secrets
import socket
import time

from google.protobuf.timestamp_pb2 import Timestamp

from applier_svc.feed import Feed
from applier_svc.operation import Operation, Peers, Wish
from services.core.errors import Internal, OperationNotFound, PkgerError, ServiceUnavailable
from services.rpc.call import deadline, request_id

log = logging.getLogger("pkger.applier")


class Operations:
    """The running operations. They belong to the service: a caller that goes away stops none of them."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._holder = f"{socket.gethostname()}/{os.getpid()}"
        self._running: dict[str, tuple[Operation, asyncio.Task[None]]] = {}
        self._draining = False

    def start(self, wish: Wish) -> Feed:
        """
        Start an operation and return its feed.

        Raises:
            ServiceUnavailable: The service is about to end.
        """
        if self._draining:
            raise ServiceUnavailable("applier", self._holder, "it is shutting down")
        name = f"operations/{secrets.token_hex(8)}"
        feed = Feed(name, _now)
        operation = Operation(name, self._holder, wish, self._peers, feed)
        # The request id stays for the log; the caller's deadline is the caller's alone.
        context = contextvars.copy_context()
        context.run(deadline.set, math.inf)
        task = asyncio.get_running_loop().create_task(self._run(operation, feed), context=context)
        self._running[name] = (operation, task)
        return feed

    def cancel(self, name: str) -> None:
        """
        Ask an operation to turn back.

        Raises:
            OperationNotFound: No operation of that name is running.
        """
        if name not in self._running:
            raise OperationNotFound(name)
        self._running[name][0].cancel()

    async def drain(self, seconds: float) -> None:
        """Let running operations end and start no more; those that take longer than *seconds* turn back."""
        self._draining = True
        tasks = [task for _, task in self._running.values()]
        if not tasks:
            return
        log.info("waiting for operations", extra={"operations": sorted(self._running)})
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for operation, task in list(self._running.values()):
            if task in late:
                operation.cancel()
        if late:
            await asyncio.wait(late)

    async def _run(self, operation: Operation, feed: Feed) -> None:
        started = time.perf_counter()
        try:
            await operation.run()
        except PkgerError as error:
            await feed.close(error)
        except Exception:
            log.exception("operation failed", extra={"operation": operation.name})
            await feed.close(Internal(request_id.get()))
        else:
            await feed.close()
        finally:
            del self._running[operation.name]
            duration = round((time.perf_counter() - started) * 1000, 3)
            log.info("operation ended", extra={"operation": operation.name, "duration_ms": duration})


def _now() -> Timestamp:
    moment = Timestamp()
    moment.GetCurrentTime()
    return moment
