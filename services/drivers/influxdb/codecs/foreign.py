"""Kinds that the server has and packages have not: they are listed, so that exports name them, and never written."""

from functools import partial
from typing import Any, NoReturn

from services.drivers.influxdb.codecs.codec import Body, Codec, Content, References, Refused

CUSTOM_CHECK, TELEGRAM = "CheckCustom", "NotificationEndpointTelegram"


def _refused(kind: str) -> NoReturn:
    raise Refused(f"packages have no kind {kind}, so pkger does not write one")


def _prepare(_content: Content, _references: References, kind: str) -> dict[str, Any]:
    _refused(kind)


def _write(_spec: Content, _references: References, _live: Body | None, kind: str) -> dict[str, Any]:
    _refused(kind)


def _read(live: Body) -> dict[str, Any]:
    return {key: live.get(key) or "" for key in ("name", "description", "status")}


CODECS = tuple(
    Codec(kind, collection, partial(_prepare, kind=kind), partial(_write, kind=kind), _read)
    for kind, collection in ((CUSTOM_CHECK, "checks"), (TELEGRAM, "notificationEndpoints"))
)
