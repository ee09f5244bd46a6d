"""``pkger validate``, ``schema``, ``kinds``, ``plan`` and ``apply``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from services.cli import options
from services.cli.common import common
from services.cli.options import common_options

if TYPE_CHECKING:
    from pkger.applier.v1.applier_pb2 import RunOptions
    from pkger.planner.v1.planner_pb2 import PlanOptions


@click.command(
    epilog="""\b
Examples:
  pkger validate -f fleet.yml
  pkger validate -R -f packages/ --env-ref stage=prod
  jsonnet fleet.jsonnet | pkger validate -f - -o json"""
)
@options.file_option
@options.more_files
@options.package_options
@common_options
def validate(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    package_options: options.PackageOptions,
) -> int:
    """Validate FILE..., together one package: print each violation with its location. Exit status 1: invalid."""
    from services.cli.packages.validate import ValidateInput
    from services.cli.packages.validate import validate as check
    from services.cli.run_async import run

    validate_input = ValidateInput(
        _some(files + more_files),
        package_options.recursive,
        package_options.env_values,
        package_options.encoding or "",
        package_options.libraries,
    )
    return 0 if run(check(validate_input, common().environ(), common().format)) else 1


@click.command(
    epilog="""\b
Examples:
  pkger schema > object.schema.json
  pkger schema Bucket
  pkger schema --array > package.schema.json"""
)
@click.argument("kind", default="")
@click.option("--array", "is_array", is_flag=True, help="Schema of a package that is one JSON array of objects.")
@common_options
def schema(kind: str, is_array: bool) -> None:
    """Print the JSON Schema of KIND, Package (the manifest) or Lifecycle, for editors; without KIND, of any object."""
    from services.cli.packages.kinds import print_schema
    from services.cli.run_async import run

    run(print_schema(kind, is_array, common().environ()))


@click.command(
    epilog="""\b
Examples:
  pkger kinds
  pkger kinds -o json"""
)
@common_options
def kinds() -> None:
    """List the kinds of objects that packages may have."""
    from services.cli.packages.kinds import print_kinds
    from services.cli.run_async import run

    run(print_kinds(common().environ(), common().format))


@click.command(
    epilog="""\b
Examples:
  pkger plan -f fleet.yml --stack fleet
  pkger plan -f fleet.yml --stack fleet --out fleet.plan && pkger apply --plan fleet.plan
  pkger plan -f fleet.yml --stack fleet --detailed-exitcode    # 0: no changes, 2: changes, 1: error
  pkger plan --snapshot ID --stack fleet"""
)
@options.file_option
@options.more_files
@options.snapshot_option
@options.stack_option
@options.package_options
@options.target_options
@options.plan_options
@options.secret_keys_option
@options.full_option
@click.option("--save", is_flag=True, help="Store the plan for a day, for `pkger apply --plan`.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Store the plan, and write its id and digest to FILE, for `pkger apply --plan FILE`.",
)
@click.option("--detailed-exitcode", "detailed", is_flag=True, help="Exit with 0: no changes, 2: changes, 1: error.")
@common_options
def plan(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    snapshot: str,
    stack: str,
    package_options: options.PackageOptions,
    target: tuple[str, str],
    secrets: tuple[str, ...],
    full: bool,
    save: bool,
    out: Path | None,
    detailed: bool,
    plan_options: "PlanOptions",
) -> int:
    """Show what an apply of FILE... would do. Nothing is written, except a plan that --save or --out stores."""
    from services.cli.output.interaction import Interaction
    from services.cli.plan.apply import SaveOptions
    from services.cli.plan.apply import plan as show
    from services.cli.plan.plan_input import PlanInput
    from services.cli.plan.secrets import read_keys
    from services.cli.run_async import run

    typed = common()
    _refuse_sources(snapshot, files + more_files, stack, package_options)
    plan_input = PlanInput(
        files=_some(files + more_files, stack),
        snapshot=snapshot,
        stack=stack,
        platform=target[0],
        org=target[1],
        env=package_options.env_values,
        recursive=package_options.recursive,
        encoding=package_options.encoding or "",
        libraries=package_options.libraries,
        options=plan_options,
        # Values are accepted, as for an apply, and not used: a plan needs only the keys.
        secrets=dict.fromkeys(read_keys(secrets), ""),
    )
    return run(
        show(
            plan_input, typed.environ(), Interaction(typed.format, typed.quiet, full), SaveOptions(save, out, detailed)
        )
    )


@click.command(
    epilog="""\b
Examples:
  pkger apply -f labels.json -f fleet.yml --stack fleet
  pkger apply -R -f packages/ --stack fleet --env-ref stage=prod --env-ref replicas:=3
  pkger apply -f alerts.yml --stack alerts --secret slack-token
  pkger apply --plan fleet.plan --yes"""
)
@options.file_option
@options.more_files
@click.option(
    "--plan",
    "plan_name",
    default="",
    metavar="PLAN",
    help="Run exactly this saved plan instead of FILE...: its id, or the file of `pkger plan --out`.",
)
@options.snapshot_option
@options.stack_option
@options.package_options
@options.platform_option
@options.org_option
@options.plan_options
@options.run_options
@options.secret_option
@options.secret_file_option
@options.full_option
@options.wait_option
@options.yes_option
@common_options
def apply(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    plan_name: str,
    snapshot: str,
    stack: str,
    package_options: options.PackageOptions,
    platform: str,
    org: str,
    secrets: tuple[str, ...],
    secret_files: tuple[str, ...],
    full: bool,
    wait: float,
    yes: bool,
    plan_options: "PlanOptions",
    run_options: "RunOptions",
) -> None:
    """
    Apply FILE..., together one package, to the platform.

    At a terminal, the plan is shown and needs approval. Without a terminal, a plan that deletes resources, loses data
    or creates duplicates is refused, and any other plan runs. --yes runs the plan without asking.
    """
    from services.cli.output.interaction import Interaction
    from services.cli.packages import values
    from services.cli.plan.apply import apply as apply_package
    from services.cli.plan.apply import apply_stored
    from services.cli.plan.plan_input import PlanInput
    from services.cli.plan.secrets import read_secrets
    from services.cli.run_async import run

    typed, sources = common(), files + more_files
    interaction = Interaction(typed.format, typed.quiet, full, yes, wait)
    if plan_name:
        typed_too = sources or snapshot or stack or platform or org or typed.target or package_options
        if typed_too or plan_options.ListFields():
            raise click.UsageError("--plan cannot be combined with FILE... or its options: the saved plan has them all")
        secret_values = {**values.secret_files(secret_files), **read_secrets(secrets, ())}
        run(apply_stored(plan_name, typed.environ(), interaction, run_options, secret_values))
        return
    platform, org = typed.place(platform, org)
    _refuse_sources(snapshot, sources, stack, package_options)
    plan_input = PlanInput(
        files=_some(sources, stack),
        snapshot=snapshot,
        stack=stack,
        platform=platform,
        org=org,
        env=package_options.env_values,
        recursive=package_options.recursive,
        encoding=package_options.encoding or "",
        libraries=package_options.libraries,
        options=plan_options,
        secrets={**values.secret_files(secret_files), **read_secrets(secrets, sources)},
    )
    run(apply_package(plan_input, typed.environ(), interaction, run_options))


def _some(files: tuple[str, ...], stack: str = "") -> tuple[str, ...]:
    """*files*; there must be one, unless there is a *stack*, which may have URLs."""
    if not (files or stack):
        raise click.UsageError("name at least one package file with -f")
    return files


def _refuse_sources(snapshot: str, files: tuple[str, ...], stack: str, package_options: options.PackageOptions) -> None:
    """Refuse a *snapshot* that is no whole input: without a stack, or with sources."""
    if snapshot and (files or package_options):
        raise click.UsageError("--snapshot cannot be combined with FILE... or its options: it has the package")
    if snapshot and not stack:
        raise click.UsageError("name the stack that the snapshot is restored into with --stack")
