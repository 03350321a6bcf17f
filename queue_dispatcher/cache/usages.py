"""What queues have used over time: of each ClusterQueue and LocalQueue a history, and what it holds now.

Histories come from the queues' statuses and from what runs (`queue_dispatcher.ledger.accrual`). Whoever leads
reads a status once, when it begins to, and goes on from there; whoever follows reads each that is written
anew. Between changes of what is held nothing is computed until somebody asks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from queue_dispatcher.api.budget import Budget
from queue_dispatcher.api.cluster_queue import WEIGHT_MILLI, ClusterQueue
from queue_dispatcher.api.fair_sharing import PRICE_MILLI
from queue_dispatcher.api.history import NOTHING, History
from queue_dispatcher.api.resource_flavor import ResourceFlavor
from queue_dispatcher.cache.queues import QueueCache
from queue_dispatcher.cycle.sharing import Sharing, share, sharing
from queue_dispatcher.ledger.accrual import IDLE, MAX_AHEAD_MS, Rate, Run, Terms, advanced, restored
from queue_dispatcher.ledger.cells import Cell, CellTable, Charge

SHARE_EVERY_MS: Final = 1_000
"""For so long shares are not worked out anew: thousands of LocalQueues are put in order many times a
second."""


class _Held(NamedTuple):
    local: str
    queue: str
    charge: Charge
    since_ms: int


class _Share(NamedTuple):
    at_ms: int
    unweighted: int


class _Exhausted(NamedTuple):
    """Which of the ``budgets`` are used up, at any time from one to before another while the same is held."""

    budgets: tuple[Budget, ...]
    from_ms: int
    until_ms: int
    found: tuple[Budget, ...]


@dataclass(slots=True)
class _Account:
    """``history``: None until it has been read; ``written``: what it was read from. ``share`` and
    ``exhausted``: as they were worked out last, None where something has changed since.
    """

    history: History | None = None
    written: History | None = None
    rate: Rate = IDLE
    terms: Terms = field(default_factory=Terms)
    runs: dict[str, Run] = field(default_factory=dict)
    share: _Share | None = None
    exhausted: _Exhausted | None = None


class Usages:
    """One writer. Queues are known by name, LocalQueues by ``namespace/name``; times are epoch milliseconds.

    ``flavors``: by name, those there are.
    """

    def __init__(
        self,
        queues: QueueCache,
        flavors: Mapping[str, ResourceFlavor],
        table: CellTable,
        is_accelerator: Callable[[str], bool],
    ) -> None:
        self._queues = queues
        self._flavors = flavors
        self._table = table
        self._is_accelerator = is_accelerator
        self._is_leading = False
        self._are_prices_stale = False
        self._prices: dict[Cell, int] = {}
        self._priced = 0
        self._held: dict[str, _Held] = {}
        self._of_queue: dict[str, _Account] = {}
        self._of_local: dict[str, _Account] = {}

    def lead(self, is_leading: bool) -> None:
        """Whether this process writes the statuses from now on; either way they are read once more."""
        self._is_leading = is_leading
        for account in (*self._of_queue.values(), *self._of_local.values()):
            account.history = account.share = account.exhausted = None

    def flavor_changed(self, before: ResourceFlavor | None, after: ResourceFlavor | None) -> None:
        """What a flavor's devices count may be another from now on."""
        if (before.weighs_milli if before else None) != (after.weighs_milli if after else None):
            self._are_prices_stale = True

    def put(self, uid: str, local: str, queue: str, charge: Charge, since_ms: int, now_ms: int) -> None:
        """The workload is charged so to a queue, through a LocalQueue, empty for none; nothing ends it."""
        held = _Held(local, queue, charge, since_ms)
        before = self._held.get(uid)
        if before == held:
            return
        if before is not None:
            self._end(uid, before, now_ms)
        if charge:
            self._held[uid] = held
            self._begin(uid, held, now_ms)

    def drop(self, uid: str, now_ms: int) -> None:
        """The workload is charged nothing any more."""
        before = self._held.get(uid)
        if before is not None:
            self._end(uid, before, now_ms)

    def queue_of(self, uid: str) -> str:
        """The ClusterQueue that the workload is charged to, as far as that is counted; empty for none."""
        held = self._held.get(uid)
        return held.queue if held is not None else ""

    def displaced(self, uid: str, root: str, now_ms: int) -> None:
        """The workload was displaced: all that it had run is lost, in the tree with that root. To be
        told once, before `drop`; who follows reads it of who leads.
        """
        held, stated = self._held.get(uid), self._queues.cluster_queues.values.get(root)
        if held is None or stated is None or stated.preemption_budget is None or not self._is_leading:
            return
        now = self.of_queue(root, now_ms)
        lost_ms = now.displaced.device_ms + self.lost_ms(held.charge, held.since_ms, now_ms)
        displaced = now.displaced._replace(device_ms=lost_ms)
        _account(self._of_queue, root).history = replace(now, displaced=displaced)

    def lost_ms(self, charge: Charge, since_ms: int, now_ms: int) -> int:
        """What is lost where work that is charged so since a time is stopped, device-milliseconds."""
        return self._rate(charge).devices * max(0, now_ms - since_ms)

    def settle(self, now_ms: int) -> None:
        """What has been held until now is counted at the prices until now, what is from now on at others."""
        _prune(self._of_queue, self._queues.cluster_queues.values)
        _prune(self._of_local, self._queues.local_queues.values)
        if not self._are_prices_stale:
            return
        self._are_prices_stale = False
        held = dict(self._held)
        for uid, one in held.items():
            self._end(uid, one, now_ms)
        self._prices, self._priced = {}, 0
        for uid, one in held.items():
            self._held[uid] = one
            self._begin(uid, one, now_ms)

    def of_queue(self, name: str, now_ms: int) -> History:
        """What has been charged to a ClusterQueue itself by now."""
        stated = self._queues.cluster_queues.values.get(name)
        budgets = {budget.name: budget for budget in stated.budgets} if stated is not None else {}
        written = stated.history if stated is not None else None
        lost = stated.preemption_budget if stated is not None else None
        terms = Terms(budgets=budgets, displaced=lost.period if lost is not None else None)
        return self._now(_account(self._of_queue, name), written, terms, now_ms)

    def of_local(self, key: str, now_ms: int) -> History:
        """What a LocalQueue has used by now."""
        stated = self._queues.local_queues.values.get(key)
        queue = self._queues.cluster_queues.values.get(stated.cluster_queue) if stated is not None else None
        fair_sharing = queue.fair_sharing if queue is not None else None
        terms = Terms(fair_sharing.half_life_ms) if fair_sharing is not None else Terms()
        written = stated.history if stated is not None else None
        return self._now(_account(self._of_local, key), written, terms, now_ms)

    def share(self, key: str, now_ms: int) -> int:
        """What a LocalQueue goes by; see `queue_dispatcher.cycle.sharing.share`. While it holds the same, as
        it was within the last second.
        """
        stated = self._queues.local_queues.values.get(key)
        weight_milli = stated.weight_milli if stated is not None else WEIGHT_MILLI
        account = _account(self._of_local, key)
        if account.share is None or not 0 <= now_ms - account.share.at_ms < SHARE_EVERY_MS:
            price_milli, decayed = account.rate.price_milli, self.of_local(key, now_ms).decayed
            account.share = _Share(now_ms, share(decayed, price_milli, WEIGHT_MILLI))
        return account.share.unweighted * WEIGHT_MILLI // weight_milli

    def sharing(self, queue: ClusterQueue, lines: Iterable[str], now_ms: int) -> Sharing | None:
        """Who of the LocalQueues has used how much; None where nobody shares the queue."""
        if queue.fair_sharing is None:
            return None
        known = self._queues.local_queues.values
        shares = {line: self.share(line, now_ms) for line in lines}
        weights = {line: known[line].weight_milli for line in shares if line in known}
        return sharing(shares, weights, self.prices)

    def exhausted(self, queue: ClusterQueue, now_ms: int) -> Sequence[Budget]:
        """The budgets of a queue that are used up."""
        budgets = queue.budgets
        if not budgets:
            return ()
        account = _account(self._of_queue, queue.name)
        known = account.exhausted
        # Whoever follows reads every status that is written anew.
        if (
            known is None
            or not self._is_leading
            or known.budgets != budgets
            or not known.from_ms <= now_ms < known.until_ms
        ):
            spent = self.of_queue(queue.name, now_ms).spent
            left_ms = {one: one.device_ms - spent.get(one.name, NOTHING).device_ms for one in budgets}
            until_ms = min(one.period.renews_ms(now_ms) for one in budgets)
            if devices := account.rate.devices:
                until_ms = min(
                    (until_ms, *(now_ms - -left // devices for left in left_ms.values() if left > 0))
                )
            found = tuple(one for one, left in left_ms.items() if left <= 0)
            known = account.exhausted = _Exhausted(budgets, now_ms, until_ms, found)
        return known.found

    def is_counted(self, queue: ClusterQueue) -> bool:
        """Whether anybody asks what the queue has used: it is shared, has budgets, or its flavors prices."""
        if queue.fair_sharing is not None or queue.budgets or queue.preemption_budget is not None:
            return True
        flavors = (self._flavors.get(one.flavor) for group in queue.groups for one in group.flavors)
        return any(flavor is not None and flavor.price_milli is not None for flavor in flavors)

    @property
    def prices(self) -> Mapping[Cell, int]:
        """By cell, what its devices count, thousandths; those left out are of no device."""
        for cell in range(self._priced, len(self._table)):
            name = self._table.name(cell)
            if self._is_accelerator(name.resource):
                flavor = self._flavors.get(name.flavor)
                self._prices[cell] = flavor.weighs_milli if flavor is not None else PRICE_MILLI
        self._priced = len(self._table)
        return self._prices

    def _begin(self, uid: str, held: _Held, now_ms: int) -> None:
        run = Run(self._rate(held.charge), held.since_ms)
        for account in self._accounts(held):
            _advance(account, now_ms)
            account.runs[uid] = run
            account.rate = account.rate.plus(run.rate)

    def _end(self, uid: str, held: _Held, now_ms: int) -> None:
        del self._held[uid]
        for account in self._accounts(held):
            _advance(account, now_ms)
            account.rate = account.rate.minus(account.runs.pop(uid).rate)

    def _accounts(self, held: _Held) -> Iterator[_Account]:
        if held.queue:
            yield _account(self._of_queue, held.queue)
        if held.local:
            yield _account(self._of_local, held.local)

    def _rate(self, charge: Charge) -> Rate:
        prices = self.prices
        devices = [(amount, prices[cell]) for cell, amount in charge if cell in prices]
        return Rate(sum(amount for amount, _ in devices), sum(amount * price for amount, price in devices))

    def _now(self, account: _Account, written: History | None, terms: Terms, now_ms: int) -> History:
        _set_back(account, now_ms)
        is_news = not self._is_leading and written != account.written
        if account.history is None or is_news:
            account.history = restored(written, account.runs.values(), now_ms, terms)
            account.written = written
        elif account.terms != terms:
            _advance(account, now_ms)
            account.history = restored(account.history, account.runs.values(), now_ms, terms)
        account.terms = terms
        return advanced(account.history, account.rate, now_ms, terms)


def _account(accounts: dict[str, _Account], key: str) -> _Account:
    found = accounts.get(key)
    if found is None:
        found = accounts[key] = _Account()
    return found


def _prune(accounts: dict[str, _Account], stated: Mapping[str, object]) -> None:
    """Forget those whose queue is gone and that hold nothing, once they are many."""
    if len(accounts) > 2 * len(stated) + 100:
        for key in [key for key, account in accounts.items() if not account.runs and key not in stated]:
            del accounts[key]


def _advance(account: _Account, now_ms: int) -> None:
    """Count what was held until now, before something else is; what has not been read yet is counted then."""
    account.share = account.exhausted = None
    _set_back(account, now_ms)
    if account.history is not None:
        account.history = advanced(account.history, account.rate, now_ms, account.terms)


def _set_back(account: _Account, now_ms: int) -> None:
    """A clock that was far ahead is right again: what was counted by it is as if another had written it."""
    history = account.history
    if history is not None and history.at_ms > now_ms + MAX_AHEAD_MS:
        account.history = restored(history, account.runs.values(), now_ms, account.terms)
