"""How many calls an apply takes: each service is asked once for what it knows."""

from tests.apply.packages import LABEL, an_object, text
from tests.cluster import Calls, Cluster

PACKAGE = text(LABEL, an_object("Bucket", "raw", "raw"))


async def test_a_first_apply_of_two_objects_takes_few_calls(services: Cluster, calls: Calls) -> None:
    await services.apply(text(LABEL), stack="other", org="elsewhere")
    calls.methods.clear()
    await services.apply(PACKAGE, stack="s")
    assert sorted(calls.methods) == [
        # The outcomes of a stage are stored with the intents of the next one, and those of the last one with the end.
        "AdvanceOperation",
        "AdvanceOperation",
        "Apply",
        "BeginOperation",
        "FinishOperation",
        "ListResources",
        "Mutate",
        "Mutate",
        "ParsePackage",
        "PlanOperation",
        "PrepareSpecs",
        "ReadPlan",
        "StorePlan",
    ]


async def test_an_apply_with_nothing_to_do_takes_few_calls(services: Cluster, calls: Calls) -> None:
    await services.apply(PACKAGE, stack="s")
    calls.methods.clear()
    await services.apply(PACKAGE, stack="s")
    assert sorted(calls.methods) == [
        "Apply",
        "BeginOperation",
        "FinishOperation",
        # The record of the stack, and the platform.
        "ListResources",
        "ListResources",
        "ParsePackage",
        "PlanOperation",
    ]


async def test_the_driver_describes_itself_once_for_each_connection(services: Cluster, calls: Calls) -> None:
    await services.apply(text(LABEL), stack="s", org="here")
    calls.methods.clear()
    await services.apply(text(LABEL), stack="s", org="there")
    assert calls.count("Describe") == 0
