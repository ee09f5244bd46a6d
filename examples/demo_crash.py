"""
Shows that an apply survives the death of its applier: ``make demo-crash``.

Starts all services, begins an apply of 2,000 objects, kills the applier with SIGKILL half way, and starts it again.
Then shows how the operation is resumed, and applies the same package again: nothing is left to do.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

SERVICES = ("stack", "platform", "parser", "planner", "applier")
OBJECTS = 2_000
LEASE_SECONDS = 3
"""An operation whose lease was not renewed for this time is resumed; the default is ten times as long."""

BIN = Path(sys.executable).parent


def main() -> None:
    """Run the demonstration."""
    with tempfile.TemporaryDirectory(prefix="pkger-demo-") as folder:
        home = Path(folder)
        environ = {key: value for key, value in os.environ.items() if not key.startswith("PKGER_")}
        environ |= {"PKGER_HOME": folder, "PKGER_LEASE": str(LEASE_SECONDS)}
        package = home / "package.json"
        package.write_text(json.dumps(_package()))
        running = {name: _serve(name, environ, home) for name in SERVICES}
        try:
            _wait(environ, *SERVICES)
            _demonstrate(running, environ, home, package)
        finally:
            for process in reversed(running.values()):
                process.terminate()
                process.wait()


def _demonstrate(
    running: dict[str, subprocess.Popen[bytes]], environ: dict[str, str], home: Path, package: Path
) -> None:
    _say(f"an apply of {OBJECTS:,} objects begins")
    apply = subprocess.Popen(
        [BIN / "pkger", "apply", "-f", package, "--stack", "demo", "--yes", "-o", "json"],
        env=environ, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert apply.stdout is not None
    done = 0
    for line in apply.stdout:
        done += sum("done" in outcome for outcome in json.loads(line).get("steps_ended", {}).get("outcomes", ()))
        if done >= OBJECTS // 2:
            break
    _say(f"{done:,} are created: kill -9 of the applier")
    running["applier"].send_signal(signal.SIGKILL)
    running["applier"].wait()
    _say("the applier starts again")
    running["applier"] = _serve("applier", environ, home)
    _wait(environ, "applier")
    name = _operation(environ)
    _say(f"{name} is resumed once its lease has expired, in at most {LEASE_SECONDS} seconds; the command waits")
    for line in apply.stdout:
        stage = json.loads(line).get("stage_started")
        if stage:
            print(f"{stage['name']}: {stage['step_count']:,} steps")
    apply.wait()
    print(_pkger(environ, "operations", "show", name))
    _say("the same apply again")
    again = _pkger(environ, "apply", "-f", str(package), "--stack", "demo", "--yes")
    print("\n".join(line for line in again.splitlines() if line.startswith(("Plan:", "Done:"))))


def _package() -> list[dict[str, object]]:
    version = "influxdata.com/v2alpha1"
    labels = [
        {"apiVersion": version, "kind": "Label", "metadata": {"name": f"team-{number}"}}
        for number in range(OBJECTS // 10)
    ]
    return labels + [
        {
            "apiVersion": version,
            "kind": "Bucket",
            "metadata": {"name": f"readings-{number}"},
            "spec": {"associations": [{"kind": "Label", "name": f"team-{number % len(labels)}"}]},
        }
        for number in range(OBJECTS - len(labels))
    ]


def _serve(name: str, environ: dict[str, str], home: Path) -> subprocess.Popen[bytes]:
    # At its socket only, where commands and the other services of the home call it: no port has to be free.
    serve = [BIN / "pkger", "serve", name, "--listen", f"unix:{home}/run/{name}.sock"]
    with (home / f"{name}.log").open("ab") as log:
        return subprocess.Popen(serve, env=environ, stderr=log)


def _wait(environ: dict[str, str], *names: str) -> None:
    check = [sys.executable, "-m", "services.healthcheck", *names, "--wait", "--timeout", "30"]
    subprocess.run(check, env=environ, check=True, stdout=subprocess.DEVNULL)


def _operation(environ: dict[str, str]) -> str:
    [operation] = json.loads(_pkger(environ, "operations", "list", "-o", "json"))
    return str(operation["id"])


def _pkger(environ: dict[str, str], *arguments: str) -> str:
    return subprocess.run(
        [BIN / "pkger", *arguments], env=environ, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def _say(message: str) -> None:
    print(f"\n== {message}", flush=True)


if __name__ == "__main__":
    main()
