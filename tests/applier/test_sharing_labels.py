"""
Labels of shared resources, when a stack ends that adopted the label (docs/reference/engine.md, "Shared resources").
"""

import pytest
from pkger.driver.v1 import driver_pb2

from tests.applier.test_sharing import RAW, SENSORS, beside, ended, names
from tests.applier.world import SUCCEEDED, Case, World, end, lines
from tests.apply.packages import an_object

LABELLED = an_object("Bucket", "raw", "raw", ["l"])


async def somebodys_label(case: Case) -> None:
    """The label ``sensors``, which exists before any stack."""
    creation = driver_pb2.CreateResource(kind="Label", spec_json='{"name":"sensors"}')
    await case.driver.change(case.org, driver_pb2.Mutation(create=creation))


@pytest.mark.parametrize("leaving", ["the user", "the owner"])
async def test_an_adopted_label_is_detached_from_what_is_left_to_others(faulty: World, leaving: str) -> None:
    case = faulty.case()
    await somebodys_label(case)
    theirs = beside(case, "theirs")
    plain = an_object("Bucket", "b", "raw")
    owner, user = ((plain,), (SENSORS, LABELLED)) if leaving == "the user" else ((SENSORS, RAW), (plain,))
    assert (await ended(case, *owner)).state == SUCCEEDED
    assert (await ended(theirs, *user)).state == SUCCEEDED
    assert await names(case) == [("raw", ("sensors",)), ("sensors", ())]

    assert end(await (theirs if leaving == "the user" else case).uninstall()).state == SUCCEEDED

    assert await names(case) == [("raw", ()), ("sensors", ())]


async def test_an_adopted_label_that_another_record_wants_stays_attached(faulty: World) -> None:
    case = faulty.case()
    await somebodys_label(case)
    theirs = beside(case, "theirs")
    await ended(case, SENSORS, RAW)
    await ended(theirs, SENSORS, LABELLED)

    assert end(await case.uninstall()).state == SUCCEEDED

    assert await names(case) == [("raw", ("sensors",)), ("sensors", ())]


async def test_the_detachment_of_an_adopted_label_names_it(faulty: World) -> None:
    case = faulty.case()
    await somebodys_label(case)
    await ended(case, SENSORS, RAW)

    assert ["done: detach Bucket b l"] in lines(await case.uninstall())
