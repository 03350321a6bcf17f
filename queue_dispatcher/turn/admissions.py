"""Admissions: the writes that carry out what a cycle decided, which from then on counts as made."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from queue_dispatcher.api.cluster_queue import ScoringStrategy
from queue_dispatcher.bindings.admission import (
    admission_record,
    components_of,
    flavors_of,
    growth_flavors,
)
from queue_dispatcher.bindings.decision import decision
from queue_dispatcher.bindings.part import at_size
from queue_dispatcher.bindings.phase import Moment, began_day_ms, placed_replicas
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.state import Admitted, Growing, Pending
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Admission, Entry
from queue_dispatcher.cycle.actions import Action, Admit
from queue_dispatcher.cycle.items import Alternative, Item, probe_of
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.cycle.witness import Witness
from queue_dispatcher.turn.duties import begin
from queue_dispatcher.turn.free_devices import free_devices
from queue_dispatcher.turn.probing import tell_released
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.writes import Purpose, Write
from queue_dispatcher.workloads.choice import Choice, choice
from queue_dispatcher.workloads.elastic import GROWS_EVERY_MS, sized
from queue_dispatcher.workloads.flavors import preferred_clusters
from queue_dispatcher.workloads.guidance import Guidance, guidance
from queue_dispatcher.workloads.template import TemplateFacts


def standing(cache: Cache, actions: Iterable[Action]) -> list[Admit]:
    """What is to be admitted, in order, but for what waits otherwise by now than was decided on."""
    return [action for action in actions if isinstance(action, Admit) and _stands(cache, action.item)]


def _stands(cache: Cache, item: Item) -> bool:
    for uid in item.members:
        entry = cache.present(uid)
        if entry is None:
            return False
        decided_on = entry.waiting
        cache.refresh(entry)
        if entry.waiting != decided_on:
            return False
    return True


def admissions(state: TurnState, admitted: Iterable[Admit], now: Moment) -> list[Write]:
    """The writes of all that is to be admitted, in order; nothing of what is being written."""
    writes: list[Write] = []
    for action in admitted:
        writes += _admission(state, action, now)
    return writes


def _admission(state: TurnState, action: Admit, now: Moment) -> list[Write]:
    cache, item = state.cache, action.item
    members = [cache.entries[uid] for uid in item.members]
    if any(entry.is_writing for entry in members):
        return []
    split = cache.pending.split(item, action.alternative)
    probe = probe_of(item.shape, action.alternative)
    chosen = _choices(state, action, probe, split, now)
    if chosen is None:
        return []
    records = {
        entry.uid: record
        for entry, alternative in zip(members, _charged(split, chosen), strict=True)
        if (record := _record(cache, entry, alternative, action, now)) is not None
    }
    if len(records) < len(members):
        return []
    if len(records) > 1:
        together = decision({uid: record.requests for uid, record in records.items()})
        records = {uid: replace(record, decision=together) for uid, record in records.items()}
    kept = {
        entry.uid: cache.kept(entry, alternative.keeps)
        for entry, alternative in zip(members, split, strict=True)
        if alternative.keeps
    }
    admission = Admission(item, records, chosen, kept, passes=action.passes)
    tell_released(state, item, probe, chosen, now)
    for entry in members:
        cache.assume(entry, admission, records[entry.uid])
    # What the server failed at may hang again, and keeps nobody behind it waiting.
    sequence = members[0].uid if any(entry.has_failed for entry in members) else item.queue
    return [begin(entry, Purpose.ADMIT, sequence) for entry in members]


def _charged(split: Sequence[Alternative], chosen: Mapping[str, Choice]) -> Sequence[Alternative]:
    """As what each of those members is charged that are to go there.

    What was to go to any of several flavors may have found room in one alone since those were asked about one
    by one. Of a group the record of each speaks for all others, wherever those go.
    """
    if len(split) > 1 or not chosen:
        return split
    (made,) = chosen.values()
    return [one.landed([place.cluster for place in made.places]) for one in split]


def _choices(
    state: TurnState, action: Admit, probe: str, split: Sequence[Alternative], now: Moment
) -> dict[str, Choice] | None:
    """By member, where its release says that it goes; empty where that is left to Karmada.

    None where what is left of an answer says nothing any more, or Karmada is to choose and has enough to do:
    it is not released, but decided on anew.
    """
    item, alternative = action.item, action.alternative
    if item.pods:
        return _elastic_choice(state, action, probe, now)
    if state.estimates is None or not item.shape.is_preplaced:
        return {}
    verdicts = state.estimates.verdicts
    verdict = verdicts.get(probe, now.elapsed_ms)
    if verdict is None or verdict.fits <= 0:
        return None
    if not verdict.says_where:
        return {}
    chosen = _chosen(state.cache, item, verdict, split)
    if chosen is not None:
        return chosen
    answer = verdicts.answer(probe)
    if answer is not None and _chosen(state.cache, item, answer, split) is not None:
        verdicts.drop(probe)
        return None
    verdicts.says_nowhere(probe)
    may_choose = alternative.clusters is None or alternative.is_any
    has_token = state.window.tokens(len(state.cache.running.in_flight), now.elapsed_ms) > 0
    return {} if may_choose and has_token else None


def _elastic_choice(state: TurnState, action: Admit, probe: str, now: Moment) -> dict[str, Choice] | None:
    """Where all pods go that an elastic workload is to have; Karmada never chooses for one."""
    item, estimates = action.item, state.estimates
    if estimates is None:
        return None
    verdict = estimates.verdicts.get(probe, now.elapsed_ms)
    pods = item.pods + action.more
    if verdict is not None and verdict.says_where:
        of_all = replace(verdict, per=pods)
        chosen = _chosen(state.cache, item, of_all, (action.alternative,), pods)
        if chosen is not None:
            return chosen
    # It is asked about again.
    estimates.verdicts.drop(probe)
    return None


def _chosen(
    cache: Cache, item: Item, verdict: Verdict, split: Sequence[Alternative], pods: int = 0
) -> dict[str, Choice] | None:
    """``pods``: of an elastic workload, how many more it gets."""
    verdicts = verdict.members or (verdict,)
    if len(verdicts) != len(item.members):
        return None
    spreads = _spreads(cache, item.queue)
    chosen: dict[str, Choice] = {}
    for uid, alternative, said in zip(item.members, split, verdicts, strict=True):
        entry = cache.entries[uid]
        binding = entry.binding
        if binding.placement is None:
            return None
        # One that went away since it was asked about is nowhere to go.
        tiers = [tier - cache.fleet.lost for tier in cache.fleet.tiers(binding.placement)]
        preferred = preferred_clusters(alternative, cache.fleet.reaches, tiers)
        free = free_devices(cache, binding.demand, as_of_now=spreads)
        placement, demand, there = binding.placement, binding.demand, binding.placed
        if pods:
            demand = sized(demand, item.runs + pods)
        if item.in_one:
            placement = replace(placement, max_clusters=1)
        made = choice(placement, demand, said, preferred, free, there, spreads=spreads)
        if made is None:
            return None
        made = replace(made, placement=binding.placement)
        chosen[uid] = made if verdict is said else replace(made, reason="its group fits so")
    firsts = {uid: _firsts(said, chosen[uid]) for uid, said in zip(item.members, verdicts, strict=True)}
    # Where some of a group have to be told, others that are not could take their nodes.
    is_tied = len(firsts) > 1 and any(one.is_needed for of in firsts.values() for one in of.values())
    packs = is_tied or not spreads
    return {
        uid: replace(made, guidance=_guidance(cache, cache.entries[uid], firsts[uid], made, packs=packs))
        for uid, made in chosen.items()
    }


def _spreads(cache: Cache, queue: str) -> bool:
    """Whether the work of a queue is to be spread, not packed."""
    known = cache.queues.queues.cluster_queues.get(queue)
    return known is not None and known.scoring is ScoringStrategy.LEAST_ALLOCATED


def _firsts(said: Verdict, made: Choice) -> dict[str, Witness]:
    """By cluster that it goes to, where its pods would go there."""
    places = {share.cluster for share in made.more}
    return {cluster: told[0] for cluster, told in said.witnesses if cluster in places}


def _guidance(
    cache: Cache, entry: Entry, firsts: Mapping[str, Witness], made: Choice, *, packs: bool
) -> tuple[Guidance, ...]:
    """What its pods are told; nothing where some of it runs already, whose templates may not change, or where
    somebody else's policies may tell them something. ``packs``: also what they need not be told to be whole.
    """
    binding, facts = entry.binding, entry.facts
    witnesses = {cluster: one for cluster, one in firsts.items() if packs or one.is_needed}
    if binding.placed or not facts.pods or not witnesses:
        return ()
    if cache.overrides.touch(binding.workload, facts.pods):
        return ()
    return guidance(facts.pods, binding.demand, witnesses, made.more, facts.priority_class)


def _record(
    cache: Cache, entry: Entry, alternative: Alternative, action: Admit, now: Moment
) -> AdmissionRecord | None:
    state, priority, item, binding = entry.state, entry.priority, action.item, entry.binding
    queue = item.queue
    if isinstance(state, Admitted) and state.growth is not None:
        state = state.growth
    if item.pods:
        binding = at_size(binding, item.runs + item.pods + action.more)
    if not isinstance(state, Pending | Growing):
        return None
    before = state.record if isinstance(state, Growing) else None
    flavors = dict(flavors_of(alternative, before))
    known = cache.queues.queues.cluster_queues.get(queue)
    if isinstance(state, Growing) and known is not None:
        kept = growth_flavors(state, entry.binding, known, cache.fleet.reaches, cache.table)
        flavors = dict(kept) | flavors
    local_queue = state.local_queue if isinstance(state, Growing) else state.queue.local_queue
    group = before.group if before is not None else entry.facts.group
    service_class = priority.service_class.name if priority.service_class is not None else ""
    value = priority.value
    if before is not None and not _knows_template(cache, entry):
        # What the workload names now is not known: it stays what it was admitted as.
        service_class, value = before.service_class, before.priority
    record = admission_record(
        state,
        binding,
        queue=queue,
        local_queue=local_queue,
        service_class=service_class,
        priority=value,
        flavors=tuple(sorted(flavors.items())),
        components=before.components if before is not None else components_of(alternative),
        admitted_ms=now.day_ms,
        group=group if before is not None or isinstance(state, Pending) else "",
        decision=before.decision if before is not None else None,
        began_ms=_began_ms(entry, now) if before is not None else 0,
    )
    is_part = record.replicas < entry.binding.demand.replicas
    return replace(record, not_before_ms=now.day_ms + GROWS_EVERY_MS) if is_part else record


def _began_ms(entry: Entry, now: Moment) -> int:
    """Since when what grows runs; 0 where nothing of it does."""
    binding = entry.binding
    if not binding.placed or not (binding.demand.is_set or placed_replicas(binding)):
        return 0
    return began_day_ms(binding, entry.seen, now) or 0


def _knows_template(cache: Cache, entry: Entry) -> bool:
    return isinstance(cache.templates.facts(entry.binding.workload), TemplateFacts)
