"""The recorded requests of InfluxDB's clients, sent in their order as one scenario."""

from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.gateway.cases import Framing, Scenario, byte_by_byte, in_one_piece, inside_characters, read_cases
from tests.gateway.gateway import TOKEN, client, gateway, settings
from tests.samples import slow


@pytest.mark.parametrize("framing", [in_one_piece, slow(byte_by_byte), inside_characters])
async def test_all_recorded_requests_get_the_expected_answers(
    services: Cluster, tmp_path: Path, framing: Framing
) -> None:
    wrong: dict[str, list[str]] = {}
    async with gateway(settings(tmp_path), services) as address, client(address, headers={}) as session:
        scenario = Scenario(session, {"token": TOKEN, "unknown": "00000000deadbeef"}, framing)
        for case in read_cases():
            if problems := await scenario.play(case):
                wrong[case["id"]] = problems
    report = "\n".join(f"{name}: {'; '.join(problems)}" for name, problems in wrong.items())
    assert not wrong, f"{len(wrong)} of 87 cases\n{report}"
