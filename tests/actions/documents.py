"""Definitions for tests: a blueprint with most of what blueprints have, and an action set that runs it."""

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import yaml

from services.actions.signatures import SignatureTable
from services.actions.validation import NONE_STORED, StoredBlueprints, ValidationOutcome, validate
from tests.actions.functions import LATER_FUNCTIONS

REMOVED = object()
"""Stands for the value of a field that is removed."""

BLUEPRINT: Mapping[str, Any] = yaml.safe_load(
    """
apiVersion: pkger/v1
kind: Blueprint
metadata: {name: stack-backup, labels: {team: storage}}
spec:
  description: Backs a stack up
  actions:
    backup:
      options: {tag: {default: manual}, mode: {enum: [full, light], default: full}}
      outputArtifacts:
        stackBackup:
          keyValue: {snapshot: "{{ phases.export.output.snapshot }}", tag: "{{ options.tag }}"}
      phases:
      - {name: pause, func: SetFields, args: {kind: Task, all: true, set: {/status: inactive}}}
      - {name: export, func: ExportStack, timeout: 2m}
      - name: verify
        func: VerifySnapshot
        retry: {attempts: 3}
        args: {snapshot: "{{ phases.export.output.snapshot }}"}
      deferPhase:
        name: resume
        func: SetFields
        if: "{{ has(phases.pause.output.original) }}"
        args: {restore: "{{ default(phases.pause.output.original, []) }}"}
    restore:
      inputArtifactNames: [stackBackup]
      secretNames: [slack]
      configMapNames: [names]
      options: {reason: {required: true}}
      phases:
      - {name: check, func: VerifySnapshot, args: {snapshot: "{{ artifacts.stackBackup.snapshot }}"}}
      - name: apply
        func: RestoreStack
        args:
          snapshot: "{{ artifacts.stackBackup.snapshot }}"
          stack: "{{ configMaps.names.stack }}"
          secrets: {slack-token: "{{ secrets.slack.token }}"}
    dump:
      kind: None
      secretNames: [pg]
      phases:
      - name: dump
        func: RunCommand
        args:
          command: [pg_dump, --host, "{{ run.id }}"]
          env: {PGPASSWORD: "{{ secrets.pg.password }}"}
          outputs: [rows]
          collect: {dumpFile: dump.sql}
      - name: keep
        func: CopyToLocation
        args: {snapshot: "{{ phases.dump.output.dumpFile }}", key: "db/{{ run.id }}"}
      - name: each
        func: ForEach
        args: {items: [a, b], func: HTTPRequest, args: {url: "https://{{ item }}.example"}, parallel: 2}
"""
)

ACTION_SET: Mapping[str, Any] = yaml.safe_load(
    """
apiVersion: pkger/v1
kind: ActionSet
metadata: {name: nightly}
spec:
  wait: 30m
  actions:
  - name: backup
    blueprint: stack-backup
    object: {kind: Stack, name: prod, target: {org: factory}}
    options: {tag: night}
  - name: restore
    blueprint: stack-backup
    object: {kind: Stack, name: prod}
    options: {reason: test}
    artifacts: {stackBackup: {keyValue: {snapshot: sha256-x}}}
    configMaps: {names: {data: {stack: prod}}}
    secrets: {slack: {token: {env: SLACK_TOKEN}, key: {file: slack/key}, url: {given: true}}}
"""
)

SUCCESSOR: Mapping[str, Any] = yaml.safe_load(
    """
apiVersion: pkger/v1
kind: ActionSet
spec:
  from: {actionSet: nightly, action: restore}
  overrides: {options: {reason: again}}
"""
)

CONFIG_MAP: Mapping[str, Any] = yaml.safe_load(
    """
apiVersion: pkger/v1
kind: ConfigMap
metadata: {name: names}
spec: {data: {stack: prod}}
"""
)


def changed(document: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """*document* with another value at *path*, such as ``spec.actions.backup.phases[1].timeout``."""
    copy = deepcopy(dict(document))
    *outer, last = [int(index) if index else key for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path)]
    inner: Any = copy
    for step in outer:
        inner = inner[step]
    if value is REMOVED:
        del inner[last]
    elif isinstance(inner, list) and last == len(inner):
        inner.append(value)
    else:
        inner[last] = value
    return copy


def reasons(
    *documents: Any, table: SignatureTable = LATER_FUNCTIONS, stored: StoredBlueprints | None = NONE_STORED
) -> list[str]:
    """``root[POSITION].PATH: REASON`` of each fault."""
    faults = validate(documents, table, stored).faults
    return [f"root[{position}].{fault.path}: {fault.reason}" for position in faults for fault in faults[position]]


def sound(*documents: Any, table: SignatureTable = LATER_FUNCTIONS) -> ValidationOutcome:
    """The outcome for documents without faults."""
    outcome = validate(documents, table)
    assert outcome.faults == {}
    return outcome
