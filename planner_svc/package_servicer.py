"""PackageService on the wire: translates requests and responses; the rules are in ``planner_svc.packages``."""

from pkger.planner.v1 import package_pb2
from pkger.planner.v1.package_pb2_grpc import PackageServiceServicer

from planner_svc.packages.inputs import PackageInputs
from planner_svc.packages.listings import matching, row_key
from planner_svc.packages.messages import answer_to_pb, explanation_to_pb, listed_to_pb, unread_to_pb, version_to_pb
from planner_svc.packages.requests import (
    changes_request,
    check_page_token,
    checked_name,
    named_packages,
    requested_versions,
)
from planner_svc.packages.resolving import PackageResolver
from planner_svc.packages.shown_versions import shown_version, versions_below
from services.core.model import Location
from services.packages.index_files import PACKAGE_FILE
from services.rpc import page_tokens
from services.rpc.convert.manifests import manifest_to_pb


class PackageServicer(PackageServiceServicer):
    """Lists, shows and resolves what repositories publish, and explains what is installed."""

    def __init__(self, inputs: PackageInputs, resolver: PackageResolver) -> None:
        self._inputs = inputs
        self._resolver = resolver

    async def SearchPackages(
        self, request: package_pb2.SearchPackagesRequest, context: object
    ) -> package_pb2.SearchPackagesResponse:
        """List packages."""
        text, *after = page_tokens.place_of(request.page_token, ("", "", 0, ""))
        check_page_token(request.page_token, text == request.text, "packages with another text")
        size = page_tokens.size_of(request.page_size, 100, 1000)
        listings = await self._inputs.listings(request.refresh)
        rows = [row for row in matching(listings, request.text) if not request.page_token or row_key(*row) > (*after,)]
        packages, token = page_tokens.page_of(
            rows[: size + 1], size, lambda row: listed_to_pb(*row), lambda row: (request.text, *row_key(*row))
        )
        return package_pb2.SearchPackagesResponse(
            packages=packages, unread=unread_to_pb(listings), next_page_token=token
        )

    async def ListVersions(
        self, request: package_pb2.ListVersionsRequest, context: object
    ) -> package_pb2.ListVersionsResponse:
        """List the versions of a package."""
        name, repository = _checked(request)
        of, source, after = page_tokens.place_of(request.page_token, ("", "", ""))
        check_page_token(request.page_token, of == name, f"versions of another package than {name}")
        size = page_tokens.size_of(request.page_size, 100, 1000)
        listing = await self._inputs.serving(name, repository, request.refresh)
        check_page_token(request.page_token, source == listing.name, f"another repository than {listing.name}")
        package = await self._inputs.versions(listing, name, request.refresh)
        versions, token = page_tokens.page_of(
            versions_below(package, after)[: size + 1],
            size,
            version_to_pb,
            lambda each: (name, listing.name, each.version.text),
        )
        return package_pb2.ListVersionsResponse(
            repository=listing.name, latest=str(package.latest or ""), versions=versions, next_page_token=token
        )

    async def GetPackage(
        self, request: package_pb2.GetPackageRequest, context: object
    ) -> package_pb2.GetPackageResponse:
        """Read one version."""
        name, repository = _checked(request)
        versions = requested_versions(request.version_range, "version_range")
        listing = await self._inputs.serving(name, repository, request.refresh)
        package = await self._inputs.versions(listing, name, request.refresh)
        published = shown_version(package, versions, self._resolver.platform, listing.name)
        files = await self._inputs.files(listing, name, published.version)
        parsed = await self._inputs.parsed(name, files)
        return package_pb2.GetPackageResponse(
            repository=listing.name,
            version=version_to_pb(files.published),
            manifest=parsed.manifest or manifest_to_pb(files.manifest, Location(PACKAGE_FILE)),
            objects=(each.key for each in parsed.objects),
            violations=parsed.violations,
        )

    async def ResolvePackages(
        self, request: package_pb2.ResolvePackagesRequest, context: object
    ) -> package_pb2.ResolvePackagesResponse:
        """Find versions that go together."""
        changes = changes_request(request.changes, self._inputs.bounds)
        installed = await self._inputs.installed(request.stack) if request.HasField("stack") else ()
        return answer_to_pb(await self._resolver.resolved(changes, installed))

    async def ExplainPackages(
        self, request: package_pb2.ExplainPackagesRequest, context: object
    ) -> package_pb2.ExplainPackagesResponse:
        """Say of installed packages why they are there, and what holds them back."""
        of, after = page_tokens.place_of(request.page_token, ("", ""))
        stack = request.stack.name or request.stack.id
        check_page_token(request.page_token, of == stack, f"packages of another stack than {stack}")
        size = page_tokens.size_of(request.page_size, 100, 1000)
        installed = {each.name: each for each in await self._inputs.installed(request.stack)}
        names = [name for name in named_packages(request.names, installed, stack) if name > after]
        explained, repositories = await self._resolver.explained(names[:size], installed.values(), request.refresh)
        explanations = {each.installed.name: each for each in explained}
        packages, token = page_tokens.page_of(
            names, size, lambda name: explanation_to_pb(explanations[name]), lambda name: (stack, name)
        )
        return package_pb2.ExplainPackagesResponse(
            packages=packages, unread=unread_to_pb(repositories), next_page_token=token
        )


def _checked(request: package_pb2.ListVersionsRequest | package_pb2.GetPackageRequest) -> tuple[str, str]:
    """The names of a package, and of a repository or none."""
    repository = checked_name(request.repository, "repository") if request.repository else ""
    return checked_name(request.name, "name"), repository
