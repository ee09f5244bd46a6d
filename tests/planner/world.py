"""A platform and a stack as plain values, and their state after a plan has run."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from pkger.planner.v1 import planner_pb2

from planner_svc.changes.prepare_specs import specs_to_prepare
from planner_svc.credentials import refuse_written_secrets
from planner_svc.matching.desired import Desired
from planner_svc.matching.match import kinds_to_list, match, refuse_adoptions, refuse_clashes, refuse_unsupported_kinds
from planner_svc.planning import Remarks, make_plan
from planner_svc.secrets import refuse_unusable_keys
from planner_svc.views import ViewInput
from services.core.model import (
    LABEL,
    AfterUninstall,
    DesiredSpec,
    InventoryEntry,
    Key,
    Object,
    Package,
    Plan,
    PlatformTraits,
    Reference,
    Resource,
    Spec,
    StackRecord,
    Step,
    Target,
)
from services.drivers.embedded.kinds import EMBEDDED
from services.engine.effects import Attach, Create, Delete, DeleteSecret, Detach, PutSecret, Update, effect_of
from services.engine.ids import ResourceIds
from services.engine.outcome import Failed
from services.kinds.format.canonical import spec_of
from services.kinds.registry import KINDS


def an_object(kind: str, key: str, /, labels: Iterable[str] = (), **spec: Any) -> Object:
    """An object with a minimal spec: its display name is its name unless *spec* has one."""
    associations = tuple(Key(LABEL, label) for label in sorted(labels))
    least = KINDS[kind].fields.read({}) | _SPECS.get(kind, {})
    return Object(Key(kind, key), "influxdata.com/v2alpha1", spec_of(least | {"name": key} | spec), associations)


_SPECS: dict[str, dict[str, Any]] = {
    "Label": {"description": "", "color": ""},
    "Bucket": {"description": "", "retentionRules": [], "schemaType": "", "measurementSchemas": []},
    "Task": {"description": "", "cron": "", "every": "1h0m0s", "offset": "", "query": "x", "status": "active"},
    "Dashboard": {"description": "", "charts": []},
    "Variable": {"description": "", "type": "", "selected": []},
    "NotificationEndpointHTTP": {"type": "none"},
    "NotificationEndpointPagerDuty": {"routingKey": {"secretRef": {"key": "k"}}},
}


@dataclass
class World:
    """
    The live resources of a platform, and the record of one stack.

    Attributes:
        live: All resources, by id.
        record: The record of the stack.
        created: How many resources were ever created.
        platform: The traits of the platform.
        secrets: Keys of its secrets.
        prepare: Returns a spec as the platform would hold it, or the failure with which it rejects the spec.
        asked: The specs that the last plan had prepared.
        last: The last plan that was made, with all that its views are made from.
    """

    live: dict[str, Resource] = field(default_factory=dict)
    record: StackRecord = field(default_factory=lambda: StackRecord("1" * 16, Target(), "s", 0))
    created: int = 0
    platform: PlatformTraits = EMBEDDED
    secrets: set[str] = field(default_factory=set)
    prepare: Callable[[DesiredSpec], Spec | Failed] = lambda wanted: wanted.spec
    asked: dict[Key, DesiredSpec] = field(default_factory=dict)
    last: ViewInput = field(init=False)

    def add(self, kind: str, name: str, /, references: Iterable[Reference] = (), **spec: Any) -> Resource:
        """Put an unowned resource on the platform."""
        return self._create(kind, an_object(kind, name, **spec).spec, references)

    def plan(
        self,
        *objects: Object,
        skip: Iterable[Key] = (),
        is_end: bool = False,
        secret_keys: Iterable[str] = (),
        allow_replace: bool = False,
        keep_others: bool = False,
        after_uninstall: AfterUninstall = AfterUninstall.KEEP,
    ) -> Plan:
        """Plan *objects* as the package of the stack."""
        desired = Desired(
            Package(objects),
            frozenset(skip),
            is_end,
            frozenset(secret_keys),
            planner_pb2.PlanOptions(allow_replace=allow_replace, allow_empty=True, keep_others=keep_others),
            after_uninstall=after_uninstall,
        )
        refuse_written_secrets(desired, self.platform)
        refuse_unusable_keys(desired, self.platform)
        refuse_unsupported_kinds(desired, self.record, self.platform)
        kinds = kinds_to_list(desired, self.record, self.platform)
        listed = [resource for resource in self.live.values() if resource.kind in kinds]
        matching = match(desired, self.record, listed, self.platform)
        refuse_clashes(matching)
        refuse_adoptions(matching, self.record)
        self.asked = specs_to_prepare(desired, matching, self.platform)
        prepared = {key: self.prepare(wanted) for key, wanted in self.asked.items()}
        self.last = make_plan(desired, self.record, matching, self.platform, Remarks(), self.secrets, prepared=prepared)
        return self.last.plan

    def apply(
        self, *objects: Object, skip: Iterable[Key] = (), allow_replace: bool = False, keep_others: bool = False
    ) -> Plan:
        """Plan *objects* and run the plan, step by step."""
        plan = self.plan(*objects, skip=skip, allow_replace=allow_replace, keep_others=keep_others)
        self.run(plan)
        return plan

    def run(self, plan: Plan) -> None:
        """Run a plan, step by step."""
        ids = ResourceIds(plan)
        for step in plan.steps:
            self.run_step(step, ids)
        entries = tuple(
            entry._replace(resource_id=ids.get(entry.key) or entry.resource_id) for entry in self.owned_after(plan)
        )
        if entries != self.record.resources:
            self.record = replace(self.record, resources=entries, generation=self.record.generation + 1)

    def owned_after(self, plan: Plan) -> tuple[InventoryEntry, ...]:
        """The entries of the stack after *plan* has run, sorted; without ids for resources that a step creates."""
        entries = {entry.key: entry for entry in self.record.resources if entry.key not in plan.record.removed}
        entries |= {entry.key: entry for entry in plan.record.entries}
        return tuple(entries[key] for key in sorted(entries))

    def run_step(self, step: Step, ids: ResourceIds) -> None:
        """Run *step* as the strictest platform would."""
        effect = effect_of(step)
        resource_id, label_id = effect.target(ids), effect.label_id(ids)
        references = ids.references(step.references)
        match effect:
            case Create():
                assert step.new_spec
                resource_id = self._create(step.key.kind, step.new_spec, references).id
            case Update():
                assert step.new_spec
                self._refuse_taken(step.key.kind, step.new_spec.display_name, resource_id)
                self._refer(resource_id, references)
                self.live[resource_id] = self.live[resource_id]._replace(spec=step.new_spec)
            case Delete():
                self.delete(resource_id)
            case Attach():
                assert label_id in self.live
                self._link(resource_id, {*self.live[resource_id].label_ids, label_id})
            case Detach():
                self._link(resource_id, set(self.live[resource_id].label_ids) - {label_id})
            case PutSecret():
                self.secrets.add(resource_id)
            case DeleteSecret():
                self.secrets.discard(resource_id)
            case _:
                assert_never(effect)
        effect.learn(ids, resource_id)

    def delete(self, resource_id: str) -> None:
        """Remove a resource with its attachments and the references to it."""
        del self.live[resource_id]
        for resource in list(self.live.values()):
            self._link(resource.id, set(resource.label_ids) - {resource_id})
            self._refer(resource.id, [each for each in resource.references if each.id != resource_id])

    def write(self, resource: Resource) -> None:
        """Replace the resource with the id of *resource*, as a writer outside pkger does."""
        self._refuse_taken(resource.kind, resource.spec.display_name, resource.id)
        self.live[resource.id] = resource

    def content(self) -> list[tuple[object, ...]]:
        """Kind, spec, labels and references of all resources, sorted; with names instead of ids."""
        name = {resource.id: resource.spec.display_name for resource in self.live.values()}
        return sorted(
            (
                resource.kind,
                resource.spec.text,
                sorted(name[label] for label in resource.label_ids),
                [(each.pointer, each.kind, name[each.id]) for each in resource.references],
            )
            for resource in self.live.values()
        )

    def entry(self, kind: str, name: str) -> InventoryEntry:
        """The entry of an object."""
        return next(entry for entry in self.record.resources if entry.key == Key(kind, name))

    def _create(self, kind: str, spec: Any, references: Iterable[Reference]) -> Resource:
        self._refuse_taken(kind, spec.display_name, "")
        self.created += 1
        resource = Resource(kind, f"{self.created:016x}", spec)
        self.live[resource.id] = resource
        self._refer(resource.id, references)
        return self.live[resource.id]

    def _refuse_taken(self, kind: str, display_name: str, own_id: str) -> None:
        own = self.platform.kinds[kind]
        unique = own.unique_name(display_name)
        for resource in self.live.values():
            is_in_scope = self.platform.kinds[resource.kind].scope == own.scope
            taken = is_in_scope and own.unique_name(resource.spec.display_name) == unique
            assert unique is None or not taken or resource.id == own_id, f"the platform would refuse {display_name}"

    def _refer(self, resource_id: str, references: Iterable[Reference]) -> None:
        held = tuple(references)
        assert all(self.live[each.id].kind == each.kind for each in held), "the platform would refuse the reference"
        self.live[resource_id] = self.live[resource_id]._replace(references=held)

    def _link(self, resource_id: str, label_ids: set[str]) -> None:
        self.live[resource_id] = self.live[resource_id]._replace(label_ids=tuple(sorted(label_ids)))


def step_lines(plan: Plan) -> list[str]:
    """The steps of a plan as text, stage by stage: ``"0 create Label a"``."""
    return [
        f"{step.stage} {step.verb.value} {step.key.kind} {step.key.name or step.resource_id}"
        + (f" {step.label.name or step.label_id}" if step.label else "")
        for step in plan.steps
    ]
