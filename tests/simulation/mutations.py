"""Known defects that the simulation has to find (docs/simulation.md, "Mutations")."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout."""

PACKAGES = ("parser_svc", "planner_svc", "applier_svc", "stack_svc", "services")
"""The packages whose files a mutation may change."""


class MutationMisfit(Exception):
    """The text of a mutation does not occur exactly once in its file."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """
    One defect.

    Attributes:
        name: Its name.
        file: The source file that it changes, relative to the checkout.
        old: The text that it replaces; occurs exactly once in the file.
        new: The replacement.
        kinds: Kinds of violation, one of which the search has to show.
        seeds: How many seeds, or cases, the search may run.
        features: The features that the seeds may switch on; empty: all.
        situation: As of ``small_scenarios.results``, such as "fresh on SEARCH": its cases run in place of seeds.
    """

    name: str
    file: str
    old: str
    new: str
    kinds: frozenset[str]
    seeds: int
    features: frozenset[str] = frozenset()
    situation: str = ""


_BATCH = "applier_svc/execution/batch.py"
_LOOKUP = "applier_svc/execution/outcome_lookup.py"
_PROBER = "applier_svc/execution/prober.py"
_RESOURCES = "services/rpc/resources.py"
_RUNNER = "applier_svc/execution/runner.py"
_SENDER = "applier_svc/execution/sender.py"
_APPLIER_JOURNAL = "applier_svc/operation/journal.py"
_COMPLETION = "applier_svc/operation/completion.py"
_LEASE = "applier_svc/operation/lease.py"
_BACKGROUND = "services/rpc/periodic_work.py"
_CONCLUSION = "services/engine/conclusion.py"
_CREATE = "services/engine/effects/create.py"
_DELETE = "services/engine/effects/delete.py"
_UPDATE = "services/engine/effects/update.py"
_IDS = "services/engine/ids.py"
_LABELS = "services/engine/effects/labels.py"
_PROGRESS = "services/engine/progress.py"
_SCHEDULER = "services/engine/scheduler.py"
_STEP_LIFE = "services/engine/step_state.py"
_PLANNING = "planner_svc/planning.py"
_PLATFORM = "services/drivers/embedded/sqlite/store.py"
_INVENTORY = "stack_svc/rules/inventory.py"
_JOURNAL = "stack_svc/rules/operations.py"
_LEASES = "stack_svc/rules/leases.py"
_PLANS = "stack_svc/rules/plans.py"

_SHARING = frozenset({"share", "plans", "slow"})
"""Features with which stacks share resources, and release shared ones, at the same time."""

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "intent_after_effect",
        _BATCH,
        """\
        await self._intend(fresh)
        now_sent = self._intended - sent_before
        if sent_first := [effect for effect in fresh if effect.number in now_sent]:
            await self._refuse_known_secrets(sent_first)
        answers = await self._answers([effect for effect in effects if effect.number in self._intended], sendings)
""",
        """\
        answers = await self._answers(effects, sendings)
        await self._intend(fresh)
""",
        frozenset({"I1"}),
        10,
    ),
    Mutation(
        "new_idempotency_key_for_each_request",
        _BATCH,
        'key = f"{context.operation}/{{}}/{self._order.direction.lower()}"',
        'key = f"{context.operation}-{loop_time()}/{{}}/{self._order.direction.lower()}"',
        frozenset({"I1"}),
        10,
    ),
    Mutation(
        "no_seal",
        _SCHEDULER,
        "if not progress.sealed and any(effect.seals for effect in effects):",
        "if False:",
        frozenset({"I6"}),
        10,
    ),
    Mutation(
        "created_resources_not_recorded",
        _CONCLUSION,
        "if not ids.get(key) or (is_spared and key not in own):",
        "if not (entry.resource_id and ids.get(key)) or (is_spared and key not in own):",
        frozenset({"I3"}),
        10,
    ),
    Mutation(
        "journal_token_not_compared",
        _JOURNAL,
        """\
    if operation.token != token:
        raise LeaseLost(operation.stack, token)
    return leases.check(lease, operation.stack, token, now)
""",
        """\
    return leases.check(lease, operation.stack, operation.token, now)
""",
        frozenset({"I2"}),
        300,
        frozenset({"stops", "no_fence", "search"}),
    ),
    Mutation(
        "lease_given_twice",
        _LEASES,
        "return lease.expires < now or lease.expires > now + lease.ttl",
        "return True",
        frozenset({"I2"}),
        50,
    ),
    Mutation(
        "platform_takes_lower_token",
        _PLATFORM,
        "if row and row[0] > fence.token:",
        "if False:",
        frozenset({"FORGOTTEN", "CONTENT", "I3", "LEFT_OVER", "GHOST"}),
        150,
        frozenset({"very_late", "kills", "search"}),
    ),
    Mutation(
        "one_listing_tells_what_did_not_happen",
        _PROBER,
        "if any(isinstance(finding, NoEffect) for finding in findings.values()):",
        "if False:",
        frozenset({"I3", "LEFT_OVER"}),
        100,
        frozenset({"bad_lists", "search", "doubt"}),
    ),
    Mutation(
        "lease_not_checked_before_write",
        _LEASE,
        "        needed = seconds + self._timeouts.margin\n",
        "        return driver_pb2.Fence(scope=self.stack.id, token=self.token, operation_id=self.operation)\n",
        frozenset({"I1"}),
        200,
        frozenset({"stops", "no_fence", "search"}),
    ),
    Mutation(
        "rollback_in_order_of_plan",
        _SCHEDULER,
        "groupby(reversed(ready), key=_stage)",
        "groupby(ready, key=_stage)",
        frozenset({"ORDER"}),
        100,
    ),
    Mutation(
        "updates_not_rolled_back",
        _SCHEDULER,
        "return progress.is_certainly_ours(effect.number)",
        'return progress.is_certainly_ours(effect.number) and effect.step.verb.value != "update"',
        frozenset({"ORDER", "CONTENT"}),
        100,
    ),
    Mutation(
        "open_intent_counts_as_not_sent",
        _PROGRESS,
        "    for record in records:\n        progress._know(record)\n",
        "    for record in records:\n"
        "        if record.state is StepState.INTENT:\n"
        "            continue\n"
        "        progress._know(record)\n",
        frozenset({"I3"}),
        50,
    ),
    Mutation(
        "no_answer_counts_as_refused",
        _SENDER,
        """\
            return [Unknown(self._secrets.masked(str(error), writes_secrets)) for _ in effects]
""",
        """\
            return [Failed(self._secrets.masked(str(error), writes_secrets)) for _ in effects]
""",
        frozenset({"I3"}),
        50,
        frozenset({"net", "peer_kills"}),
    ),
    Mutation(
        "no_wait_for_settle",
        _LOOKUP,
        "await asyncio.sleep(last + self._timeouts.settle - loop_time())",
        "await asyncio.sleep(0)",
        frozenset({"I3"}),
        300,
        frozenset({"late", "search", "no_fence"}),
    ),
    Mutation(
        "token_not_raised",
        _LOOKUP,
        "if self._sender.fences and await self._is_fenced(until):",
        "if False:",
        frozenset({"CONTENT", "FORGOTTEN", "GHOST"}),
        200,
        frozenset({"late", "very_late", "cancel", "reject"}),
    ),
    Mutation(
        "look_up_before_the_token_is_raised",
        _LOOKUP,
        "await self.settle(until_resolved=True)\n",
        "await asyncio.sleep(self._timeouts.settle)\n",
        frozenset({"I3", "LEFT_OVER"}),
        200,
        frozenset({"late", "very_late", "search"}),
    ),
    Mutation(
        "plan_used_twice",
        _PLANS,
        "    if plan.operation:\n        raise PlanUsed(plan.id, plan.operation)\n"
        "    if plan.state is PlanState.STALE:\n",
        "    if plan.state is PlanState.STALE:\n",
        frozenset({"I5"}),
        100,
        frozenset({"plans", "reject", "leave"}),
    ),
    Mutation(
        "failed_undo_counts_as_done",
        _STEP_LIFE,
        "Direction.UNDO: (StepState.UNDONE, StepState.UNDO_FAILED, StepState.UNDO_UNKNOWN),",
        "Direction.UNDO: (StepState.UNDONE, StepState.UNDONE, StepState.UNDO_UNKNOWN),",
        frozenset({"CONTENT", "GHOST"}),
        300,
        frozenset({"reject"}),
    ),
    Mutation(
        "lease_of_far_future_kept",
        _LEASES,
        "return lease.expires < now or lease.expires > now + lease.ttl",
        "return lease.expires < now",
        frozenset({"LOCKED"}),
        120,
        frozenset({"clock", "kills", "peer_kills"}),
    ),
    Mutation(
        "blocked_without_reason_and_steps",
        _LEASE,
        """\
            request.blocked_reason = blocked_reason_to_pb(reason_of(blocked))
            shown = parts(map(blocked_step_to_pb, blocked), operation_pb2.BlockedStep.ByteSize, MOST_BLOCKED_BYTES)
            request.blocked_steps.extend(next(shown, []))
""",
        "            pass\n",
        frozenset({"BLOCKED_EMPTY"}),
        256,
        frozenset({"reject", "cancel"}),
    ),
    Mutation(
        "no_way_out_of_failed_undo",
        _SCHEDULER,
        "    to_undo = [effect for effect in progress.effects if _is_to_be_undone(effect, progress)]\n",
        """\
    to_undo = [effect for effect in progress.effects if _is_to_be_undone(effect, progress)]
    not_undone = {StepState.UNDO_FAILED, StepState.UNDO_GIVEN_UP}
    if any(progress.state(effect.number) in not_undone for effect in progress.effects):
        return Block(cause)
""",
        frozenset({"DEAD_END"}),
        256,
        frozenset({"reject", "cancel"}),
    ),
    Mutation(
        "skip_forgets_association",
        _PLANNING,
        """\
        labels |= {label for label in recorded if desired.skips(label) or label in matching.untouched}
""",
        "",
        frozenset({"FORGOTTEN"}),
        120,
        frozenset({"skip"}),
    ),
    Mutation(
        "undo_before_what_may_arrive_late",
        _RUNNER,
        "await self._context.lookup.settle(until_resolved=True)\n",
        "pass\n",
        frozenset({"CONTENT"}),
        600,
        frozenset({"late", "cancel", "reject", "no_fence"}),
    ),
    Mutation(
        "permuted_answers_believed",
        _SENDER,
        "if any(result.position != position for position, result in enumerate(answer.results)):",
        "if False:",
        frozenset({"I3", "WRONG_KIND", "LEFT_OVER", "CONTENT"}),
        200,
        frozenset({"bad_answers"}),
    ),
    Mutation(
        "absence_believed_from_a_listing",
        _RESOURCES,
        "lacking = sorted({key for key in expected if key[0] in kinds} - keys)",
        "lacking: list[ResourceKey] = []",
        frozenset({"I3", "LEFT_OVER"}),
        200,
        frozenset({"bad_lists"}),
    ),
    Mutation(
        "another_secret_value_sent",
        _SENDER,
        "self._secrets.value(each))",
        "self._secrets.value(each)[1:])",
        frozenset({"SECRET"}),
        10,
        frozenset({"secrets"}),
    ),
    Mutation(
        "claim_not_taken",
        _APPLIER_JOURNAL,
        "return await self._fold(records, unpublished, steps_sent_to_pb(steps, direction), claims=claims)",
        "return await self._fold(records, unpublished, steps_sent_to_pb(steps, direction))",
        frozenset({"I8", "OTHERS"}),
        10,
        frozenset({"same_names"}),
    ),
    Mutation(
        "claim_dropped_before_the_outcome_is_known",
        _APPLIER_JOURNAL,
        "if isinstance(outcome, Done | Failed)",
        "if isinstance(outcome, Done | Failed | Unknown)",
        frozenset({"I8"}),
        200,
        frozenset({"same_names", "search", "net", "bad_answers"}),
    ),
    Mutation(
        "expectation_not_compared",
        "services/drivers/expectations.py",
        "if expected is None:",
        "if expected is None or expected:",
        frozenset({"OVERWRITE"}),
        200,
        frozenset({"person", "kills", "stops", "slow"}),
    ),
    Mutation(
        "expectation_not_sent_with_an_undo",
        _BATCH,
        "sendings = {effect.number: self._progress.sending(effect) for effect in effects}",
        "sendings = {\n            effect.number: (effect if self._order.place else self._progress).sending("
        "self._progress.ids if self._order.place else effect)\n            for effect in effects\n        }",
        frozenset({"OVERWRITE"}),
        200,
        frozenset({"person", "kills", "stops", "slow", "reject", "cancel"}),
    ),
    Mutation(
        "use_not_claimed",
        _APPLIER_JOURNAL,
        "*used_claims(plan.uses), ",
        "",
        frozenset({"I8", "LACKS", "OTHERS"}),
        100,
        _SHARING,
    ),
    Mutation(
        "what_is_used_is_taken_away",
        "stack_svc/rules/claims.py",
        "        *uses.in_use(tx, operation, removed),\n",
        "",
        frozenset({"LACKS"}),
        200,
        _SHARING,
    ),
    Mutation(
        "what_is_let_go_gets_no_owner",
        "stack_svc/rules/finish.py",
        "    ownership_transfer.hand_over(tx, transfer, existing, now)\n",
        "",
        frozenset({"I8"}),
        20,
        _SHARING,
    ),
    Mutation(
        "packages_change_with_an_operation_that_is_rolled_back",
        "stack_svc/rules/finish.py",
        "packages.change(tx, stack, plan) if plan and has_succeeded else ((), ())",
        "packages.change(tx, stack, plan) if plan else ((), ())",
        frozenset({"PACKAGES"}),
        200,
        frozenset({"install", "reject", "cancel"}),
    ),
    Mutation(
        "packages_change_although_all_steps_were_undone",
        "stack_svc/rules/finish.py",
        "            return stack if stack.state is State.ACTIVE else None\n",
        "            plan = tx.plans.find(operation.plan)\n"
        "            if plan and stack.state is State.ACTIVE:\n"
        "                packages.change(tx, stack, plan)\n"
        "            return stack if stack.state is State.ACTIVE else None\n",
        frozenset({"PACKAGES"}),
        200,
        frozenset({"install", "reject", "cancel"}),
    ),
    Mutation(
        "packages_do_not_change_with_their_operation",
        "stack_svc/rules/finish.py",
        "packages.change(tx, stack, plan) if plan and has_succeeded else ((), ())",
        "((), ())",
        frozenset({"PACKAGES"}),
        10,
        frozenset({"install"}),
    ),
    Mutation(
        "labels_of_packages_that_are_not_compared_stay_attached",
        "planner_svc/package_stack/compared.py",
        "return frozenset(left - {label for label in labels if not _packages(composition, label) <= suspended})",
        "return frozenset(left)",
        frozenset({"CONTENT"}),
        300,
        frozenset({"install", "plans"}),
    ),
    Mutation(
        "what_was_replaced_and_not_deleted_is_forgotten",
        _CONCLUSION,
        "                entries[pending.key] = pending\n",
        "",
        frozenset({"I3"}),
        300,
        frozenset({"replace", "keep"}),
    ),
    Mutation(
        "both_resources_of_a_replacement_are_one",
        _IDS,
        "        if self._replaced and (key, planned_id) in self._replaced:\n",
        "        if False:\n",
        frozenset({"I3", "CONTENT", "GHOST", "OVERWRITE"}),
        40,
        frozenset({"replace", "reject", "keep"}),
    ),
    Mutation(
        "an_uninstall_always_deletes_the_stack",
        _CONCLUSION,
        " and self.progress.plan.after_uninstall is AfterUninstall.DELETE\n",
        "\n",
        frozenset({"STACK"}),
        40,
        frozenset({"plans"}),
    ),
    Mutation(
        "an_uninstall_never_deletes_the_stack",
        _CONCLUSION,
        " and self.progress.plan.after_uninstall is AfterUninstall.DELETE\n",
        " and False\n",
        frozenset({"STACK"}),
        40,
        frozenset({"plans"}),
    ),
    Mutation(
        "an_heir_adopts_what_it_owns",
        _INVENTORY,
        "dict.fromkeys(free, Origin.ADOPTED) | dict.fromkeys(lost, Origin.SHARED) | owned\n",
        "dict.fromkeys(free, Origin.ADOPTED) | dict.fromkeys(lost, Origin.SHARED)\n",
        frozenset({"I3", "LEFT_OVER"}),
        200,
        frozenset({"share", "same_names"}),
    ),
    Mutation(
        "recovery_ends_on_foreign_code",
        _BACKGROUND,
        "            except Exception as error:\n",
        "            except Exception as error:\n"
        '                if getattr(error, "metadata", {}).get("answered"):\n'
        "                    raise\n",
        frozenset({"LOOP_DEAD"}),
        300,
        frozenset({"codes", "kills", "stops"}),
    ),
    Mutation(
        "undo_past_the_seal",
        _SCHEDULER,
        "    if not progress.sealed and (cause or is_stopped):\n",
        "    if cause or is_stopped:\n        progress.sealed = False\n",
        # The store refuses to record such a rollback, so the operation does not get that far.
        frozenset({"I6", "DEFECT", "DEFECT_LOOP", "ENDLESS", "STUCK", "NEEDLESS"}),
        200,
        situation="replaced on NATIVE, faults",
    ),
    Mutation(
        "recreated_resource_loses_its_references",
        _DELETE,
        "return self._turned(Verb.CREATE)",
        "return self._turned(Verb.CREATE)._replace(references=())",
        frozenset({"UNDONE", "CONTENT"}),
        200,
        situation="unruled on NATURAL_KEY",
    ),
    Mutation(
        "undone_update_keeps_its_references",
        _UPDATE,
        "return self._turned(Verb.UPDATE)",
        "return self._turned(Verb.UPDATE)._replace(references=self.step.references)",
        frozenset({"UNDONE", "CONTENT"}),
        200,
        situation="turned on NATURAL_KEY",
    ),
    Mutation(
        "creation_without_a_key_sent_again",
        _CREATE,
        "return self.is_resolved_by_retry(platform)",
        "return True",
        frozenset({"I3"}),
        200,
        situation="fresh on SEARCH",
    ),
    Mutation(
        "ids_before_a_creation_not_journaled",
        _PROGRESS,
        "return sent(self.record(step), direction, before_ids)",
        "return sent(self.record(step), direction, ())",
        frozenset({"NEEDLESS", "I3", "CONTENT"}),
        200,
        situation="fresh on SEARCH",
    ),
    Mutation(
        "open_steps_not_looked_up",
        _SCHEDULER,
        "return LookUp(undone, done) if undone or done else None",
        "return None",
        frozenset({"I3"}),
        200,
        situation="fresh on NATURAL_KEY",
    ),
    Mutation(
        "creations_not_sent_again_before_a_rollback",
        _SCHEDULER,
        "return RetryCreations(cause, stages, lost) if stages or lost else None",
        "return None",
        frozenset({"I3", "LEFT_OVER"}),
        200,
        frozenset({"kills", "cancel", "reject"}),
    ),
    Mutation(
        "deletion_without_an_answer_counts_as_no_effect",
        _DELETE,
        "return NoEffect() if live else Done(sending.resource_id)",
        "return NoEffect()",
        frozenset({"GHOST", "NEEDLESS", "UNDONE"}),
        200,
        situation="emptied on NATIVE, faults",
    ),
    Mutation(
        "recreated_resource_keeps_its_old_id_in_the_record",
        _CONCLUSION,
        "entries[key] = old._replace(resource_id=ids.find(key, effect.step.resource_id))",
        "entries[key] = old",
        frozenset({"I3"}),
        200,
        situation="mixed on NATIVE",
    ),
    Mutation(
        "leftovers_not_recorded",
        _CONCLUSION,
        "changes = after_success(self.progress, self.end.leftovers.keys(), self.recorded)",
        "changes = after_success(self.progress, (), self.recorded)",
        frozenset({"I3"}),
        200,
        situation="mixed on NATIVE",
    ),
    Mutation(
        "failed_step_does_not_roll_back",
        _SCHEDULER,
        "cause = progress.cause or _failure(progress) or lost",
        "cause = progress.cause or lost",
        frozenset({"CONTENT"}),
        200,
        situation="fresh on NATIVE",
    ),
    Mutation(
        "earlier_step_undone_after_the_undo_of_a_later_one_failed",
        _SCHEDULER,
        "ready = _free(waiting, [effect for effect in to_undo if effect.number in failed])",
        "ready = waiting",
        frozenset({"ORDER"}),
        200,
        situation="turned on NATIVE, refused_records",
    ),
    Mutation(
        "resource_that_loses_its_label_not_claimed",
        _LABELS,
        "return [association] if self.step.key.name else [association, *Effect.claims(self, ids, platform)]",
        "return [association]",
        frozenset({"I8", "OTHERS"}),
        200,
        frozenset({"person"}),
    ),
    Mutation(
        "token_refused_for_ever",
        _COMPLETION,
        "if not place.traits.fences and (newest := await _newest(work.lease, error)) > work.lease.token:",
        "if newest := 0:",
        frozenset({"DEFECT_LOOP", "PROBE"}),
        400,
        frozenset({"backup", "bad_describe", "clock", "rivals"}),
    ),
    Mutation(
        "tokens_below_the_last_one_count_as_known",
        _COMPLETION,
        """\
    return seen_token > lease.last_token or (
        seen_token > lease.shown_token and is_of_another and not await lease.knows(seen_by)
    )
""",
        """\
    return seen_token > lease.last_token
""",
        frozenset({"I5", "RESTORED"}),
        200,
        frozenset({"backup", "rivals", "net"}),
    ),
    Mutation(
        "token_of_a_removed_stack_forgotten",
        _JOURNAL,
        """\
    return new, Lease(token=before.token if before else 0)
""",
        """\
    return new, Lease()
""",
        frozenset({"NOT_RESTORED"}),
        400,
        frozenset({"plans", "kills", "codes", "net"}),
    ),
)
"""All defects. Defects that were fixed in the engine are put back here, with the bound that found them."""


def mutated(mutation: Mutation) -> str:
    """
    The source file of *mutation* with its defect.

    Raises:
        MutationMisfit: The text does not occur exactly once in the file.
    """
    text = (ROOT / mutation.file).read_text("utf-8")
    if (count := text.count(mutation.old)) != 1:
        raise MutationMisfit(f"{mutation.name}: its text occurs {count} times in {mutation.file}, and not once")
    return text.replace(mutation.old, mutation.new)
