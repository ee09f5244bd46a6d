"""Secrets that are given with an apply: their values stay in the memory of one operation, and in no text of it."""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from urllib.parse import quote

from pkger.driver.v1 import driver_pb2

from applier_svc.outcomes import Direction, Done, Failed, GivenUp, Outcome, Skipped, Unknown
from applier_svc.progress import Progress
from services.core.errors import PkgerError, RequestInvalid
from services.core.model import Plan, Step, Verb

MOST_CHARACTERS = 65_536
"""Of a value (applier.proto)."""

_LOST = "its value was only known to an applier that is gone"

_UNHEARD = "the words of the platform are left out, as they might repeat a secret whose value is not known any more"
_MASK = "[secret]"
_HOLE = "\0"
_SHOWN = 5


class Secrets:
    """
    The values of the secrets that one operation was given.

    Never written anywhere: printing one shows keys only.
    """

    def __init__(self, values: Mapping[str, str] | None = None, are_gone: bool = False) -> None:
        """
        Keep *values* by key.

        Args:
            values: None: there are none.
            are_gone: Whether there were some that only another applier knew.

        Raises:
            RequestInvalid: A value is empty, as that of a variable that is not set, or too long.
        """
        self._values = dict(values or {})
        self._are_gone = are_gone
        for key, value in sorted(self._values.items()):
            if not 0 < len(value) <= MOST_CHARACTERS:
                problem = "it is empty" if not value else f"it has {len(value):,}"
                raise RequestInvalid(
                    "secrets", f"the value of {key!r} is 1 to {MOST_CHARACTERS:,} characters; {problem}"
                )
        forms = {form for value in self._values.values() for form in _forms(value)}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))

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
        written = sorted(step.key.name for step in plan.steps if step.is_secret)
        if written != self.keys():
            what = f"exactly these: {', '.join(map(repr, written))}" if written else "none"
            raise RequestInvalid("secrets", f"give the secrets that the plan writes, {what}")

    def mutation(self, step: Step) -> driver_pb2.Mutation:
        """What carries out *step*, which writes a secret, or is the inverse of one that does."""
        key = step.key.name
        if step.verb is Verb.DELETE:
            return driver_pb2.Mutation(delete_secret=driver_pb2.DeleteSecret(key=key))
        return driver_pb2.Mutation(put_secret=driver_pb2.PutSecret(key=key, value=self._values[key]))

    def lost(self, plan: Plan, progress: Progress) -> str:
        """Why *plan* cannot be carried on: nobody has a value that is still to be written; empty when it can."""
        for step in plan.steps:
            if step.is_secret and not progress.took_effect(step) and step.key.name not in self._values:
                return f"{step.verb.value} {step.key}: {_LOST}; apply again, with the secrets"
        return ""

    def masked(self, text: str) -> str:
        """
        What a driver said, without the values, also where they are quoted as in Python, JSON or an address.

        Nothing of it is left when the values are gone: nobody could tell whether it repeats one.
        """
        if self._are_gone:
            return _UNHEARD
        for form in self._forms:
            text = text.replace(form, _HOLE)
        return text.replace(_HOLE, _MASK)

    def masked_outcome(self, outcome: Outcome) -> Outcome:
        """*outcome* without the values in what a driver said."""
        match outcome:
            case Failed(message) | Unknown(message) | Skipped(message):
                return replace(outcome, message=self.masked(message))
            case Done() | GivenUp():
                return outcome

    def mask_error(self, error: PkgerError) -> None:
        """Take the values out of what *error* says."""
        error.args = tuple(self.masked(str(part)) for part in error.args)
        error.metadata = {key: self.masked(value) for key, value in error.metadata.items()}


def in_doubt(plan: Plan, progress: Progress) -> dict[int, Outcome]:
    """What is to be noted of the secrets that were sent, and not answered, before an operation turned back."""
    return {
        step.number: Unknown(_LOST)
        for step in plan.steps
        if step.is_secret and progress.open.get(step.number) is Direction.DO
    }


def what_stays(plan: Plan, progress: Progress) -> str:
    """What an undo leaves of overwritten secrets, as an addition to a sentence; empty when it leaves nothing."""
    overwriting = [step for step in plan.steps if step.is_secret and step.verb is Verb.UPDATE]
    certain = [step for step in overwriting if progress.took_effect(step)]
    perhaps = [step for step in overwriting if isinstance(progress.done.get(step.number), Unknown)]
    told = [_told(certain, "stay overwritten")] * bool(certain)
    told += [_told(perhaps, "may have been overwritten")] * bool(perhaps)
    return f" ({'; '.join(told)})" if told else ""


def _told(steps: Sequence[Step], what: str) -> str:
    more = f" and {len(steps) - _SHOWN} more" if steps[_SHOWN:] else ""
    return f"secrets that {what}: {', '.join(repr(step.key.name) for step in steps[:_SHOWN])}{more}"


def _forms(value: str) -> Set[str]:
    """The ways in which a driver may repeat *value*: as it is, cut at its ends, quoted."""
    texts = {value, value.strip()} - {""}
    quoted = {form for text in texts for form in (repr(text)[1:-1], json.dumps(text)[1:-1], quote(text, safe=""))}
    return texts | quoted
