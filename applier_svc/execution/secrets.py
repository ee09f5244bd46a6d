"""Secrets of an apply: their values are in the memory of one operation only, and in none of its texts."""

from collections.abc import Mapping
from dataclasses import replace

from applier_svc.execution.masking import Masking
from services.core.errors import PkgerError, RequestInvalid
from services.core.masking import masked
from services.core.model import Plan
from services.engine.effects import AnyEffect, PutSecret, effect_of
from services.engine.outcome import Done, Failed, GivenUp, Outcome, Skipped, Unknown
from services.engine.progress import Progress

MOST_CHARACTERS = 65_536
"""Longest value (applier.proto)."""

LOST = "its value was only in the memory of an applier that ended"

_WITHHELD = "the message of the platform is withheld, because it might repeat a secret"


class Secrets:
    """
    The values of the secrets of one operation.

    They are written nowhere; the text of this object has the keys only.
    """

    def __init__(self, values: Mapping[str, str] | None = None, are_lost: bool = False) -> None:
        """
        Keep *values* by key.

        Args:
            values: The values; None: the operation has no secrets.
            are_lost: Whether the operation has secrets whose values only another applier had.

        Raises:
            RequestInvalid: A value is empty, for example because it comes from an unset variable, or too long.
        """
        self._values = dict(values or {})
        self._are_lost = are_lost
        for key, value in sorted(self._values.items()):
            if not 0 < len(value) <= MOST_CHARACTERS:
                problem = "it is empty" if not value else f"it has {len(value):,}"
                raise RequestInvalid(
                    "secrets", f"the value of {key!r} is 1 to {MOST_CHARACTERS:,} characters; {problem}"
                )
        self._masking = Masking(self._values.values())

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self.keys())})"

    def keys(self) -> list[str]:
        """The keys, sorted."""
        return sorted(self._values)

    def refuse_others(self, plan: Plan) -> None:
        """
        Refuse to run a stored *plan* with other secrets than it writes.

        Raises:
            RequestInvalid: The keys differ from those that the plan writes; the message lists the latter.
        """
        written = sorted(each.step.key.name for each in map(effect_of, plan.steps) if isinstance(each, PutSecret))
        if written != self.keys():
            what = f"exactly these: {', '.join(map(repr, written))}" if written else "none"
            raise RequestInvalid("secrets", f"give the secrets that the plan writes, {what}")

    def value(self, effect: AnyEffect) -> str:
        """The value that *effect* writes; empty for one that writes no secret."""
        return self._values[effect.step.key.name] if isinstance(effect, PutSecret) else ""

    def lost(self, progress: Progress) -> str:
        """Why the operation cannot be resumed: the value of an unwritten secret is lost. Empty: it can."""
        for effect in progress.effects:
            is_unwritten = isinstance(effect, PutSecret) and not progress.took_effect(effect.number)
            if is_unwritten and effect.step.key.name not in self._values:
                return f"{effect.shown}: {LOST}; apply again, with the secrets"
        return ""

    def masked(self, text: str, writes_secrets: bool = False) -> str:
        """
        A message of a driver without the values, in any spelling (``masking.spellings``), and with masked addresses.

        The whole message is withheld if it is about a batch that writes secrets, or if the values are lost: then a
        repeated value cannot be recognised (docs/reference/engine.md, "Secrets").
        """
        if self._are_lost or writes_secrets:
            return _WITHHELD
        return masked(self._masking.masked(text))

    def masked_outcome(self, outcome: Outcome, writes_secrets: bool = False) -> Outcome:
        """*outcome* with its message ``masked``; a reason stays."""
        match outcome:
            case Failed(_, reason) if reason and (writes_secrets or self._are_lost):
                return replace(outcome, message=f"{reason.value.replace('_', ' ').lower()}; {_WITHHELD}")
            case Failed(message) | Unknown(message) | Skipped(message):
                return replace(outcome, message=self.masked(message, writes_secrets))
            case Done() | GivenUp():
                return outcome

    def mask_error(self, error: PkgerError) -> None:
        """Mask the values in the message and metadata of *error*."""
        error.args = tuple(self.masked(str(part)) for part in error.args)
        error.metadata = {key: self.masked(value) for key, value in error.metadata.items()}
