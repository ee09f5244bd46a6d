"""How long the services keep the description of a driver."""

import pytest

from services.core.errors import KindUnsupported
from tests.applier.world import SUCCEEDED, World, end
from tests.apply.packages import LABEL, an_object, text


async def test_a_description_that_lacks_a_kind_is_asked_for_again(faulty: World) -> None:
    """A driver that answered wrong once refuses one plan, and not all plans of its connection."""
    case = faulty.case()
    await case.driver.forget("Bucket")
    package = text(LABEL, an_object("Bucket", "raw", "raw"))
    with pytest.raises(KindUnsupported):
        await case.apply(package)
    assert end(await case.apply(package)).state == SUCCEEDED
