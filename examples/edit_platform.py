"""
Changes the description of a bucket on the embedded platform, as a user would do it outside pkger: for docs/tour.md.

It opens the database of the platform in PKGER_HOME itself, so no service may use that database meanwhile.

usage: python examples/edit_platform.py BUCKET DESCRIPTION
"""

import asyncio
import json
import os
import sys

from services.core.model import DEFAULT_ORG, DEFAULT_PLATFORM
from services.drivers.mutation import Update
from services.drivers.registry import opened
from services.kinds.format.canonical import spec_of
from services.platforms import Platform
from services.settings import load


async def edit(name: str, description: str) -> None:
    """Write *description* to the bucket with the display name *name*."""
    platform = Platform(DEFAULT_PLATFORM, driver="embedded", address="")
    async with opened(platform, load(os.environ).data) as driver:
        buckets = [each for each in await driver.list_resources(DEFAULT_ORG, ["Bucket"]) if each.display_name == name]
        if not buckets:
            sys.exit(f"Error: there is no bucket {name!r}")
        changed = json.loads(buckets[0].spec_json) | {"description": description}
        await driver.mutate(DEFAULT_ORG, None, [Update(buckets[0].id, spec_of(changed))])


if len(sys.argv) != 3:
    sys.exit("usage: python examples/edit_platform.py BUCKET DESCRIPTION")
asyncio.run(edit(*sys.argv[1:]))
