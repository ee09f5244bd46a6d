"""The input of a plan as a user gives it, and the request for the plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pkger.model.v1 import object_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2

from services.cli.packages.sources import read_sources, sendable
from services.settings import Bounds


@dataclass(frozen=True, slots=True)
class PlanInput:
    """
    The input of a plan.

    Attributes:
        files: Package files and addresses, and folders if *recursive*; the URLs of the stack follow them.
        stack: Name of the stack; empty for none.
        org: Organization; empty for the default one.
        env: Environment values by key: JSON values.
        platform: Platform; empty for the default one.
        recursive: Whether a folder stands for the package files in it and below.
        encoding: Encoding of sources whose names do not show it; empty: the parser detects it.
        libraries: Folders in which Jsonnet imports are looked up, the first one first.
        options: Options of the plan.
        secrets: Values of secrets to write by key; not in ``repr``. A plan uses only the keys.
        after_uninstall: What happens to the stack after an uninstall; None: no uninstall.
        revision: The revision of the stack to roll back to; 0: no rollback.
        snapshot: Id of the snapshot to restore; empty: no restore.
    """

    files: Sequence[str]
    stack: str
    org: str
    env: Mapping[str, Any] = field(default_factory=dict)
    platform: str = ""
    recursive: bool = False
    encoding: str = ""
    libraries: Sequence[Path] = ()
    options: planner_pb2.PlanOptions = field(default_factory=planner_pb2.PlanOptions)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    after_uninstall: plan_pb2.AfterUninstall.ValueType | None = None
    revision: int = 0
    snapshot: str = ""

    async def request(self, bounds: Bounds, store: bool) -> planner_pb2.CreatePlanRequest:
        """
        The request for the plan.

        Args:
            bounds: Bounds of the evaluation of Jsonnet.
            store: Whether the plan is stored.

        Raises:
            CommandFailed: A file cannot be read.
            PkgerError: A Jsonnet program cannot be evaluated.
        """
        request = planner_pb2.CreatePlanRequest(
            validate_only=not store,
            secret_keys=sorted(self.secrets),
            options=self.options,
        )
        target = object_pb2.Target(platform=self.platform, org=self.org)
        if self.stack:
            request.stack.CopyFrom(object_pb2.StackRef(target=target, name=self.stack))
        else:
            request.target.CopyFrom(target)
        if self.revision:
            request.revision = self.revision
        elif self.snapshot:
            request.snapshot = self.snapshot
        elif self.after_uninstall is None:
            sources = await read_sources(self.files, self.recursive, bounds, self.encoding, self.libraries)
            request.package.sources.extend(sources)
            request.package.env_json.update(sendable(self.env))
        else:
            request.destroy.after_uninstall = self.after_uninstall
        return request
