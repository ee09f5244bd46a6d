"""Servers with TLS: a certificate is verified unless the options disable it, and untrusted servers get no requests."""

from pathlib import Path

import pytest

from services.core.errors import ServiceUnavailable
from tests import needs
from tests.drivers.client import create
from tests.drivers.influxdb.running import influxdb_client
from tests.drivers.influxdb.samples import influxdb_sample as sample
from tests.influx.certificates import own_certificate, served_with
from tests.influx.server import influx

pytestmark = needs.program("openssl")

LABEL = create("Label", sample("Label", "red", ""))


async def test_a_certificate_is_trusted_by_ca_file_or_without_verification(tmp_path: Path) -> None:
    certificate = own_certificate(tmp_path)
    async with influx(tls=served_with(certificate)) as server:
        for options in ({"ca_file": certificate.name}, {"verify": False}):
            async with influxdb_client(server.url, server.token, {}, tmp_path, **options) as client:
                [held] = await client.listing("Label", org=server.org_name) or await client.made(
                    LABEL, org=server.org_name
                )
                assert held.display_name == "red"


async def test_nothing_is_sent_to_a_server_with_an_unknown_certificate(tmp_path: Path) -> None:
    async with influx(tls=served_with(own_certificate(tmp_path))) as server:
        async with influxdb_client(server.url, server.token, {}, tmp_path) as client:
            for asked in (client.describe(), client.mutate(LABEL, org=server.org_name)):
                with pytest.raises(ServiceUnavailable, match="certificate verify failed"):
                    await asked
        assert not server.records.requests
