"""The table of all routes."""

from services.gateway.answers import Code
from services.gateway.applying import ApplyRoutes
from services.gateway.exporting import YAML_TYPE, ExportRoutes
from services.gateway.openapi import OpenApi
from services.gateway.operations import ORG_ID, ORG_QUERY, STACK_ID, content, operation, query
from services.gateway.org_routes import OrgRoutes
from services.gateway.organizations import Organizations
from services.gateway.probes import Probes
from services.gateway.routes import Access, Route
from services.gateway.run_plan import Runner
from services.gateway.services import Services
from services.gateway.stack_reading import StackReader
from services.gateway.stacks import StackRoutes
from services.gateway.transcoding.problems import pkger_form
from services.gateway.transcoding.route_table import API_PATH, api_components, api_routes

_LIST = {"type": "array", "items": {"type": "string"}}

_CHANGE = (Code.NOT_FOUND, Code.UNPROCESSABLE_ENTITY, Code.REQUEST_TOO_LARGE, Code.UNSUPPORTED_MEDIA_TYPE)
"""Further errors of a route with a body."""


FORMS = {API_PATH: pkger_form}
"""Forms of errors at paths without a row, by prefix."""


def routes(services: Services, organizations: Organizations, version: str) -> list[Route]:
    """
    All rows.

    Args:
        services: Connections to the services.
        organizations: The organizations that are served.
        version: Version of pkger.
    """
    described = OpenApi(version, api_components())
    rows = [
        *_own_rows(services, version, described),
        *_influx_rows(services, organizations),
        *api_routes(services),
    ]
    described.describe(rows)
    return rows


def _own_rows(services: Services, version: str, described: OpenApi) -> list[Route]:
    """Routes that need no organization."""
    probes = Probes(services, version)
    no_body = operation("GetPing", "Check that the gateway runs.", status=204)
    return [
        Route(
            "GET",
            "/health",
            probes.health,
            operation(
                "GetHealth",
                "Read the health of the services.",
                answer="Health",
                _503=content("A service does not serve.", "Health"),
            ),
            Access.OPEN,
        ),
        Route(
            "GET",
            "/ready",
            probes.ready,
            operation("GetReady", "Read when the gateway started.", answer="Ready"),
            Access.OPEN,
        ),
        Route("GET", "/ping", probes.ping, no_body, Access.OPEN),
        Route("HEAD", "/ping", probes.ping, {**no_body, "operationId": "HeadPing"}, Access.OPEN),
        Route("GET", "/api/v2", probes.links, operation("GetRoutes", "List the routes.", answer="Links"), Access.OPEN),
        Route(
            "GET",
            "/api/v2/setup",
            probes.setup,
            operation("GetSetup", "Read that no setup is needed.", answer="Setup"),
            Access.OPEN,
        ),
        Route("POST", "/api/v2/signin", probes.sign_in, access=Access.OPEN),
        Route(
            "GET",
            "/api/v2/swagger.json",
            described.read,
            operation("GetOpenApi", "Read this document.", answer="OpenApi"),
            Access.OPEN,
        ),
        Route("GET", "/api/v2/me", probes.me, operation("GetMe", "Read the name of the client.", answer="Me")),
    ]


def _influx_rows(services: Services, organizations: Organizations) -> list[Route]:
    """Routes for organizations, packages and stacks, as InfluxDB has them."""
    reader, runner = StackReader(services.stack, organizations), Runner(services.stack)
    orgs = OrgRoutes(organizations)
    applies = ApplyRoutes(services, organizations, reader, runner)
    exports = ExportRoutes(services, organizations, reader)
    stacks = StackRoutes(services, organizations, reader, runner)
    number = {"type": "integer"}
    return [
        Route(
            "GET",
            "/api/v2/orgs",
            orgs.listing,
            operation(
                "GetOrgs",
                "List organizations.",
                answer="Organizations",
                parameters=[
                    query("org", "name of the one organization to list"),
                    query("orgID", "id of the one organization to list"),
                    query("limit", "most organizations to list, from 1 to 100; without it, all", number),
                    query("offset", "number of organizations to leave out at the beginning", number),
                ],
                errors=[Code.NOT_FOUND],
            ),
        ),
        Route(
            "GET",
            "/api/v2/orgs/{orgID}",
            orgs.read,
            operation(
                "GetOrgsID",
                "Read an organization.",
                answer="Organization",
                parameters=[ORG_ID],
                errors=[Code.NOT_FOUND],
            ),
        ),
        Route(
            "POST",
            "/api/v2/templates/apply",
            applies.apply,
            operation(
                "ApplyTemplate",
                "Apply a package, or only plan it (dryRun).",
                status=201,
                answer="ApplyAnswer",
                body="ApplyRequest",
                parameters=[
                    {
                        "name": "Idempotency-Key",
                        "in": "header",
                        "required": False,
                        "schema": {"type": "string"},
                        "description": "the same key with the same body gets the same answer, for a day",
                    }
                ],
                errors=_CHANGE,
                _200=content("The changes that an apply would make (dryRun).", "ApplyAnswer"),
                _422={
                    "description": "The package breaks rules, or cannot be applied.",
                    "content": {
                        "application/json": {
                            "schema": {
                                "anyOf": [
                                    {"$ref": "#/components/schemas/Refusal"},
                                    {"$ref": "#/components/schemas/Error"},
                                ]
                            }
                        }
                    },
                },
            ),
        ),
        Route(
            "POST",
            "/api/v2/templates/export",
            exports.export,
            operation(
                "ExportTemplate",
                "Write resources as a package.",
                body="ExportRequest",
                errors=_CHANGE,
                _200=content("The package, as YAML if Accept prefers it.", "Package", YAML_TYPE.partition(";")[0]),
            ),
        ),
        Route(
            "GET",
            "/api/v2/stacks",
            stacks.listing,
            operation(
                "ListStacks",
                "List stacks of an organization.",
                answer="Stacks",
                parameters=[
                    {**ORG_QUERY, "required": True},
                    query("name", "stacks with one of these names", _LIST),
                    query("stackID", "stacks with one of these ids", _LIST),
                ],
                errors=[Code.NOT_FOUND],
            ),
        ),
        Route(
            "POST",
            "/api/v2/stacks",
            stacks.create,
            operation(
                "CreateStack", "Create a stack.", status=201, answer="Stack", body="StackCreation", errors=_CHANGE
            ),
        ),
        Route(
            "GET",
            "/api/v2/stacks/{stackID}",
            stacks.read,
            operation("ReadStack", "Read a stack.", answer="Stack", parameters=[STACK_ID], errors=[Code.NOT_FOUND]),
        ),
        Route(
            "PATCH",
            "/api/v2/stacks/{stackID}",
            stacks.update,
            operation(
                "UpdateStack",
                "Change name, description and URLs of a stack, and import resources.",
                answer="Stack",
                body="StackUpdate",
                parameters=[STACK_ID],
                errors=_CHANGE,
            ),
        ),
        Route(
            "DELETE",
            "/api/v2/stacks/{stackID}",
            stacks.delete,
            operation(
                "DeleteStack",
                "Delete all resources that a stack created, and the stack.",
                status=204,
                parameters=[STACK_ID, ORG_QUERY],
                errors=[Code.CONFLICT],
            ),
        ),
        Route(
            "POST",
            "/api/v2/stacks/{stackID}/uninstall",
            stacks.uninstall,
            operation(
                "UninstallStack",
                "Delete all resources that a stack created, and keep its record.",
                answer="Stack",
                parameters=[STACK_ID, ORG_QUERY],
                errors=[Code.NOT_FOUND, Code.CONFLICT],
            ),
        ),
    ]
