"""``pkger stacks``."""

from typing import TYPE_CHECKING

import click

from services.cli import options
from services.cli.common import common
from services.cli.options import common_options

if TYPE_CHECKING:
    from pkger.applier.v1.applier_pb2 import RunOptions
    from pkger.model.v1.object_pb2 import Target
    from pkger.planner.v1.planner_pb2 import PlanOptions


@click.group()
def stacks() -> None:
    """Create, list, show, change, uninstall and delete stacks."""


description_option = click.option("--description", metavar="TEXT", help="Description of the stack.")
urls_option = click.option(
    "--url",
    "urls",
    multiple=True,
    metavar="URL",
    help="Address of a package that is part of each apply. May be repeated.",
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
@click.option("--policy", default="", metavar="FILE", help="YAML or JSON file with the policy of the stack.")
@options.target_options
@common_options
def init_stack(name: str, urls: tuple[str, ...], description: str | None, policy: str, target: tuple[str, str]) -> None:
    """Create an empty stack: NAME, or one without a name, which commands find by its id."""
    from services.cli.run_async import run
    from services.cli.stacks.records import Described, init

    run(init(Described(name, description, urls), policy, *target, common().environ(), common().format))


@stacks.command(
    "update",
    epilog="""\b
Examples:
  pkger stacks update fleet --description vehicles""",
)
@click.argument("stack", metavar="NAME")
@click.option("--name", metavar="NEW", help="New name; empty for none.")
@urls_option
@click.option("--no-urls", is_flag=True, help="Remove all URLs.")
@description_option
@click.option("--etag", default="", metavar="ETAG", help="Change the stack only if it still has this etag.")
@options.target_options
@common_options
def update_stack(
    stack: str,
    name: str | None,
    urls: tuple[str, ...],
    no_urls: bool,
    description: str | None,
    etag: str,
    target: tuple[str, str],
) -> None:
    """Change name, description or URLs of stack NAME; --url replaces all of its URLs."""
    from services.cli.run_async import run
    from services.cli.stacks.records import Described, update

    if urls and no_urls:
        raise click.UsageError("--url and --no-urls contradict each other")
    if not (urls or no_urls) and name is None and description is None:
        raise click.UsageError("nothing to change; use --name, --description, --url or --no-urls")
    changes = Described(name, description, urls if urls or no_urls else None)
    run(update(stack, changes, etag, *target, common().environ(), common().format))


@stacks.command(
    "list",
    epilog="""\b
Examples:
  pkger stacks list "fleet-*" --limit 20""",
)
@click.argument("pattern", default="")
@click.option("--name", "names", multiple=True, metavar="NAME", help="List only stacks of this name. May be repeated.")
@click.option("--id", "ids", multiple=True, metavar="ID", help="List only the stack with this id. May be repeated.")
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
    """List all stacks, or stacks whose names match PATTERN: * stands for any characters, ? for one."""
    from services.cli.run_async import run
    from services.cli.stacks.stacks import StackFilter, list_all

    platform, org = common().target or (platform, org)

    run(list_all(common().environ(), common().format, limit, StackFilter(platform, org, ids, names, pattern)))


@stacks.command(
    "show",
    epilog="""\b
Examples:
  pkger stacks show fleet -o json""",
)
@click.argument("name")
@options.target_options
@common_options
def show_stack(name: str, target: tuple[str, str]) -> None:
    """Show the record of stack NAME."""
    from services.cli.run_async import run
    from services.cli.stacks.stacks import show

    run(show(name, *target, common().environ(), common().format))


@stacks.command(
    "history",
    epilog="""\b
Examples:
  pkger stacks history fleet --limit 5""",
)
@click.argument("name")
@options.target_options
@click.option("--limit", type=click.IntRange(1), default=None, metavar="N", help="List only the newest N.")
@common_options
def stack_history(name: str, target: tuple[str, str], limit: int | None) -> None:
    """List the revisions of stack NAME, newest first."""
    from services.cli.run_async import run
    from services.cli.stacks.history import history

    run(history(name, *target, common().environ(), common().format, limit or 0))


@stacks.command(
    "diff",
    epilog="""\b
Examples:
  pkger stacks diff fleet 1 2""",
)
@click.argument("name")
@click.argument("old", type=options.REVISION)
@click.argument("new", type=options.REVISION)
@options.target_options
@click.option("--full", is_flag=True, help="Show the whole difference: every object, field and line.")
@common_options
def diff_revisions(name: str, old: int, new: int, target: tuple[str, str], full: bool) -> None:
    """Show the differences between the revisions OLD and NEW of stack NAME."""
    from services.cli.run_async import run
    from services.cli.stacks.history import diff

    run(diff(name, old, new, *target, common().environ(), common().format, full))


@stacks.command(
    "rollback",
    epilog="""\b
Examples:
  pkger stacks rollback fleet 3""",
)
@click.argument("name")
@click.argument("revision", type=options.REVISION)
@options.target_options
@options.plan_options
@options.run_options
@options.full_option
@options.wait_option
@options.yes_option
@common_options
def roll_back(
    name: str,
    revision: int,
    target: tuple[str, str],
    full: bool,
    wait: float,
    yes: bool,
    plan_options: "PlanOptions",
    run_options: "RunOptions",
) -> None:
    """Roll back stack NAME to REVISION: apply it, and record it as a new revision."""
    from services.cli.output.interaction import Interaction
    from services.cli.plan.apply import apply
    from services.cli.plan.plan_input import PlanInput
    from services.cli.run_async import run

    plan_input = PlanInput(
        files=(), stack=name, platform=target[0], org=target[1], options=plan_options, revision=revision
    )
    typed = common()
    run(apply(plan_input, typed.environ(), Interaction(typed.format, typed.quiet, full, yes, wait), run_options))


@stacks.command(
    "policy",
    epilog="""\b
Examples:
  pkger stacks policy fleet --set protect=true
  pkger stacks policy fleet --explain Bucket:raw""",
)
@click.argument("name")
@click.option("-f", "--file", default="", metavar="FILE", help="YAML or JSON file with the whole policy.")
@click.option(
    "--set", "changes", multiple=True, metavar="FIELD=VALUE", help="Set a field; FIELD= resets it to its default."
)
@click.option(
    "--explain", "object_key", default="", metavar="KIND:NAME", help="Show the policy of one object, by layers."
)
@options.target_options
@common_options
def stack_policy(name: str, file: str, changes: tuple[str, ...], object_key: str, target: tuple[str, str]) -> None:
    """Show or change the policy of stack NAME: its rules for protection, ownership, drift and removal."""
    from services.cli.run_async import run
    from services.cli.stacks.edits import policy
    from services.cli.stacks.policy_layers import explain_policy

    if any("=" not in change for change in changes):
        raise click.BadParameter("write FIELD=VALUE", param_hint="--set")
    if file and changes:
        raise click.UsageError("--file sets the whole policy, and --set one field of it: use one of them")
    fields = [change.partition("=")[0] for change in changes]
    if repeated := [field for field in dict.fromkeys(fields) if fields.count(field) > 1]:
        raise click.UsageError(f"--set {repeated[0]} is given twice")
    if object_key:
        if file or changes:
            raise click.UsageError("--explain shows a policy, and --file and --set change one: use one of them")
        run(explain_policy(name, _target_message(target), _key(object_key), common().environ(), common().format))
        return
    run(policy(name, _target_message(target), file, changes, common().environ(), common().format))


@stacks.command(
    "import",
    epilog="""\b
Examples:
  pkger stacks import fleet Bucket 0123456789abcdef --as raw
  pkger stacks import fleet Dashboard "Fleet overview"
  pkger stacks import fleet -f fleet.yml --yes""",
)
@click.argument("name", metavar="STACK")
@click.argument("resource", nargs=-1, metavar="[KIND NAME]")
@click.option(
    "--as",
    "object_name",
    default="",
    metavar="NAME",
    help="metadata.name of the object of KIND NAME.  [default: generated]",
)
@options.file_option
@options.package_options
@options.target_options
@click.option("--yes", is_flag=True, help="Import the resources of the package without asking.")
@common_options
def import_resources(
    name: str,
    resource: tuple[str, ...],
    object_name: str,
    files: tuple[str, ...],
    package_options: options.PackageOptions,
    target: tuple[str, str],
    yes: bool,
) -> None:
    """
    Import resources that no stack owns into STACK; nothing is written to the platform.

    KIND NAME is one resource, by id or by display name. With -f, it is every object of the package whose display name
    exactly one resource has: they are listed, and at a terminal, the import needs approval.
    """
    from services.cli.output.interaction import Interaction
    from services.cli.plan.plan_input import PlanInput
    from services.cli.run_async import run
    from services.cli.stacks.imports import import_package, import_resource

    typed = common()
    if files:
        if resource or object_name:
            raise click.UsageError("-f imports the objects of a package: KIND NAME and --as cannot be combined with it")
        plan_input = PlanInput(
            files=files,
            stack=name,
            platform=target[0],
            org=target[1],
            env=package_options.env_values,
            recursive=package_options.recursive,
            encoding=package_options.encoding or "",
            libraries=package_options.libraries,
        )
        run(import_package(plan_input, typed.environ(), Interaction(typed.format, typed.quiet, yes=yes)))
        return
    if package_options:
        raise click.UsageError("-R, -e, --jpath, --env-ref and --env-file are for a package: name its files with -f")
    if len(resource) != 2:
        raise click.UsageError("name one resource by KIND and NAME, or the files of a package with -f")
    kind, id_or_name = resource
    run(import_resource(name, _target_message(target), (kind, id_or_name), object_name, typed.environ(), typed.format))


@stacks.command(
    "forget",
    epilog="""\b
Examples:
  pkger stacks forget fleet Bucket:raw Label:old""",
)
@click.argument("name")
@click.argument("objects", nargs=-1, required=True, metavar="KIND:NAME...")
@options.target_options
@common_options
def forget_resource(name: str, objects: tuple[str, ...], target: tuple[str, str]) -> None:
    """Remove objects from the record of stack NAME; their resources stay on the platform."""
    from services.cli.run_async import run
    from services.cli.stacks.edits import forget

    run(forget(name, _target_message(target), [*map(_key, objects)], common().environ(), common().format))


@stacks.command(
    "rename",
    epilog="""\b
Examples:
  pkger stacks rename fleet Bucket:raw readings""",
)
@click.argument("name")
@click.argument("object_key", metavar="KIND:NAME")
@click.argument("new_name")
@options.target_options
@common_options
def rename_resource(name: str, object_key: str, new_name: str, target: tuple[str, str]) -> None:
    """Change metadata.name of an object in the record of stack NAME; its resource stays the same."""
    from services.cli.run_async import run
    from services.cli.stacks.edits import rename

    run(rename(name, _target_message(target), _key(object_key), new_name, common().environ(), common().format))


@stacks.command(
    "watch",
    epilog="""\b
Examples:
  pkger stacks watch fleet -o json""",
)
@click.argument("name")
@options.target_options
@common_options
def watch_stack(name: str, target: tuple[str, str]) -> None:
    """Show the changes of stack NAME, until it is deleted."""
    from services.cli.run_async import run
    from services.cli.stacks.watch import watch

    run(watch(name, *target, common().environ(), common().format))


@stacks.command(
    "drift",
    epilog="""\b
Examples:
  pkger stacks drift fleet
  pkger stacks drift fleet Bucket:raw --full
  pkger stacks drift fleet --detailed-exitcode    # 0: no drift, 2: drift, 1: error""",
)
@click.argument("name")
@click.argument("keys", nargs=-1, metavar="[KIND[:NAME]]...")
@options.target_options
@click.option("--all", "show_all", is_flag=True, help="Also show resources in sync, and drift that policies ignore.")
@click.option("--full", is_flag=True, help="Show every resource, and uncut values.")
@click.option("--detailed-exitcode", "detailed", is_flag=True, help="Exit with 0: no drift, 2: drift, 1: error.")
@common_options
def drift_of_stack(
    name: str, keys: tuple[str, ...], target: tuple[str, str], show_all: bool, full: bool, detailed: bool
) -> int:
    """
    Show the drift of the resources of stack NAME since its last apply, worst first.

    Each field that differs has three sides: package, applied and live. KIND:NAME selects one resource, KIND all of a
    kind.
    """
    from services.cli.exit_codes import Exit
    from services.cli.run_async import run
    from services.cli.stacks.drift import drift, keys_of

    has_drift = run(
        drift(name, keys_of(keys), _target_message(target), common().environ(), common().format, show_all, full)
    )
    return Exit.CHANGES if has_drift and detailed else Exit.DONE


@stacks.command(
    "uninstall",
    epilog="""\b
Examples:
  pkger stacks uninstall fleet""",
)
@click.argument("name")
@options.target_options
@options.removal_options
@options.full_option
@options.wait_option
@options.yes_option
@common_options
def uninstall_stack(
    name: str,
    target: tuple[str, str],
    full: bool,
    wait: float,
    yes: bool,
    run_options: "RunOptions",
) -> None:
    """Delete all resources that stack NAME created, and keep the stack; adopted resources stay."""
    from services.cli.output.interaction import Interaction
    from services.cli.plan.plan_input import PlanInput
    from services.cli.run_async import run
    from services.cli.stacks.removal import uninstall

    typed = common()
    plan_input = PlanInput(files=(), stack=name, platform=target[0], org=target[1])
    run(uninstall(plan_input, typed.environ(), Interaction(typed.format, typed.quiet, full, yes, wait), run_options))


@stacks.command(
    "delete",
    epilog="""\b
Examples:
  pkger stacks delete fleet --yes""",
)
@click.argument("name")
@options.target_options
@options.removal_options
@options.full_option
@options.wait_option
@options.yes_option
@common_options
def delete_stack(
    name: str,
    target: tuple[str, str],
    full: bool,
    wait: float,
    yes: bool,
    run_options: "RunOptions",
) -> None:
    """Delete all resources that stack NAME created, and the stack; adopted resources stay."""
    from services.cli.output.interaction import Interaction
    from services.cli.plan.plan_input import PlanInput
    from services.cli.run_async import run
    from services.cli.stacks.removal import delete

    typed = common()
    plan_input = PlanInput(files=(), stack=name, platform=target[0], org=target[1])
    run(delete(plan_input, typed.environ(), Interaction(typed.format, typed.quiet, full, yes, wait), run_options))


def _target_message(target: tuple[str, str]) -> "Target":
    from pkger.model.v1.object_pb2 import Target

    return Target(platform=target[0], org=target[1])


def _key(text: str) -> tuple[str, str]:
    """A kind and a name from ``KIND:NAME``."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise click.BadParameter(f"{text!r} is not KIND:NAME")
    return kind, name
