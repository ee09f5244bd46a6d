"""``pkger stacks``."""

from typing import Any

import click

from services.cli import options
from services.cli.options import common, common_options


@click.group()
def stacks() -> None:
    """Make, list, show, change, uninstall and delete stacks."""


description_option = click.option("--description", metavar="TEXT", help="What it is for.")
urls_option = click.option(
    "--url",
    "urls",
    multiple=True,
    metavar="URL",
    help="Address of a package that is part of each apply. Again for more.",
)


@stacks.command(
    "init",
    epilog="""\b
Examples:
  pkger stacks init fleet --url https://example.com/fleet.yml --policy policy.yml""",
)
@click.argument("name", default=None, callback=options.stack_name)
@urls_option
@description_option
@click.option("--policy", default="", metavar="FILE", help="YAML or JSON file with its policy.")
@options.platform_option
@options.org_option
@common_options
def init_stack(name: str, urls: tuple[str, ...], description: str | None, policy: str, platform: str, org: str) -> None:
    """Make an empty stack: NAME, or one without a name, which is named by its id."""
    from services.cli.running import run
    from services.cli.stack_records import Described, init

    platform, org = common().place(platform, org)

    run(init(Described(name, description, urls), policy, platform, org, common().environ(), common().format))


@stacks.command(
    "update",
    epilog="""\b
Examples:
  pkger stacks update fleet --description vehicles""",
)
@click.argument("stack", metavar="NAME")
@click.option("--name", metavar="NEW", help="New name; empty: none.")
@urls_option
@click.option("--no-urls", is_flag=True, help="Take all URLs away.")
@description_option
@click.option("--etag", default="", metavar="ETAG", help="Only if the stack has not changed since it had this etag.")
@options.platform_option
@options.org_option
@common_options
def update_stack(
    stack: str,
    name: str | None,
    urls: tuple[str, ...],
    no_urls: bool,
    description: str | None,
    etag: str,
    platform: str,
    org: str,
) -> None:
    """Change what is said of stack NAME; --url replaces all of its URLs."""
    from services.cli.running import run
    from services.cli.stack_records import Described, update

    platform, org = common().place(platform, org)

    if urls and no_urls:
        raise click.UsageError("--url and --no-urls contradict each other")
    if not (urls or no_urls) and name is None and description is None:
        raise click.UsageError("say what changes: --name, --description, --url or --no-urls")
    changes = Described(name, description, urls if urls or no_urls else None)
    run(update(stack, changes, etag, platform, org, common().environ(), common().format))


@stacks.command(
    "list",
    epilog="""\b
Examples:
  pkger stacks list "fleet-*" --limit 20""",
)
@click.argument("pattern", default="")
@click.option("--name", "names", multiple=True, metavar="NAME", help="Only those with this name. Again for more.")
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only those with this id. Again for more.")
@options.platform_option
@options.org_option
@options.limit_option
@common_options
def list_stacks(
    pattern: str,
    names: tuple[str, ...],
    ids: tuple[str, ...],
    platform: str,
    org: str,
    limit: int | None,
) -> None:
    """List all stacks, or those with a name like PATTERN: * stands for any characters, ? for one."""
    from services.cli.running import run
    from services.cli.stacks import Chosen, list_all

    platform, org = common().target or (platform, org)

    run(list_all(common().environ(), common().format, limit, Chosen(platform, org, ids, names, pattern)))


@stacks.command(
    "show",
    epilog="""\b
Examples:
  pkger stacks show fleet -o json""",
)
@click.argument("name")
@options.platform_option
@options.org_option
@common_options
def show_stack(name: str, platform: str, org: str) -> None:
    """Show the record of stack NAME."""
    from services.cli.running import run
    from services.cli.stacks import show

    platform, org = common().place(platform, org)

    run(show(name, platform, org, common().environ(), common().format))


@stacks.command(
    "history",
    epilog="""\b
Examples:
  pkger stacks history fleet --limit 5""",
)
@click.argument("name")
@options.platform_option
@options.org_option
@click.option("--limit", type=click.IntRange(1), default=None, help="Only so many of the newest.")
@common_options
def stack_history(name: str, platform: str, org: str, limit: int | None) -> None:
    """List the revisions of stack NAME, newest first."""
    from services.cli.history import history
    from services.cli.running import run

    platform, org = common().place(platform, org)

    run(history(name, platform, org, common().environ(), common().format, limit or 0))


@stacks.command(
    "diff",
    epilog="""\b
Examples:
  pkger stacks diff fleet 1 2""",
)
@click.argument("name")
@click.argument("old", type=options.REVISION)
@click.argument("new", type=options.REVISION)
@options.platform_option
@options.org_option
@click.option("--full", is_flag=True, help="Show all of the difference: every object, field and line.")
@common_options
def diff_revisions(name: str, old: int, new: int, platform: str, org: str, full: bool) -> None:
    """Show what is different between the revisions OLD and NEW of stack NAME."""
    from services.cli.history import diff
    from services.cli.running import run

    platform, org = common().place(platform, org)

    run(diff(name, old, new, platform, org, common().environ(), common().format, full))


@stacks.command(
    "rollback",
    epilog="""\b
Examples:
  pkger stacks rollback fleet 3""",
)
@click.argument("name")
@click.argument("revision", type=options.REVISION)
@options.platform_option
@options.org_option
@options.skip_option
@options.allow_empty_option
@options.allow_replace_option
@options.allow_missing_option
@options.full_option
@options.author_option
@options.wait_option
@options.yes_option
@common_options
def roll_back(
    name: str,
    revision: int,
    platform: str,
    org: str,
    skip: tuple[str, ...],
    allow_empty: bool,
    allow_replace: bool,
    allow_missing: bool,
    full: bool,
    author: str,
    wait: float,
    yes: bool,
) -> None:
    """Make the platform what REVISION of stack NAME says; the history goes on with a new revision."""
    from services.cli.packages import Manner, apply
    from services.cli.running import run
    from services.cli.wanted import Wanted

    platform, org = common().place(platform, org)

    wanted = Wanted(
        files=(),
        stack=name,
        org=org,
        platform=platform,
        skip=skip,
        allow_empty=allow_empty,
        allow_missing=allow_missing,
        allow_replace=allow_replace,
        revision=revision,
        author=author,
    )
    typed = common()
    run(apply(wanted, typed.environ(), Manner(typed.format, typed.quiet, full, yes, wait)))


@stacks.command(
    "policy",
    epilog="""\b
Examples:
  pkger stacks policy fleet --set protect=true""",
)
@click.argument("name")
@click.option("-f", "--file", default="", metavar="FILE", help="YAML or JSON file with the whole policy.")
@click.option("--set", "changes", multiple=True, metavar="FIELD=VALUE", help="Set a field; FIELD= for the default.")
@options.platform_option
@options.org_option
@common_options
def stack_policy(name: str, file: str, changes: tuple[str, ...], platform: str, org: str) -> None:
    """Show the policy of stack NAME, or change it: what becomes of its resources besides being written."""
    from services.cli.keeping import policy
    from services.cli.running import run

    platform, org = common().place(platform, org)

    if any("=" not in change for change in changes):
        raise click.BadParameter("write FIELD=VALUE", param_hint="--set")
    if file and changes:
        raise click.UsageError("--file has the whole policy, and --set changes a field of it: use one of them")
    fields = [change.partition("=")[0] for change in changes]
    if repeated := [field for field in dict.fromkeys(fields) if fields.count(field) > 1]:
        raise click.UsageError(f"--set {repeated[0]} is there twice")
    run(policy(name, _target(platform, org), file, changes, common().environ(), common().format))


@stacks.command(
    "import",
    epilog="""\b
Examples:
  pkger stacks import fleet Bucket 0123456789abcdef --as raw""",
)
@click.argument("name")
@click.argument("kind")
@click.argument("resource_id", metavar="ID")
@click.option("--as", "object_name", default="", metavar="NAME", help="metadata.name of its object.  [default: made]")
@options.platform_option
@options.org_option
@common_options
def import_resource(name: str, kind: str, resource_id: str, object_name: str, platform: str, org: str) -> None:
    """Take the resource ID of KIND, which no stack owns, into stack NAME."""
    from services.cli.keeping import take_in
    from services.cli.running import run

    platform, org = common().place(platform, org)

    resource = (kind, resource_id)
    run(take_in(name, _target(platform, org), resource, object_name, common().environ(), common().format))


@stacks.command(
    "forget",
    epilog="""\b
Examples:
  pkger stacks forget fleet Bucket:raw Label:old""",
)
@click.argument("name")
@click.argument("objects", nargs=-1, required=True, metavar="KIND:NAME...")
@options.platform_option
@options.org_option
@common_options
def forget_resource(name: str, objects: tuple[str, ...], platform: str, org: str) -> None:
    """Let go of the resources of objects of stack NAME; they stay on the platform."""
    from services.cli.keeping import forget
    from services.cli.running import run

    platform, org = common().place(platform, org)

    run(forget(name, _target(platform, org), [*map(_key, objects)], common().environ(), common().format))


@stacks.command(
    "rename",
    epilog="""\b
Examples:
  pkger stacks rename fleet Bucket:raw readings""",
)
@click.argument("name")
@click.argument("object_key", metavar="KIND:NAME")
@click.argument("new_name")
@options.platform_option
@options.org_option
@common_options
def rename_resource(name: str, object_key: str, new_name: str, platform: str, org: str) -> None:
    """Give an object of stack NAME another metadata.name in the record: it is the same resource."""
    from services.cli.keeping import rename
    from services.cli.running import run

    platform, org = common().place(platform, org)

    run(rename(name, _target(platform, org), _key(object_key), new_name, common().environ(), common().format))


@stacks.command(
    "watch",
    epilog="""\b
Examples:
  pkger stacks watch fleet -o json""",
)
@click.argument("name")
@options.platform_option
@options.org_option
@common_options
def watch_stack(name: str, platform: str, org: str) -> None:
    """Show what happens to stack NAME, until it is gone."""
    from services.cli.running import run
    from services.cli.stack_watch import watch

    platform, org = common().place(platform, org)

    run(watch(name, platform, org, common().environ(), common().format))


@stacks.command(
    "drift",
    epilog="""\b
Examples:
  pkger stacks drift fleet
  pkger stacks drift fleet Bucket:raw --full
  pkger stacks drift fleet --detailed-exitcode    # 0: none, 2: drift, 1: wrong""",
)
@click.argument("name")
@click.argument("keys", nargs=-1, metavar="[KIND[:NAME]]...")
@options.platform_option
@options.org_option
@click.option("--all", "show_all", is_flag=True, help="Show what is in sync, too, and what policies ignore.")
@click.option("--full", is_flag=True, help="Show every resource, and values uncut.")
@click.option("--detailed-exitcode", "detailed", is_flag=True, help="End with 0: none, 2: drift, 1: wrong.")
@common_options
def drift_of_stack(
    name: str, keys: tuple[str, ...], platform: str, org: str, show_all: bool, full: bool, detailed: bool
) -> int:
    """
    Show what became of the resources of stack NAME since its last apply, worst first.

    Each field that differs has three sides: what the package says, what was applied, what is live. KIND:NAME looks at
    one resource, KIND at all of a kind.
    """
    from pkger.model.v1 import object_pb2

    from services.cli.drift import drift, keys_of
    from services.cli.exit_codes import Exit
    from services.cli.running import run

    platform, org = common().place(platform, org)
    target, wanted = object_pb2.Target(platform=platform, org=org), keys_of(keys)
    has_drift = run(drift(name, wanted, target, common().environ(), common().format, show_all, full))
    return Exit.CHANGES if has_drift and detailed else Exit.DONE


@stacks.command(
    "uninstall",
    epilog="""\b
Examples:
  pkger stacks uninstall fleet""",
)
@click.argument("name")
@options.platform_option
@options.org_option
@options.full_option
@options.author_option
@options.wait_option
@options.yes_option
@common_options
def uninstall_stack(name: str, platform: str, org: str, full: bool, author: str, wait: float, yes: bool) -> None:
    """Remove all that stack NAME created, and keep the stack; what it adopted stays."""
    from services.cli.packages import Manner
    from services.cli.running import run
    from services.cli.stack_removal import uninstall
    from services.cli.wanted import Wanted

    platform, org = common().place(platform, org)

    typed = common()
    wanted = Wanted(files=(), stack=name, org=org, platform=platform, author=author)
    run(uninstall(wanted, typed.environ(), Manner(typed.format, typed.quiet, full, yes, wait)))


@stacks.command(
    "delete",
    epilog="""\b
Examples:
  pkger stacks delete fleet --yes""",
)
@click.argument("name")
@options.platform_option
@options.org_option
@options.full_option
@options.author_option
@options.wait_option
@options.yes_option
@common_options
def delete_stack(name: str, platform: str, org: str, full: bool, author: str, wait: float, yes: bool) -> None:
    """Remove all that stack NAME created, and the stack; what it adopted stays."""
    from services.cli.packages import Manner
    from services.cli.running import run
    from services.cli.stack_removal import delete
    from services.cli.wanted import Wanted

    platform, org = common().place(platform, org)

    typed = common()
    wanted = Wanted(files=(), stack=name, org=org, platform=platform, author=author)
    run(delete(wanted, typed.environ(), Manner(typed.format, typed.quiet, full, yes, wait)))


def _target(platform: str, org: str) -> Any:
    from pkger.model.v1 import object_pb2

    return object_pb2.Target(platform=platform, org=org)


def _key(text: str) -> tuple[str, str]:
    """A kind and a name from ``KIND:NAME``."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise click.BadParameter(f"{text!r} is no KIND:NAME")
    return kind, name
