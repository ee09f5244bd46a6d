"""The commented example of docker-compose.yml: an InfluxDB server as a second platform."""

import re
from pathlib import Path

import yaml

from services.drivers.influxdb.options import options_of
from services.drivers.registry import DRIVERS
from services.platforms import read_platforms
from services.settings import load
from tests.compose.compose_file import COMPOSE_FILE


def uncommented(first: str) -> str:
    """The commented lines from *first* to the next empty or less indented one, without their hashes."""
    lines = [line.removeprefix("  #") for line in COMPOSE_FILE.read_text().splitlines() if line.startswith("  #")]
    start = next(number for number, line in enumerate(lines) if line.strip() == first)
    indent = len(lines[start]) - len(lines[start].lstrip())
    found = [lines[start]]
    for line in lines[start + 1 :]:
        if not line.strip() or len(line) - len(line.lstrip()) < indent:
            break
        found.append(line)
    return "\n".join(found)


def test_the_rows_of_the_example_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "platforms.yml").write_text(uncommented("embedded: {driver: embedded}"))
    platforms = read_platforms(load({"PKGER_HOME": str(tmp_path)}), DRIVERS)
    assert list(platforms) == ["embedded", "eu"]
    assert options_of(platforms["eu"]).token_file == "/run/secrets/influx-token"


def test_the_service_of_the_example_serves_its_row() -> None:
    # Without the parts that it shares with the other services.
    text = re.sub(r"<<: \*\w+|, \*token", "", uncommented("platform-eu:"))
    [(name, service)] = yaml.safe_load(text).items()
    settings = load(service["environment"])
    assert service["command"] == ["serve", "platform", "eu"]
    assert f"{name}:{settings.listen[0].rpartition(':')[2]}" == "platform-eu:50060"
    assert str(settings.platforms) in service["volumes"][0]
    [(secret, source)] = yaml.safe_load(uncommented("secrets:"))["secrets"].items()
    assert service["secrets"] == [secret]
    assert source == {"file": "./influx-token"}
