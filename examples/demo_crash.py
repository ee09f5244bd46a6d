"""
Shows that an apply survives the death of its applier: ``make demo-crash``.

Starts all services, begins an apply of 2,000 objects, kills the applier with SIGKILL half way, and starts it again.
Then shows how the operation is resumed, and applies the same package again: nothing is left to do.
"""

import json

from demo_home import LEASE_SECONDS, DemoHome, say

OBJECTS = 2_000


def main() -> None:
    """Run the demonstration."""
    with DemoHome.started() as home:
        _demonstrate(home)


def _demonstrate(home: DemoHome) -> None:
    package = str(home.folder / "package.json")
    (home.folder / "package.json").write_text(json.dumps(_package()))
    say(f"an apply of {OBJECTS:,} objects begins")
    apply = home.begin("apply", "-f", package, "--stack", "demo", "--yes", "-o", "json")
    assert apply.stdout is not None
    done = 0
    for line in apply.stdout:
        done += sum("done" in outcome for outcome in json.loads(line).get("steps_ended", {}).get("outcomes", ()))
        if done >= OBJECTS // 2:
            break
    say(f"{done:,} are created: kill -9 of the applier")
    home.kill("applier")
    say("the applier starts again")
    home.serve("applier")
    [operation] = json.loads(home.pkger("operations", "list", "-o", "json"))
    name = str(operation["id"])
    say(f"{name} is resumed once its lease has expired, in at most {LEASE_SECONDS} seconds; the command waits")
    for line in apply.stdout:
        stage = json.loads(line).get("stage_started")
        if stage:
            print(f"{stage['name']}: {stage['step_count']:,} steps")
    apply.wait()
    print(home.pkger("operations", "show", name))
    say("the same apply again")
    again = home.pkger("apply", "-f", package, "--stack", "demo", "--yes")
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


if __name__ == "__main__":
    main()
