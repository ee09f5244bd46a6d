"""Warnings about addresses of packages that seem to have a credential."""

from collections.abc import Iterable, Iterator

from services.core.masking import credential_parameters, masked


def address_warnings(addresses: Iterable[str]) -> Iterator[str]:
    """A warning for each of *addresses* whose query seems to have a credential; the warning does not have its value."""
    for address in addresses:
        if names := credential_parameters(address):
            parameters = "parameter" if len(names) == 1 else "parameters"
            yield (
                f"{masked(address)}: the query has the {parameters} {', '.join(map(repr, names))}, named like a"
                " credential, and stacks and plans show their addresses to everybody who may read them; use an address"
                " without credentials, or a local copy of the file"
            )
