"""The ``pkger`` command. Bodies import what they need, so that help is quick."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import click

from services.cli.detailed import OPTION, DetailedCommand
from services.cli.pairs import CommandOfPairs, named_resources
from services.machine import leave_no_core

SERVER_HELP = (
    "Host whose services to use, on their default ports. Without it, and without PKGER_SERVER or"
    " PKGER_<SERVICE>_ADDRESS in the environment, the services run for the time of this call, on databases in"
    " PKGER_HOME (~/.pkger)."
)


def _host(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """A host without a port: each service has one of its own. An IPv6 address stands in brackets."""
    if value and ":" in value and not value.endswith("]"):
        raise click.BadParameter("write the host without a port (an IPv6 address in brackets)")
    return value


def _stack(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """The name of a stack; empty when none is named. A name that is empty is that of a variable that is not set."""
    if value == "":
        raise click.BadParameter("the name is empty; leave the option out to work without a stack")
    return value or ""


server_option = click.option("--server", metavar="HOST", callback=_host, help=SERVER_HELP)
output_option = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print."
)
platform_option = click.option(
    "--platform", default="", metavar="NAME", help="Platform, a row of the platforms file.  [default: embedded]"
)
org_option = click.option("--org", default="", metavar="ORG", help="Organisation on the platform.  [default: default]")
file_option = click.option(
    "-f", "--file", "files", multiple=True, metavar="FILE", help="Package file or http(s) address; - is stdin."
)
recursive_option = click.option("-R", "--recursive", is_flag=True, help="Take all package files in folders, too.")
more_files = click.argument("more_files", nargs=-1, metavar="[FILE]...")
env_option = click.option(
    "--env-ref", "env", multiple=True, metavar="KEY=VALUE", help="Value for an environment reference of the package."
)
skip_option = click.option(
    "--skip",
    multiple=True,
    metavar="KIND[:NAME]",
    help="Leave an object out, or a whole kind: neither apply nor remove it.",
)
allow_empty_option = click.option(
    "--allow-empty", is_flag=True, help="A package without objects may take all from the stack."
)
allow_replace_option = click.option(
    "--allow-replace", is_flag=True, help="What no stack owns may be deleted, to be created anew."
)
allow_missing_option = click.option(
    "--allow-missing", is_flag=True, help="Go on although environment values or secrets are missing."
)
secret_option = click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="KEY[=VALUE]",
    help="Secret to write to the platform first. Without =VALUE, which others on this machine can see, it is asked for"
    " at a terminal, and is the next line of standard input elsewhere.",
)
secret_keys_option = click.option(
    "--secret", "secrets", multiple=True, metavar="KEY", help="Secret that is going to be given with the apply."
)
full_option = click.option("--full", is_flag=True, help="Show all of the plan: every step, field and line.")


def _author(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """Who asks: as typed, else the name of the user."""
    if value is not None:
        return value
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):
        # A user without a name, as in some containers.
        return ""


author_option = click.option(
    "--author", callback=_author, metavar="NAME", help="Who asks for it, for the history.  [default: the user's name]"
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask at a terminal.")


def _target(platform: str, org: str) -> Any:
    from pkger.model.v1 import object_pb2

    return object_pb2.Target(platform=platform, org=org)


def _key(text: str) -> tuple[str, str]:
    """A kind and a name from ``KIND:NAME``."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise click.BadParameter(f"{text!r} is no KIND:NAME")
    return kind, name


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pkger")
def main() -> None:
    """Declarative packages of resources of a platform: check them, plan them, apply them, keep them."""
    leave_no_core()


@main.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the databases.")
def up(data: Path | None) -> None:
    """Run all services, and the drivers of the platforms file, until Ctrl-C."""
    from services.cli.up import up as run

    asyncio.run(run(data, os.environ))


@main.command()
@click.argument("service", type=click.Choice(["parser", "planner", "applier", "stack", "platform"]))
@click.argument("platform", default="", metavar="[PLATFORM]")
@click.option("--listen", metavar="ADDRESS", help="HOST:PORT (port 0: any free one) or unix:PATH to listen on.")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the databases.")
def serve(service: str, platform: str, listen: str | None, data: Path | None) -> None:
    """Run one service in the foreground: for "platform", the driver of PLATFORM, a row of the platforms file."""
    from services.cli.supervisor import MODULES

    if platform and service != "platform":
        raise click.UsageError(f"{service} is one service for all platforms: leave {platform} out")
    command = [sys.executable, "-m", MODULES[service], *([platform] if platform else [])]
    environ = dict(os.environ)
    environ |= {"PKGER_LISTEN": listen} if listen else {}
    environ |= {"PKGER_DATA": str(data)} if data else {}
    os.execve(sys.executable, command, environ)  # noqa: S606


@main.command()
@file_option
@more_files
@recursive_option
@env_option
@output_option
@server_option
def validate(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    recursive: bool,
    env: tuple[str, ...],
    output: str,
    server: str | None,
) -> None:
    """Check FILE..., together one package; tell every mistake and where it stands. Exit status 1: it is invalid."""
    from services.cli.session import environment
    from services.cli.validate import Wanted
    from services.cli.validate import validate as run

    wanted = Wanted(_some(files + more_files), recursive, _pairs(env))
    if not asyncio.run(run(wanted, environment(server), output)):
        sys.exit(1)


@main.command()
@click.argument("kind", default="")
@server_option
def schema(kind: str, server: str | None) -> None:
    """Print the JSON Schema of KIND; without one, of an object of any kind, for editors."""
    from services.cli.session import environment
    from services.cli.validate import print_schema

    asyncio.run(print_schema(kind, environment(server)))


@main.command()
@file_option
@more_files
@click.option("--stack", callback=_stack, metavar="NAME", help="Stack to plan for.")
@recursive_option
@platform_option
@org_option
@env_option
@skip_option
@allow_empty_option
@allow_replace_option
@secret_keys_option
@full_option
@click.option("--save", is_flag=True, help="Keep the plan for a day, for `pkger apply --plan`.")
@output_option
@server_option
def plan(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    stack: str,
    recursive: bool,
    platform: str,
    org: str,
    env: tuple[str, ...],
    skip: tuple[str, ...],
    allow_empty: bool,
    allow_replace: bool,
    secrets: tuple[str, ...],
    full: bool,
    save: bool,
    output: str,
    server: str | None,
) -> None:
    """Show what an apply of FILE... would do; writes nothing, but for the plan that --save keeps."""
    from services.cli.packages import Wanted
    from services.cli.packages import plan as run
    from services.cli.secrets import split
    from services.cli.session import environment

    # A value may stand there, as for an apply; a plan has no use for it.
    keys = dict.fromkeys(split(secrets), "")
    wanted = Wanted(
        _some(files + more_files, stack),
        stack,
        org,
        _pairs(env),
        platform,
        recursive,
        skip,
        allow_empty,
        allow_replace=allow_replace,
        secrets=keys,
        full=full,
    )
    asyncio.run(run(wanted, environment(server), output, save))


@main.command()
@file_option
@more_files
@click.option(
    "--plan", "plan_name", default="", metavar="NAME", help="Run this saved plan, exactly, instead of FILE..."
)
@click.option(
    "--stack", callback=_stack, metavar="NAME", help="Stack that keeps what is applied; made when there is none."
)
@recursive_option
@platform_option
@org_option
@env_option
@skip_option
@allow_empty_option
@allow_replace_option
@allow_missing_option
@secret_option
@full_option
@author_option
@yes_option
@server_option
def apply(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    plan_name: str,
    stack: str,
    recursive: bool,
    platform: str,
    org: str,
    env: tuple[str, ...],
    skip: tuple[str, ...],
    allow_empty: bool,
    allow_replace: bool,
    allow_missing: bool,
    secrets: tuple[str, ...],
    full: bool,
    author: str,
    yes: bool,
    server: str | None,
) -> None:
    """Make the platform what FILE..., together one package, say."""
    from services.cli.packages import Wanted, apply_stored
    from services.cli.packages import apply as run
    from services.cli.secrets import given
    from services.cli.session import environment

    sources = files + more_files
    if plan_name:
        if sources or stack or recursive or platform or org or env or skip or allow_empty or allow_replace:
            raise click.UsageError("a saved plan says it all: leave out FILE... and what goes with it")
        asyncio.run(apply_stored(plan_name, environment(server), yes, allow_missing, given(secrets, ()), full, author))
        return
    values = given(secrets, _some(sources, stack))
    wanted = Wanted(
        sources,
        stack,
        org,
        _pairs(env),
        platform,
        recursive,
        skip,
        allow_empty,
        allow_missing,
        allow_replace,
        values,
        full=full,
        author=author,
    )
    asyncio.run(run(wanted, environment(server), yes))


@main.command("export", cls=CommandOfPairs)
@click.argument("pairs", nargs=-1, type=click.UNPROCESSED, metavar="[KIND NAME [--as NEW]]...")
@click.option("--all", "everything", is_flag=True, help="Everything of the organisation.")
@click.option("--stack", callback=_stack, metavar="NAME", help="What this stack has; also by its id.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Everything of the organisation of this kind.")
@click.option("--label", "labels", multiple=True, metavar="NAME", help="Everything that carries a label of this name.")
@click.option("-o", "--out", default="", metavar="FILE", help="Write FILE, .json as JSON.  [default: standard output]")
@click.option("-e", "--encoding", type=click.Choice(["yml", "json"]), help="How to write it, whatever FILE is called.")
@click.option(
    "--schema",
    default="package.schema.json",
    show_default=True,
    metavar="FILE",
    help="JSON Schema that each YAML document names for editors; empty for none.",
)
@platform_option
@org_option
@server_option
def export_package(
    pairs: tuple[str, ...],
    everything: bool,
    stack: str,
    kinds: tuple[str, ...],
    labels: tuple[str, ...],
    out: str,
    encoding: str | None,
    schema: str,
    platform: str,
    org: str,
    server: str | None,
) -> None:
    """
    Write what is there as a package: everything, a stack, resources by KIND and NAME (or id), or any of them together.

    Labels come along, and a rule brings its endpoint. --as NEW exports the resource before it under another name. Both
    --kind and --label may be repeated; what passes has one of the kinds and one of the labels. "Check" and
    "NotificationEndpoint" stand for all kinds of their family. Warnings, and the secrets that another target needs, are
    told on standard error.
    """
    from services.cli.export import Wanted
    from services.cli.export import export as run
    from services.cli.session import environment

    named = named_resources(pairs)
    if not (everything or stack or kinds or labels or named):
        raise click.UsageError("name what to export: --all, --stack, --kind, --label, or KIND NAME")
    wanted = Wanted(platform, org, stack, everything, kinds, labels, named, encoding or "", schema, out)
    asyncio.run(run(wanted, environment(server)))


@main.group()
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


@stacks.command("init")
@click.argument("name", default="")
@urls_option
@description_option
@platform_option
@org_option
@output_option
@server_option
def init_stack(
    name: str, urls: tuple[str, ...], description: str | None, platform: str, org: str, output: str, server: str | None
) -> None:
    """Make an empty stack: NAME, or one without a name, which is named by its id."""
    from services.cli.session import environment
    from services.cli.stack_records import Described, init

    asyncio.run(init(Described(name, description, urls), platform, org, environment(server), output))


@stacks.command("update")
@click.argument("stack", metavar="NAME")
@click.option("--name", metavar="NEW", help="New name; empty: none.")
@urls_option
@click.option("--no-urls", is_flag=True, help="Take all URLs away.")
@description_option
@click.option("--etag", default="", metavar="ETAG", help="Only if the stack has not changed since it had this etag.")
@platform_option
@org_option
@output_option
@server_option
def update_stack(
    stack: str,
    name: str | None,
    urls: tuple[str, ...],
    no_urls: bool,
    description: str | None,
    etag: str,
    platform: str,
    org: str,
    output: str,
    server: str | None,
) -> None:
    """Change what is said of stack NAME; --url replaces all of its URLs."""
    from services.cli.session import environment
    from services.cli.stack_records import Described, update

    if urls and no_urls:
        raise click.UsageError("--url and --no-urls contradict each other")
    if not (urls or no_urls) and name is None and description is None:
        raise click.UsageError("say what changes: --name, --description, --url or --no-urls")
    changes = Described(name, description, urls if urls or no_urls else None)
    asyncio.run(update(stack, changes, etag, platform, org, environment(server), output))


@stacks.command("list")
@click.argument("pattern", default="")
@click.option("--name", "names", multiple=True, metavar="NAME", help="Only those with this name. Again for more.")
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only those with this id. Again for more.")
@platform_option
@org_option
@output_option
@server_option
def list_stacks(
    pattern: str,
    names: tuple[str, ...],
    ids: tuple[str, ...],
    platform: str,
    org: str,
    output: str,
    server: str | None,
) -> None:
    """List all stacks, or those with a name like PATTERN: * stands for any characters, ? for one."""
    from services.cli.session import environment
    from services.cli.stacks import Chosen, list_all

    asyncio.run(list_all(environment(server), output, Chosen(platform, org, ids, names, pattern)))


@stacks.command("show")
@click.argument("name")
@platform_option
@org_option
@output_option
@server_option
def show_stack(name: str, platform: str, org: str, output: str, server: str | None) -> None:
    """Show the record of stack NAME."""
    from services.cli.session import environment
    from services.cli.stacks import show

    asyncio.run(show(name, platform, org, environment(server), output))


@stacks.command("history")
@click.argument("name")
@platform_option
@org_option
@click.option("--limit", type=click.IntRange(1), default=None, help="Only so many of the newest.")
@output_option
@server_option
def stack_history(name: str, platform: str, org: str, limit: int | None, output: str, server: str | None) -> None:
    """List the revisions of stack NAME, newest first."""
    from services.cli.history import history
    from services.cli.session import environment

    asyncio.run(history(name, platform, org, environment(server), output, limit or 0))


@stacks.command("diff")
@click.argument("name")
@click.argument("old", type=int)
@click.argument("new", type=int)
@platform_option
@org_option
@full_option
@output_option
@server_option
def diff_revisions(
    name: str, old: int, new: int, platform: str, org: str, full: bool, output: str, server: str | None
) -> None:
    """Show what is different between the revisions OLD and NEW of stack NAME."""
    from services.cli.history import diff
    from services.cli.session import environment

    asyncio.run(diff(name, old, new, platform, org, environment(server), output, full))


@stacks.command("rollback")
@click.argument("name")
@click.argument("revision", type=int)
@platform_option
@org_option
@skip_option
@allow_empty_option
@allow_replace_option
@allow_missing_option
@full_option
@author_option
@yes_option
@server_option
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
    yes: bool,
    server: str | None,
) -> None:
    """Make the platform what REVISION of stack NAME says; the history goes on with a new revision."""
    from services.cli.packages import Wanted
    from services.cli.packages import apply as run
    from services.cli.session import environment

    if revision < 1:
        raise click.BadParameter("revisions are counted from 1", param_hint="REVISION")
    wanted = Wanted(
        (),
        name,
        org,
        {},
        platform,
        skip=skip,
        allow_empty=allow_empty,
        allow_missing=allow_missing,
        allow_replace=allow_replace,
        full=full,
        revision=revision,
        author=author,
    )
    asyncio.run(run(wanted, environment(server), yes))


@stacks.command("policy")
@click.argument("name")
@click.option("-f", "--file", default="", metavar="FILE", help="YAML or JSON file with the whole policy.")
@click.option("--set", "changes", multiple=True, metavar="FIELD=VALUE", help="Set a field; FIELD= for the default.")
@platform_option
@org_option
@output_option
@server_option
def stack_policy(
    name: str, file: str, changes: tuple[str, ...], platform: str, org: str, output: str, server: str | None
) -> None:
    """Show the policy of stack NAME, or change it: what becomes of its resources besides being written."""
    from services.cli.keeping import policy
    from services.cli.session import environment

    if any("=" not in change for change in changes):
        raise click.BadParameter("write FIELD=VALUE", param_hint="--set")
    asyncio.run(policy(name, _target(platform, org), file, changes, environment(server), output))


@stacks.command("import")
@click.argument("name")
@click.argument("kind")
@click.argument("resource_id", metavar="ID")
@click.option("--as", "object_name", default="", metavar="NAME", help="metadata.name of its object.  [default: made]")
@platform_option
@org_option
@output_option
@server_option
def import_resource(
    name: str, kind: str, resource_id: str, object_name: str, platform: str, org: str, output: str, server: str | None
) -> None:
    """Take the resource ID of KIND, which no stack owns, into stack NAME."""
    from services.cli.keeping import take_in
    from services.cli.session import environment

    resource = (kind, resource_id)
    asyncio.run(take_in(name, _target(platform, org), resource, object_name, environment(server), output))


@stacks.command("forget")
@click.argument("name")
@click.argument("objects", nargs=-1, required=True, metavar="KIND:NAME...")
@platform_option
@org_option
@server_option
def forget_resource(name: str, objects: tuple[str, ...], platform: str, org: str, server: str | None) -> None:
    """Let go of the resources of objects of stack NAME; they stay on the platform."""
    from services.cli.keeping import forget
    from services.cli.session import environment

    asyncio.run(forget(name, _target(platform, org), [*map(_key, objects)], environment(server)))


@stacks.command("rename")
@click.argument("name")
@click.argument("object_key", metavar="KIND:NAME")
@click.argument("new_name")
@platform_option
@org_option
@server_option
def rename_resource(name: str, object_key: str, new_name: str, platform: str, org: str, server: str | None) -> None:
    """Give an object of stack NAME another metadata.name in the record: it is the same resource."""
    from services.cli.keeping import rename
    from services.cli.session import environment

    asyncio.run(rename(name, _target(platform, org), _key(object_key), new_name, environment(server)))


@stacks.command("watch")
@click.argument("name")
@platform_option
@org_option
@output_option
@server_option
def watch_stack(name: str, platform: str, org: str, output: str, server: str | None) -> None:
    """Show what happens to stack NAME, until it is gone."""
    from services.cli.session import environment
    from services.cli.stack_watch import watch

    asyncio.run(watch(name, platform, org, environment(server), output))


@stacks.command("drift", cls=DetailedCommand)
@click.argument("name")
@click.argument("keys", nargs=-1, metavar="[KIND[:NAME]]...")
@platform_option
@org_option
@click.option("--all", "show_all", is_flag=True, help="Show what is in sync, too, and what policies ignore.")
@click.option("--full", is_flag=True, help="Show every resource, and values uncut.")
@click.option(OPTION, is_flag=True, help="Exit status 2: something is not in sync; 1: any error.")
@output_option
@server_option
def drift_of_stack(
    name: str,
    keys: tuple[str, ...],
    platform: str,
    org: str,
    show_all: bool,
    full: bool,
    detailed_exitcode: bool,
    output: str,
    server: str | None,
) -> None:
    """
    Show what became of the resources of stack NAME since its last apply, worst first.

    Each field that differs has three sides: what the package says, what was applied, what is live. KIND:NAME looks at
    one resource, KIND at all of a kind.
    """
    from pkger.model.v1 import object_pb2

    from services.cli.drift import drift, keys_of
    from services.cli.session import environment

    target = object_pb2.Target(platform=platform, org=org)
    wanted = keys_of(keys)
    has_drift = asyncio.run(drift(name, wanted, target, environment(server), output, show_all, full))
    if has_drift and detailed_exitcode:
        sys.exit(2)


@stacks.command("uninstall")
@click.argument("name")
@platform_option
@org_option
@full_option
@author_option
@yes_option
@server_option
def uninstall_stack(name: str, platform: str, org: str, full: bool, author: str, yes: bool, server: str | None) -> None:
    """Remove all that stack NAME created, and keep the stack; what it adopted stays."""
    from services.cli.packages import Wanted
    from services.cli.session import environment
    from services.cli.stack_removal import uninstall

    wanted = Wanted((), name, org, {}, platform, full=full, author=author)
    asyncio.run(uninstall(wanted, environment(server), yes))


@stacks.command("delete")
@click.argument("name")
@platform_option
@org_option
@full_option
@author_option
@yes_option
@server_option
def delete_stack(name: str, platform: str, org: str, full: bool, author: str, yes: bool, server: str | None) -> None:
    """Remove all that stack NAME created, and the stack; what it adopted stays."""
    from services.cli.packages import Wanted
    from services.cli.session import environment
    from services.cli.stack_removal import delete

    wanted = Wanted((), name, org, {}, platform, full=full, author=author)
    asyncio.run(delete(wanted, environment(server), yes))


@main.group()
def plans() -> None:
    """List saved plans and those of operations; show one."""


@plans.command("list")
@click.option("--stack", default="", metavar="NAME", help="Only plans for stacks of this name.")
@output_option
@server_option
def list_plans(stack: str, output: str, server: str | None) -> None:
    """List the newest plans."""
    from services.cli.plans import list_all
    from services.cli.session import environment

    asyncio.run(list_all(environment(server), stack, output))


@plans.command("show")
@click.argument("name")
@full_option
@output_option
@server_option
def show_plan(name: str, full: bool, output: str, server: str | None) -> None:
    """Show plan NAME, and what became of it."""
    from services.cli.plans import show
    from services.cli.session import environment

    asyncio.run(show(name, environment(server), output, full))


@main.group()
def operations() -> None:
    """List operations; show, watch, cancel or recover one."""


@operations.command("list")
@click.option("--unfinished", is_flag=True, help="Only those that are not finished.")
@output_option
@server_option
def list_operations(unfinished: bool, output: str, server: str | None) -> None:
    """List the newest operations."""
    from services.cli.operations import list_all
    from services.cli.session import environment

    asyncio.run(list_all(environment(server), unfinished, output))


@operations.command("show")
@click.argument("name")
@output_option
@server_option
def show_operation(name: str, output: str, server: str | None) -> None:
    """Show operation NAME."""
    from services.cli.operations import show
    from services.cli.session import environment

    asyncio.run(show(name, environment(server), output))


@operations.command("watch")
@click.argument("name")
@server_option
def watch_operation(name: str, server: str | None) -> None:
    """Show what happens in operation NAME, from its beginning to its end."""
    from services.cli.operations import watch
    from services.cli.session import environment

    asyncio.run(watch(name, environment(server)))


@operations.command("cancel")
@click.argument("name")
@server_option
def cancel_operation(name: str, server: str | None) -> None:
    """Ask operation NAME to roll back."""
    from services.cli.operations import cancel
    from services.cli.session import environment

    asyncio.run(cancel(name, environment(server)))


@operations.command("recover")
@click.argument("name")
@click.option(
    "--step",
    "steps",
    multiple=True,
    metavar="NUMBER=WAY",
    help="What is decided for a blocked step: retry, skip, force, keep or adopt:ID. May be repeated.",
)
@server_option
def recover_operation(name: str, steps: tuple[str, ...], server: str | None) -> None:
    """
    Carry on operation NAME, which is blocked.

    `pkger operations show` lists the blocked steps and the ways out that fit. retry: look again, and send it again if
    it did not happen. skip: give the step, or its undo, up. force: write over whatever is there. keep: take what is
    there as the outcome. adopt:ID: the creation made the resource with that id.
    """
    from services.cli.operations import recover
    from services.cli.session import environment

    asyncio.run(recover(name, _decisions(steps), environment(server)))


@main.group()
def admin() -> None:
    """What operators of the services do."""


@admin.command("restored")
@server_option
def mark_restored(server: str | None) -> None:
    """
    Mark a store that was just restored from a backup.

    Run it before an applier runs. Unfinished operations are blocked until somebody recovers them, and plans that wait
    to be applied are stale: both may have run since the backup.
    """
    from services.cli.admin import restored
    from services.cli.session import environment

    asyncio.run(restored(environment(server)))


def _some(files: tuple[str, ...], stack: str = "") -> tuple[str, ...]:
    """*files*, of which there has to be one, unless a *stack* may have URLs."""
    if not (files or stack):
        raise click.UsageError("name at least one package file with -f")
    return files


def _decisions(values: tuple[str, ...]) -> dict[int, tuple[str, str]]:
    """NUMBER=WAY texts, as word and id of a resource by step number."""
    from services.cli.operations import DECISIONS

    decisions: dict[int, tuple[str, str]] = {}
    for value in values:
        number, _, way = value.partition("=")
        word, _, resource_id = way.partition(":")
        if not (number.isascii() and number.isdigit() and word in DECISIONS):
            raise click.UsageError(
                f"--step {value!r}: write NUMBER=WAY; ways are {', '.join(DECISIONS)}, adopt as adopt:ID"
            )
        if int(number) in decisions:
            raise click.UsageError(f"--step: step {number} is decided twice")
        decisions[int(number)] = word, resource_id
    return decisions


def _pairs(values: tuple[str, ...]) -> dict[str, str]:
    """KEY=VALUE texts, split at the first "="."""
    pairs = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not (key and equals):
            raise click.UsageError(f"--env-ref {value!r}: write KEY=VALUE")
        pairs[key] = text
    return pairs


if __name__ == "__main__":
    main()
