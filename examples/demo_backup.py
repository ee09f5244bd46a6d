"""
Shows that a backup, a restore and the deletion of the backup survive the death of their applier: ``make demo-backup``.

Applies the package of the examples as a stack, and backs the stack up. Then most of it is deleted, and restored from
the backup, and the backup is deleted. The applier dies (``applier_svc/failpoints.py``) in the middle of each, and the
next one finishes what it began.
"""

import subprocess
from pathlib import Path

from demo_home import LEASE_SECONDS, DemoHome, say

EXAMPLES = Path(__file__).parent
LABELS, FLEET = (str(EXAMPLES / name) for name in ("labels.json", "fleet.yml"))


def main() -> None:
    """Run the demonstration."""
    with DemoHome.started() as home:
        _demonstrate(home)


def _demonstrate(home: DemoHome) -> None:
    say("a stack of six resources, and a blueprint")
    print(_last_line(home.pkger("apply", "-f", LABELS, FLEET, "--stack", "fleet", "--yes")))
    print(_last_line(home.pkger("blueprints", "apply", "-f", str(EXAMPLES / "backup.yml"))))
    say("a backup, whose applier dies after the export and before it is recorded")
    backup = ("backup", "--blueprint", "stack-backup", "--object", "stack/fleet", "--name", "before")
    _perform(home, "after_phase_effect", *backup)
    say("all but the label is deleted")
    print(_last_line(home.pkger("apply", "-f", LABELS, "--stack", "fleet", "--yes")))
    say("a restore, whose applier dies in the middle of its writes")
    _perform(home, "after_send", "restore", "--from", "before", "--name", "again", "--yes")
    print(home.pkger("plan", "-f", LABELS, FLEET, "--stack", "fleet").strip())
    say("the backup is deleted, and the applier dies before it is recorded")
    _perform(home, "after_phase_effect", "delete", "--from", "before", "--name", "tidy")
    say("a restore from the deleted backup is refused")
    refused = home.begin("perform", "restore", "--from", "before", "--yes", errors=subprocess.STDOUT)
    print(refused.communicate()[0].strip())


def _perform(home: DemoHome, failpoint: str, *arguments: str) -> None:
    """Perform an action with an applier that dies at *failpoint*, and start another one."""
    home.stop("applier")
    home.serve("applier", failpoint=failpoint)
    running = home.begin("perform", *arguments)
    home.wait_for_death("applier")
    say(f"the applier is dead; another one continues in at most {LEASE_SECONDS} seconds, and the command waits")
    home.serve("applier")
    print(running.communicate()[0].strip())


def _last_line(output: str) -> str:
    return output.strip().splitlines()[-1]


if __name__ == "__main__":
    main()
