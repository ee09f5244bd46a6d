"""The traits of kinds that the platforms of InfluxDB's kinds have in common."""

from services.core.model import Identity, KindTraits, NameUniqueness, Undo

LABELS, PRIMARY_KINDS, REFERRING_KINDS = 10, 20, 30
"""
Stages (docs/reference/engine.md, "Steps and stages"): labels precede labelled resources; kinds that refer to primary
kinds follow them.
"""

CHECK, ENDPOINT = "check", "endpoint"
"""Name scopes: checks of all types share one, and endpoints of all types share one."""


def kind_traits(
    identity: Identity,
    kind: str,
    name_uniqueness: NameUniqueness,
    *,
    stage: int = PRIMARY_KINDS,
    delete_undo: Undo = Undo.RECREATE,
    immutable_paths: tuple[str, ...] = (),
    labelled: bool = True,
    name_scope: str = "",
    sensitive_paths: tuple[str, ...] = (),
) -> KindTraits:
    """The traits of a kind; by default, it is a primary kind with labels, and its deletion can be undone."""
    return KindTraits(
        kind,
        identity,
        name_uniqueness,
        stage,
        delete_undo,
        immutable_paths=immutable_paths,
        labelled=labelled,
        name_scope=name_scope,
        sensitive_paths=sensitive_paths,
    )
