"""Secrets that are given with an apply: their values stay in the memory of one operation, and in no text of it."""

from collections.abc import Mapping
from dataclasses import replace

from applier_svc.execution.masking import Masking
from services.core.errors import PkgerError, RequestInvalid
from services.core.model import Plan
from services.engine.effects import AnyEffect, PutSecret, effect_of
from services.engine.outcome import Done, Failed, GivenUp, Outcome, Skipped, Unknown
from services.engine.progress import Progress

MOST_CHARACTERS = 65_536
"""Of a value (applier.proto)."""

LOST = "its value was only known to an applier that is gone"

_WITHHELD = "the words of the platform are left out, as they might repeat a secret"


class Secrets:
    """
    The values of the secrets that one operation was given.

    Never written anywhere: printing one shows keys only.
    """

    def __init__(self, values: Mapping[str, str] | None = None, are_lost: bool = False) -> None:
        """
        Keep *values* by key.

        Args:
            values: None: there are none.
            are_lost: Whether there were some that only another applier knew.

        Raises:
            RequestInvalid: A value is empty, as that of a variable that is not set, or too long.
        """
        self._values = dict(values or {})
        self._are_gone = are_lost
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
            RequestInvalid: Names the keys that are to be given.
        """
        written = sorted(each.step.key.name for each in map(effect_of, plan.steps) if isinstance(each, PutSecret))
        if written != self.keys():
            what = f"exactly these: {', '.join(map(repr, written))}" if written else "none"
            raise RequestInvalid("secrets", f"give the secrets that the plan writes, {what}")

    def value(self, effect: AnyEffect) -> str:
        """The value that *effect* writes; empty for one that writes no secret."""
        return self._values[effect.step.key.name] if isinstance(effect, PutSecret) else ""

    def lost(self, progress: Progress) -> str:
        """Why an operation cannot be carried on: nobody has a value that is still to be written; empty when it can."""
        for effect in progress.effects:
            is_unwritten = isinstance(effect, PutSecret) and not progress.took_effect(effect.number)
            if is_unwritten and effect.step.key.name not in self._values:
                return f"{effect.shown}: {LOST}; apply again, with the secrets"
        return ""

    def masked(self, text: str, writes_secrets: bool = False) -> str:
        """
        What a driver said, without the values, however it spells them (``masking.spellings``).

        Nothing of it is left when the values are gone, as nobody could tell whether it repeats one, or where it is
        about a batch that writes them (docs/reference/engine.md, "Secrets").
        """
        if self._are_gone or writes_secrets:
            return _WITHHELD
        return self._masking.masked(text)

    def masked_outcome(self, outcome: Outcome, writes_secrets: bool = False) -> Outcome:
        """*outcome* without the values in what a driver said; the rest is as for ``masked``."""
        match outcome:
            case Failed(_, reason) if reason and writes_secrets:
                return replace(outcome, message=f"{reason.value.replace('_', ' ').lower()}; {_WITHHELD}")
            case Failed(message) | Unknown(message) | Skipped(message):
                return replace(outcome, message=self.masked(message, writes_secrets))
            case Done() | GivenUp():
                return outcome

    def mask_error(self, error: PkgerError) -> None:
        """Take the values out of what *error* says."""
        error.args = tuple(self.masked(str(part)) for part in error.args)
        error.metadata = {key: self.masked(value) for key, value in error.metadata.items()}
