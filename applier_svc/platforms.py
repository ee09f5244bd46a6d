"""The drivers that this applier may write through."""

from collections.abc import Callable

from services.rpc.client import Peer


class Platforms:
    """One connection per platform, made when it is first needed."""

    def __init__(self, address_of: Callable[[str], str]) -> None:
        """*address_of* finds the address of a platform's driver by its name, or raises ``PlatformUnknown``."""
        self._address_of = address_of
        self._drivers: dict[str, Peer] = {}

    def driver(self, platform: str) -> Peer:
        """
        The driver of *platform*.

        Raises:
            PlatformUnknown: No platform of that name is configured.
        """
        if platform not in self._drivers:
            self._drivers[platform] = Peer("platform", self._address_of(platform))
        return self._drivers[platform]

    async def close(self) -> None:
        """Close all connections."""
        for peer in self._drivers.values():
            await peer.close()
