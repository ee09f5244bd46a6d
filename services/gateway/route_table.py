"""The rows of all routes."""

from services.gateway.answers import Code
from services.gateway.applying import ApplyRoutes
from services.gateway.descriptions import content, id_parameter, parameter, route
from services.gateway.exporting import YAML_TYPE, ExportRoutes
from services.gateway.openapi import OpenApi
from services.gateway.org_routes import OrgRoutes
from services.gateway.organizations import Organizations
from services.gateway.probes import Probes
from services.gateway.routes import Access, Route
from services.gateway.run_plan import Runner
from services.gateway.schemas import ref
from services.gateway.services import Services
from services.gateway.stack_reading import StackReader
from services.gateway.stacks import StackRoutes
from services.gateway.transcoding.problems import pkger_form
from services.gateway.transcoding.route_table import API_PATH, api_components, api_routes

FORMS = {API_PATH: pkger_form}
"""Forms of errors at paths without a row, by prefix."""

_LIST = {"type": "array", "items": {"type": "string"}}

_WHOLE = {"type": "integer"}

_PAGE = (
    parameter("org", "name of the one organization to list"),
    parameter("orgID", "id of the one organization to list"),
    parameter("limit", "most organizations to list, from 1 to 100; without it, all", _WHOLE),
    parameter("offset", "number of organizations to leave out at the beginning", _WHOLE),
)

_SELECTION = (
    id_parameter("orgID", required=True),
    parameter("name", "stacks with one of these names", _LIST),
    parameter("stackID", "stacks with one of these ids", _LIST),
)

_KEY = parameter("Idempotency-Key", "the same key with the same body gets the same answer, for a day", place="header")

_REFUSED = {
    "description": "The package breaks rules, or cannot be applied.",
    "content": {"application/json": {"schema": {"anyOf": [ref("Refusal"), ref("Error")]}}},
}


def routes(services: Services, organizations: Organizations, version: str) -> list[Route]:
    """
    All rows.

    Args:
        services: Connections to the services.
        organizations: The organizations that are served.
        version: Version of pkger.
    """
    described = OpenApi(version, api_components())
    rows = [*_open_rows(services, version, described), *_influx_rows(services, organizations), *api_routes(services)]
    described.describe(rows)
    return rows


def _open_rows(services: Services, version: str, described: OpenApi) -> list[Route]:
    """Routes that need no token."""
    probes, access = Probes(services, version), Access.OPEN
    failing = {503: content("A service does not serve.", "Health")}
    return [
        route("GET", "/health", probes.health, "GetHealth", answer="Health", more=failing, access=access),
        route("GET", "/ready", probes.ready, "GetReady", answer="Ready", access=access),
        route("GET", "/ping", probes.ping, "GetPing", status=204, access=access),
        route("HEAD", "/ping", probes.ping, "HeadPing", status=204, access=access),
        route("GET", "/api/v2", probes.links, "GetRoutes", answer="Links", access=access),
        route("GET", "/api/v2/setup", probes.setup, "GetSetup", answer="Setup", access=access),
        Route("POST", "/api/v2/signin", probes.sign_in, access=access),
        route("GET", "/api/v2/swagger.json", described.read, "GetOpenApi", answer="OpenApi", access=access),
        route("GET", "/api/v2/me", probes.me, "GetMe", answer="Me"),
    ]


def _influx_rows(services: Services, organizations: Organizations) -> list[Route]:
    """Routes for organizations, packages and stacks, as InfluxDB has them."""
    reader, runner = StackReader(services.stack, organizations), Runner(services.stack)
    orgs, exports = OrgRoutes(organizations), ExportRoutes(services, organizations, reader)
    applies = ApplyRoutes(services, organizations, reader, runner)
    stacks = StackRoutes(services, organizations, reader, runner)
    missing, of_org = (Code.NOT_FOUND,), (id_parameter("orgID"),)
    dry = {200: content("The changes that an apply would make (dryRun).", "ApplyAnswer"), 422: _REFUSED}
    package = {200: content("The package, as YAML if Accept prefers it.", "Package", YAML_TYPE.partition(";")[0])}
    apply, export = "/api/v2/templates/apply", "/api/v2/templates/export"
    every, one, uninstall = "/api/v2/stacks", "/api/v2/stacks/{stackID}", "/api/v2/stacks/{stackID}/uninstall"
    return [
        route("GET", "/api/v2/orgs", orgs.listing, "GetOrgs", answer="Organizations", query=_PAGE, errors=missing),
        route("GET", "/api/v2/orgs/{orgID}", orgs.read, "GetOrgsID", answer="Organization", errors=missing),
        route(
            "POST",
            apply,
            applies.apply,
            "ApplyTemplate",
            status=201,
            answer="ApplyAnswer",
            body="ApplyRequest",
            query=(_KEY,),
            more=dry,
        ),
        route("POST", export, exports.export, "ExportTemplate", body="ExportRequest", more=package),
        route("GET", every, stacks.listing, "ListStacks", answer="Stacks", query=_SELECTION, errors=missing),
        route("POST", every, stacks.create, "CreateStack", status=201, answer="Stack", body="StackCreation"),
        route("GET", one, stacks.read, "ReadStack", answer="Stack", errors=missing),
        route("PATCH", one, stacks.update, "UpdateStack", answer="Stack", body="StackUpdate"),
        route("DELETE", one, stacks.delete, "DeleteStack", status=204, query=of_org, errors=(Code.CONFLICT,)),
        route(
            "POST",
            uninstall,
            stacks.uninstall,
            "UninstallStack",
            answer="Stack",
            query=of_org,
            errors=(*missing, Code.CONFLICT),
        ),
    ]
