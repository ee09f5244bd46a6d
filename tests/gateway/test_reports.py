"""Templates that are applied without a stack, by the steps of the recorded folder (golden/reports/nameless-merge)."""

from tests import needs
from tests.corpora import RECORDED
from tests.gateway.test_nameless_stacks import Site, site

__all__ = ["site"]

FOLDER = RECORDED / "reports" / "nameless-merge"


@needs.shared(FOLDER)
async def test_templates_without_a_stack_stay_apart(site: Site) -> None:
    first, second = [await site.apply((FOLDER / name).read_text("utf-8"), name) for name in ("a.yml", "b.yml")]
    assert len(await site.stacks()) == 2
    before = await site.content(first["stackID"])
    await site.remove(second["stackID"])
    assert await site.content(first["stackID"]) == before
    assert {("Bucket", "first-data"), ("Dashboard", "First")} <= {*await site.names()}
