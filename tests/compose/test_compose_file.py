"""Rules for all services of docker-compose.yml."""

from pathlib import Path
from typing import Any

import pytest

from services.cli.process.supervisor import STOP_SECONDS
from services.settings import HTTP_PORT, PORTS, address_variable, load
from services.times import Times
from tests.compose.compose_file import (
    COMPOSE_FILE,
    TOKEN,
    compose_services,
    containers,
    instructions,
    interpolated,
    seconds,
)

ALL = compose_services({})
SERVICES = {name: service for name, service in ALL.items() if name != TOKEN}
ALL_PORTS = PORTS | {"http": HTTP_PORT}
CALLS = {
    "stack": set(),
    "platform": set(),
    "parser": set(),
    "planner": {"parser", "stack", "platform"},
    "applier": {"planner", "stack", "platform"},
    "http": {"parser", "planner", "applier", "stack"},
}
"""The services that each service calls, which have to be healthy before it starts."""


@pytest.fixture(params=sorted(SERVICES))
def service(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Each service that serves in turn, with its name."""
    return {"name": request.param} | SERVICES[request.param]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${SET}", "x"),
        ("a${SET}b${SET:-y}", "axbx"),
        ("${UNSET}", ""),
        ("${UNSET:-y}", "y"),
        ("${EMPTY:-0.0.0.0:1}", "0.0.0.0:1"),
        ("$$SET $${SET}", "$SET ${SET}"),
        ("plain", "plain"),
    ],
)
def test_variables_are_replaced_as_compose_does(text: str, value: str) -> None:
    assert interpolated(text, {"SET": "x", "EMPTY": ""}) == value


@pytest.mark.parametrize("text", ["$", "$ A", "${A-b}", "${}", "$A"])
def test_a_dollar_that_begins_no_variable_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        interpolated(text, {})


def test_all_services_are_there_and_start_after_those_they_call() -> None:
    assert set(SERVICES) == set(ALL_PORTS)
    needs = {name: dict(service["depends_on"]) for name, service in SERVICES.items() if "depends_on" in service}
    assert {name: set(needs[name]) - {TOKEN} for name in SERVICES} == CALLS
    first = {name for name in needs if needs[name].pop(TOKEN, None) == {"condition": "service_completed_successfully"}}
    # The others start after one of these.
    assert first == {"stack", "platform", "parser"}
    assert all(need == {"condition": "service_healthy"} for each in needs.values() for need in each.values())


def test_one_container_makes_the_token_that_all_others_read() -> None:
    assert set(ALL) - set(SERVICES) == {TOKEN}
    token = ALL[TOKEN]
    assert (token["restart"], token["healthcheck"]) == ("no", {"disable": True})
    # Not even its log has the token.
    assert token["entrypoint"] == ["sh", "-c", "pkger token local > /dev/null"]
    assert token["environment"] == {"PKGER_HOME": "/token"}
    assert token["volumes"] == ["token:/token"]
    for service in SERVICES.values():
        settings = load(service["environment"])
        assert "token:/token:ro" in service["volumes"]
        assert (settings.operator_token, settings.allow_plaintext) == (Path("/token/token"), True)
        assert service["environment"]["PKGER_TOKEN_FILE"] == "/token/token"
    assert any("--mode=0700 /token" in line for line in instructions("RUN"))


def test_the_containers_find_each_other(service: dict[str, Any]) -> None:
    """The settings read from the environment of a container have the addresses of the other containers."""
    settings = load(service["environment"])
    assert settings.addresses == {name: f"{name}:{port}" for name, port in PORTS.items()}
    assert settings.listen == (f"0.0.0.0:{ALL_PORTS[service['name']]}",)
    assert service["command"] == ["serve", service["name"]]


def test_every_container_is_checked_and_started_again(service: dict[str, Any]) -> None:
    check = service["healthcheck"]
    by_http = ["--http"] if service["name"] == "http" else []
    assert check["test"] == ["CMD", "python", "-m", "services.healthcheck", *by_http]
    assert check["retries"] > 0
    assert all(seconds(check[key]) > 0 for key in ("interval", "timeout", "start_period"))
    assert service["restart"] == "unless-stopped"


def test_a_container_may_stop_as_slowly_as_its_service(service: dict[str, Any]) -> None:
    """Docker's default of ten seconds would kill an applier whose operations are about to end or to roll back."""
    assert seconds(service["stop_grace_period"]) >= max(STOP_SECONDS, 2 * Times().grace)


@pytest.mark.parametrize("service", ALL.values(), ids=ALL)
def test_no_container_can_do_more_than_it_must(service: dict[str, Any]) -> None:
    user, _, group = service["user"].partition(":")
    assert service["user"] == instructions("USER")[-1]
    assert int(user) > 0
    assert int(group) > 0
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "network_mode", "pid"} & set(service)


def test_one_service_builds_the_image_and_none_is_fetched() -> None:
    """Parallel builds of one image name can fail, and Docker Hub has no image of pkger."""
    assert [name for name, service in SERVICES.items() if "build" in service] == ["stack"]
    policies = {name: service["pull_policy"] for name, service in SERVICES.items()}
    assert policies == dict.fromkeys(ALL_PORTS, "never") | {"stack": "build"}
    assert ALL[TOKEN]["pull_policy"] == "never"


def test_ports_are_published_to_this_machine_only(service: dict[str, Any]) -> None:
    """There is no TLS yet."""
    port = ALL_PORTS[service["name"]]
    wanted = [] if service["name"] == "platform" else [f"127.0.0.1:{port}:{port}"]
    assert service.get("ports", []) == wanted


def test_persistent_data_is_on_volumes() -> None:
    volumes = {name: [each for each in SERVICES[name]["volumes"] if TOKEN not in each] for name in SERVICES}
    assert {name: each for name, each in volumes.items() if each} == {
        "stack": ["stack:/data"],
        "platform": ["platform:/data"],
    }
    assert all(SERVICES[name]["environment"]["PKGER_DATA"] == "/data" for name in ("stack", "platform"))
    assert "\nvolumes:\n  token:\n  stack:\n  platform:\n" in COMPOSE_FILE.read_text()


def test_the_variables_of_clients_stay_out_of_the_containers() -> None:
    """PKGER_PARSER_ADDRESS=127.0.0.1:50051, set for the command line, does not change the containers."""
    clients = {address_variable(name): "127.0.0.1:1" for name in PORTS} | {"PKGER_LISTEN": "x", "PKGER_DATA": "x"}
    assert compose_services(clients) == ALL


def test_addresses_and_data_can_be_set() -> None:
    environ = {"PARSER_ADDRESS": "unix:/p", "PARSER_LISTEN": "unix:/p", "STACK_DATA": "/elsewhere", "STACK_PORT": "7"}
    services = {name: service for name, service in compose_services(environ).items() if name != TOKEN}
    assert {service["environment"]["PKGER_PARSER_ADDRESS"] for service in services.values()} == {"unix:/p"}
    assert services["parser"]["environment"]["PKGER_LISTEN"] == "unix:/p"
    assert services["stack"]["environment"]["PKGER_DATA"] == "/elsewhere"
    assert services["stack"]["volumes"] == ["stack:/elsewhere", "token:/token:ro"]
    assert services["stack"]["ports"] == ["127.0.0.1:7:50054"]


def test_containers_are_sorted_by_what_they_need() -> None:
    order = list(containers({}))
    assert all(order.index(need) < order.index(name) for name, needs in CALLS.items() for need in needs)
