"""All routes."""

from services.gateway.answers import Code
from services.gateway.applying import ApplyRoutes
from services.gateway.exporting import YAML_TYPE, ExportRoutes
from services.gateway.openapi import OpenApi
from services.gateway.operations import ORG_ID, ORG_QUERY, STACK_ID, content, operation, query
from services.gateway.org_routes import OrgRoutes
from services.gateway.organisations import Organisations
from services.gateway.probes import Probes
from services.gateway.routes import Access, Route, Routes
from services.gateway.running import Runner
from services.gateway.services import Services
from services.gateway.stack_reading import StackReader
from services.gateway.stacks import StackRoutes
from services.gateway.transcoding.problems import pkger_form
from services.gateway.transcoding.table import API_PATH, api_components, api_routes

_LIST = {"type": "array", "items": {"type": "string"}}

_CHANGE = (Code.NOT_FOUND, Code.UNPROCESSABLE_ENTITY, Code.REQUEST_TOO_LARGE, Code.UNSUPPORTED_MEDIA_TYPE)
"""What a route with a body may answer besides."""


def routes(services: Services, organisations: Organisations, version: str) -> Routes:
    """
    The table.

    Args:
        services: What is asked.
        organisations: Those that are served.
        version: Version of pkger.
    """
    described = OpenApi(version, api_components())
    rows = [
        *_own_rows(services, version, described),
        *_influx_rows(services, organisations),
        *api_routes(services),
    ]
    table = Routes(rows, {API_PATH: pkger_form})
    described.describe(table)
    return table


def _own_rows(services: Services, version: str, described: OpenApi) -> list[Route]:
    """What there is to know without an organisation."""
    probes = Probes(services, version)
    no_body = operation("GetPing", "Look whether the gateway is there.", status=204)
    return [
        Route(
            "GET",
            "/health",
            probes.health,
            operation(
                "GetHealth",
                "Look how the services are.",
                answer="Health",
                _503=content("A service does not serve.", "Health"),
            ),
            Access.OPEN,
        ),
        Route(
            "GET", "/ready", probes.ready, operation("GetReady", "Look since when it is.", answer="Ready"), Access.OPEN
        ),
        Route("GET", "/ping", probes.ping, no_body, Access.OPEN),
        Route("HEAD", "/ping", probes.ping, {**no_body, "operationId": "HeadPing"}, Access.OPEN),
        Route("GET", "/api/v2", probes.links, operation("GetRoutes", "List what is.", answer="Links"), Access.OPEN),
        Route(
            "GET",
            "/api/v2/setup",
            probes.setup,
            operation("GetSetup", "Learn that nothing is to be set up.", answer="Setup"),
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
        Route("GET", "/api/v2/me", probes.me, operation("GetMe", "Learn who asks.", answer="Me")),
    ]


def _influx_rows(services: Services, organisations: Organisations) -> list[Route]:
    """Organisations, packages and stacks, as clients of InfluxDB know them."""
    reader, runner = StackReader(services.stack, organisations), Runner(services.stack)
    orgs = OrgRoutes(organisations)
    applies = ApplyRoutes(services, organisations, reader, runner)
    exports = ExportRoutes(services, organisations, reader)
    stacks = StackRoutes(services, organisations, reader, runner)
    number = {"type": "integer"}
    return [
        Route(
            "GET",
            "/api/v2/orgs",
            orgs.listing,
            operation(
                "GetOrgs",
                "List organisations.",
                answer="Organizations",
                parameters=[
                    query("org", "only the one with this name"),
                    query("orgID", "only the one with this id"),
                    query("limit", "at most so many, from 1 to 100; all without it", number),
                    query("offset", "leave out so many", number),
                ],
                errors=[Code.NOT_FOUND],
            ),
        ),
        Route(
            "GET",
            "/api/v2/orgs/{orgID}",
            orgs.read,
            operation("GetOrgsID", "Read one.", answer="Organization", parameters=[ORG_ID], errors=[Code.NOT_FOUND]),
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
                _200=content("What an apply would do.", "ApplyAnswer"),
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
                _200=content("The package; as YAML where Accept prefers that.", "Package", YAML_TYPE.partition(";")[0]),
            ),
        ),
        Route(
            "GET",
            "/api/v2/stacks",
            stacks.listing,
            operation(
                "ListStacks",
                "List stacks of an organisation.",
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
            operation("CreateStack", "Make a stack.", status=201, answer="Stack", body="StackCreation", errors=_CHANGE),
        ),
        Route(
            "GET",
            "/api/v2/stacks/{stackID}",
            stacks.read,
            operation("ReadStack", "Read one.", answer="Stack", parameters=[STACK_ID], errors=[Code.NOT_FOUND]),
        ),
        Route(
            "PATCH",
            "/api/v2/stacks/{stackID}",
            stacks.update,
            operation(
                "UpdateStack",
                "Change what people say of a stack, and take resources in.",
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
                "Remove all that a stack created, and the stack.",
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
                "Remove all that a stack created, and keep its record.",
                answer="Stack",
                parameters=[STACK_ID, ORG_QUERY],
                errors=[Code.NOT_FOUND, Code.CONFLICT],
            ),
        ),
    ]
