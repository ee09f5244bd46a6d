"""A token and a secret go where they were sent, and nowhere else: no log, event, database, output or environment."""

import asyncio
import json
from pathlib import Path

import pytest
import requests

from services.access.token_file import home_token
from tests import needs
from tests.apply.packages import an_endpoint, an_object, text
from tests.cli.command import pkger
from tests.cli.test_running_services import running
from tests.cli.test_strangers import ports_of, services_of

pytestmark = [pytest.mark.slow, needs.path("/proc/self/task")]

SECRET = "canary-of-a-secret"


def traces(home: Path, canary: str) -> list[str]:
    """The files of a home, but that of the token, and the arguments and environments of its services, with *canary*."""
    files = [each for each in home.rglob("*") if each.is_file() and each != home / "token"]
    files += [Path(f"/proc/{pid}/{name}") for pid in services_of(home).values() for name in ("cmdline", "environ")]
    return [str(each) for each in files if canary.encode() in each.read_bytes()]


def applied_over_http(gateway: str, sent: str, token: str, status: int) -> str:
    """The response to an apply with a secret and the token that is *sent*, which has that status."""
    orgs = requests.get(f"{gateway}/orgs", headers={"Authorization": f"Token {token}"}, timeout=60).json()
    body = {
        "orgID": orgs["orgs"][0]["id"],
        "secrets": {"slack-token": SECRET},
        "template": {"contents": json.loads(text(an_endpoint("Slack", "f", "other")))},
    }
    headers = {"Authorization": f"Token {sent}"}
    response = requests.post(f"{gateway}/templates/apply", json=body, headers=headers, timeout=60)
    assert response.status_code == status, response.text
    return response.text


async def test_tokens_and_secrets_leave_no_trace(short_path: Path) -> None:
    token = home_token(short_path).token()
    package = short_path / "p.json"
    package.write_text(text(an_object("Label", "l", "label"), an_endpoint("Slack", "e", "endpoint")))
    apply = ("apply", "-f", str(package), "--stack", "s", "--yes", "--secret", "slack-token")
    async with running(short_path, {"PKGER_TOKEN": token}) as (env, printed):
        pids = services_of(short_path)
        port = {module: next(iter(ports_of(pid)), ("", 0))[1] for module, pid in pids.items()}
        names = {"parser": "parser_svc", "planner": "planner_svc", "applier": "applier_svc", "stack": "stack_svc"}
        over_tcp = env | {f"PKGER_{name.upper()}_ADDRESS": f"localhost:{port[names[name]]}" for name in names}
        outputs = [printed]
        for variables, code in (
            (over_tcp, 0),
            (over_tcp | {"PKGER_TOKEN": f"{token[:-1]}x"}, 10),
            (over_tcp | {"PKGER_TOKEN": f"{token} "}, 0),
            (over_tcp | {"PKGER_TOKEN": f"{token}\n{token}"}, 10),
            (over_tcp | {"PKGER_APPLIER_ADDRESS": "localhost:1"}, 1),
        ):
            end = await pkger(*apply, env=variables, typed=f"{SECRET}\n".encode())
            assert end.code == code, end.err
            outputs += [end.out, end.err]
        gateway = f"http://127.0.0.1:{port['services.gateway']}/api/v2"
        for sent, status in ((token, 201), (f"{token[:-1]}x", 401)):
            outputs.append(await asyncio.to_thread(applied_over_http, gateway, sent, token, status))
        for canary in (token, token[22:], SECRET):
            assert not [each for each in outputs if canary in each]
            assert not traces(short_path, canary)
