"""The options of plans and runs: ``PlanOptions`` and ``RunOptions`` as commands have them."""

from collections.abc import Mapping

import click
import pytest
from google.protobuf.descriptor import FieldDescriptor
from pkger.applier.v1 import applier_pb2
from pkger.planner.v1 import planner_pb2

from services.cli.commands.packages import apply, plan
from services.cli.commands.stacks import delete_stack, roll_back, uninstall_stack
from services.cli.options import plan_options, run_options

PLAN: Mapping[str, FieldDescriptor] = planner_pb2.PlanOptions.DESCRIPTOR.fields_by_name
RUN: Mapping[str, FieldDescriptor] = applier_pb2.RunOptions.DESCRIPTOR.fields_by_name


def names(command: click.Command) -> set[str]:
    return {str(each.name) for each in command.params}


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        (plan, {*PLAN}),
        (apply, {*PLAN, *RUN}),
        (roll_back, {*PLAN, *RUN}),
        (uninstall_stack, {*RUN} - {"allow_missing"}),
        (delete_stack, {*RUN} - {"allow_missing"}),
    ],
)
def test_commands_have_an_option_for_each_field(command: click.Command, fields: set[str]) -> None:
    """The digest has no option: the command sets it to the digest of the plan that the user approves."""
    assert {*PLAN, *RUN} & names(command) == fields - {"expected_plan_digest"}


def test_the_values_of_options_are_one_message() -> None:
    got = {}

    @click.command()
    @plan_options
    @run_options
    def command(**values: object) -> None:
        got.update(values)

    typed = ["--skip", "Label:red", "--skip", "Bucket", "--allow-replace", "--keep-others"]
    typed += ["--author", "ann", "--max-deletes", "0"]
    command.main(typed, standalone_mode=False)
    skip = [planner_pb2.Skip(kind="Label", name="red"), planner_pb2.Skip(kind="Bucket")]
    assert got == {
        "plan_options": planner_pb2.PlanOptions(skip=skip, allow_replace=True, keep_others=True),
        "run_options": applier_pb2.RunOptions(author="ann", max_deletes=0),
    }
