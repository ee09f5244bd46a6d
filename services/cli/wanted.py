"""The input of a plan as a user gives it, and the request for the plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pkger.model.v1 import object_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2

from services.cli.errors import Failed
from services.cli.sources import read_sources
from services.rpc.convert.values import env_texts
from services.settings import Bounds


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    The input of a plan.

    Attributes:
        files: Package files and addresses, and folders if *recursive*; the URLs of the stack follow them.
        stack: Name of the stack; empty for none.
        org: Organisation; empty for the default one.
        env: Environment values by key: JSON values.
        platform: Platform; empty for the default one.
        recursive: Whether a folder stands for the package files in it and below.
        encoding: Encoding of sources whose names do not show it; empty: the parser detects it.
        libraries: Folders in which Jsonnet imports are looked up, the first one first.
        skip: Objects and kinds to skip: ``KIND:NAME`` or ``KIND``.
        allow_empty: Whether a package without objects may remove all resources of the stack.
        allow_missing: Whether to apply although values are missing.
        allow_replace: Whether resources that no stack owns may be replaced.
        secrets: Values of secrets to write by key; not in ``repr``. A plan uses only the keys.
        after_uninstall: What happens to the stack after an uninstall; None: no uninstall.
        revision: The revision of the stack to roll back to; 0: no rollback.
        author: The author for the history; empty: none.
    """

    files: Sequence[str]
    stack: str
    org: str
    env: Mapping[str, Any] = field(default_factory=dict)
    platform: str = ""
    recursive: bool = False
    encoding: str = ""
    libraries: Sequence[Path] = ()
    skip: Sequence[str] = ()
    allow_empty: bool = False
    allow_missing: bool = False
    allow_replace: bool = False
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    after_uninstall: plan_pb2.AfterUninstall.ValueType | None = None
    revision: int = 0
    author: str = ""

    async def request(self, bounds: Bounds, store: bool) -> planner_pb2.CreatePlanRequest:
        """
        The request for the plan.

        Args:
            bounds: Bounds of the evaluation of Jsonnet.
            store: Whether the plan is stored.

        Raises:
            Failed: A file cannot be read, or an object to skip has no name.
            PkgerError: A Jsonnet program cannot be evaluated.
        """
        request = planner_pb2.CreatePlanRequest(
            validate_only=not store,
            target=object_pb2.Target(platform=self.platform, org=self.org),
            secret_keys=sorted(self.secrets),
            allow_empty=self.allow_empty,
            allow_replace=self.allow_replace,
        )
        for skipped in self.skip:
            kind, colon, name = skipped.partition(":")
            if colon and not name:
                raise Failed(f"--skip {skipped} names no object; write --skip {kind} to skip all of the kind")
            request.skip.add(kind=kind, name=name)
        if self.stack:
            request.stack.name = self.stack
        if self.revision:
            request.revision = self.revision
        elif self.after_uninstall is None:
            sources = await read_sources(self.files, self.recursive, bounds, self.encoding, self.libraries)
            request.package.sources.extend(sources)
            request.package.env_json.update(sendable(self.env))
        else:
            request.destroy.after_uninstall = self.after_uninstall
        return request


def sendable(env: Mapping[str, Any]) -> dict[str, str]:
    """
    Environment values as a request carries them: JSON texts by key.

    Raises:
        Failed: A value cannot be sent.
    """
    try:
        return env_texts(env)
    except ValueError as error:
        raise Failed(str(error)) from error
