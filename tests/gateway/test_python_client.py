"""Uses the gateway with the Python client of InfluxDB, which checks answers most strictly."""

import asyncio
import warnings
from pathlib import Path
from typing import Any

from tests.cluster import Cluster
from tests.gateway.gateway import TOKEN, gateway, settings
from tests.gateway.packages import EVERY_KIND, EXAMPLES

with warnings.catch_warnings():
    # Its imports cause deprecation warnings.
    warnings.simplefilter("ignore")
    from influxdb_client import InfluxDBClient, StackResources
    from influxdb_client.service.templates_service import TemplatesService


def use_packages_and_stacks(address: str) -> None:
    """Call every method of the client for packages and stacks."""
    with InfluxDBClient(url=f"http://{address}", token=TOKEN) as client:
        assert client.ready().status == "ready"
        assert client.ping()
        assert client.build() == "OSS"
        assert client.users_api().me().name == "tester"
        (org,) = client.organizations_api().find_organizations(org="example")
        assert client.organizations_api().find_organization(org.id).name == "example"
        service = TemplatesService(client.api_client)
        stack = service.create_stack(post_stack_request={"orgID": org.id, "name": "first", "urls": []})
        for package in (EVERY_KIND, EXAMPLES):
            body: dict[str, Any] = {
                "orgID": org.id,
                "stackID": stack.id,
                "template": {"contents": package},
                "secrets": {"tok": "value"},
            }
            shown = service.apply_template({**body, "dryRun": True})
            done = service.apply_template(body)
            assert (shown.stack_id, done.stack_id) == (stack.id, stack.id)
            names = {item["metadata"]["name"] for item in package}
            assert {label.template_meta_name for label in done.summary.labels} <= names
        assert [check.name for check in service.apply_template({**body, "dryRun": True}).summary.checks or []] == []
        (listed,) = service.list_stacks(org_id=org.id, name="first").stacks
        assert listed.id == stack.id
        read = service.read_stack(stack.id)
        assert len(read.events[-1].resources) == len(EXAMPLES)
        assert isinstance(read.events[-1].resources[0], StackResources)
        assert (
            service.update_stack(stack.id, patch_stack_request={"description": "words"}).events[-1].description
            == "words"
        )
        exported = service.export_template(template_export_by_id={"stackID": stack.id})
        assert len(exported) == len(EXAMPLES)
        gone = service.uninstall_stack(stack.id)
        assert gone.events[-1].event_type == "uninstall"
        service.delete_stack(stack.id, org.id)
        assert service.list_stacks(org_id=org.id).stacks == []


async def test_the_python_client_manages_packages_and_stacks(services: Cluster, tmp_path: Path) -> None:
    async with gateway(settings(tmp_path), services) as address:
        await asyncio.to_thread(use_packages_and_stacks, address)
