"""Templates over HTTP, by the steps of the recorded folders (golden/reports)."""

from tests import needs
from tests.corpora import RECORDED
from tests.gateway.test_nameless_stacks import Site, changes, site

__all__ = ["site"]

FOLDER, AGAIN = RECORDED / "reports" / "nameless-merge", RECORDED / "reports" / "re-export-names"


@needs.shared(FOLDER)
async def test_templates_without_a_stack_stay_apart(site: Site) -> None:
    first, second = [await site.apply((FOLDER / name).read_text("utf-8"), name) for name in ("a.yml", "b.yml")]
    assert len(await site.stacks()) == 2
    before = await site.content(first["stackID"])
    await site.remove(second["stackID"])
    assert await site.content(first["stackID"]) == before
    assert {("Bucket", "first-data"), ("Dashboard", "First")} <= {*await site.names()}


@needs.shared(AGAIN)
async def test_a_template_that_is_exported_again_keeps_the_resources_of_its_stack(site: Site) -> None:
    done = await site.apply((AGAIN / "v1.yml").read_text("utf-8"), "t.yml")
    status, again = await site.answer((AGAIN / "v2.yml").read_text("utf-8"), "t.yml", stackID=done["stackID"])
    assert (status, again["stackID"], changes(again)) == (201, done["stackID"], [])
