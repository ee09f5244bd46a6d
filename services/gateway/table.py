"""All routes."""

from services.gateway.org_routes import OrgRoutes
from services.gateway.organisations import Organisations
from services.gateway.probes import Probes
from services.gateway.routes import Access, Route, Routes
from services.gateway.services import Services
from services.gateway.transcoding.table import api_routes


def routes(services: Services, organisations: Organisations, version: str) -> Routes:
    """
    The table.

    Args:
        services: What is asked.
        organisations: Those that are served.
        version: Version of pkger.
    """
    probes, orgs = Probes(services, version), OrgRoutes(organisations)
    return Routes(
        [
            Route("GET", "/health", probes.health, access=Access.OPEN),
            Route("GET", "/ready", probes.ready, access=Access.OPEN),
            Route("GET", "/ping", probes.ping, access=Access.OPEN),
            Route("GET", "/api/v2", probes.links, access=Access.OPEN),
            Route("GET", "/api/v2/setup", probes.setup, access=Access.OPEN),
            Route("POST", "/api/v2/signin", probes.sign_in, access=Access.OPEN),
            Route("GET", "/api/v2/me", probes.me),
            Route("GET", "/api/v2/orgs", orgs.list),
            Route("GET", "/api/v2/orgs/{orgID}", orgs.read),
            *api_routes(services),
        ]
    )
