"""What the dispatcher's visibility API says: the JSON documents, shared by the server and those who read it.

A reader who may not see everything is told names of its own namespaces only. What waits beside that is
counted: fields whose names begin with ``other`` are 0 for a reader who sees everything.

``GET /visibility/v1/queues`` answers `QueueList`, ``/visibility/v1/queues/NAME`` a `QueueView` with
its pending workloads (``offset`` and ``limit``, at most 1,000), ``/visibility/v1/namespaces/NS/queues/NAME``
a `LocalQueueView`, ``/visibility/v1/workloads/NS/NAME`` a `WorkloadList` of all workloads of that name.
Amounts are whole units, cpu in milli. Fields are only ever added.
"""

import msgspec


class View(msgspec.Struct, frozen=True, rename="camel", omit_defaults=False):
    """Base of all documents: camelCase."""


class Waiting(View, frozen=True):
    """Why a workload waits. ``kind``: one of `queue_dispatcher.cycle.reasons`."""

    kind: str
    text: str
    unblock: str = ""


class Start(View, frozen=True):
    """How far what was released has come.

    ``phase``: Placing until all of it has clusters, then Placed, Bound once all of its pods have had nodes,
    Ready once all have run, as far as clusters report. ``pods``: how many are placed; ``bound``, ``running``:
    how many of those have nodes, as estimators count them, and run or have ended, -1 where that is not known.
    ``left_s``: how long it has until it is taken back for what it lacks now, in seconds rounded up; -1 where
    it is not.

    Told by the replica that released it alone: ``reason``, why it was released to its clusters, empty where
    Karmada chose them; ``guided``: in which of them its pods were told which nodes to prefer.
    """

    phase: str
    pods: int = 0
    bound: int = -1
    running: int = -1
    left_s: int = -1
    reason: str = ""
    guided: list[str] = []


class EtaView(View, frozen=True):
    """When what waits in a line is expected to start, if nobody else comes that goes first and its nodes are
    free when amounts are. ``at``: about when; ``by``: about when if all that is in its way runs for as long
    as it may; RFC 3339, empty where nobody knows.

    ``confidence``: ``bound`` where all ends that matter are enforced, ``history`` where it goes by how long
    earlier runs took, ``unknown``. ``text``: the same for people.
    """

    at: str = ""
    by: str = ""
    confidence: str = "unknown"
    text: str = ""


class ReservedAmount(View, frozen=True):
    """So much of a resource of a flavor is reserved; ``lacking``: how much of it is not free at present."""

    flavor: str
    resource: str
    amount: int
    lacking: int = 0


class Reservation(View, frozen=True):
    """The room that is reserved for a workload which waits. Told by the leader alone, which makes them.

    ``stage``: Reserved while others may start in it that are over at ``starts_at``; Draining from
    ``drains_at`` on, when nobody may. ``starts_at``: when it can start at the latest; empty where nobody
    knows, so that nobody may pass it either, and ``unknown`` says why. ``cluster``: where it is to start;
    empty where no estimator says, and ``amounts`` count wherever they are. ``held_until``: when it is given
    up if it has not started. ``text``: all of that in a sentence. Of a group all members are told the same.
    """

    stage: str
    text: str
    since: str
    drains_at: str
    held_until: str
    starts_at: str = ""
    unknown: str = ""
    cluster: str = ""
    amounts: list[ReservedAmount] = []


class WorkloadView(View, frozen=True):
    """One workload. ``state``: Held, Pending, Admitted, Starting, Placed, Unobserved, Growing, Finished,
    Adopted; Foreign where Fairway leaves it alone, NotGated where nothing could hold it,
    DispatchingSuspended where it is placed and a policy has Karmada send it nowhere.

    Positions count from 1, 0 for what does not wait. ``others_before``: how many of those before it in the
    ClusterQueue are of namespaces that the reader may not see; a group counts as one, as in positions. Times
    are RFC 3339, empty where there is none. ``start``: of what was released, and is not held again.
    ``eta``: of what stands in a line, as far as it was worked out. ``reservation``: of what waits and holds
    one.
    """

    namespace: str
    name: str
    kind: str
    binding: str
    state: str
    local_queue: str = ""
    cluster_queue: str = ""
    service_class: str = ""
    priority: int = 0
    position_in_cluster_queue: int = 0
    position_in_local_queue: int = 0
    enqueued_at: str = ""
    admitted_at: str = ""
    request: dict[str, int] = {}
    flavors: dict[str, str] = {}
    clusters: dict[str, int] = {}
    waiting: Waiting | None = None
    note: str = ""
    others_before: int = 0
    start: Start | None = None
    eta: EtaView | None = None
    reservation: Reservation | None = None


class Usage(View, frozen=True):
    """One resource of one flavor in a queue; limits are -1 where there is none.

    ``available``: what one more workload may be charged here now, borrowing included, and no more than is
    physically left, where that is known. ``not_running``: how much of ``used`` does not run yet, as far as
    member clusters have reported. ``reserved``: how much reservations keep for workloads that wait in this
    queue or below it, whether or not it is free yet; no part of ``used``.
    """

    flavor: str
    resource: str
    nominal: int
    used: int
    borrowed: int
    borrowing_limit: int = -1
    lending_limit: int = -1
    available: int = 0
    not_running: int = 0
    reserved: int = 0


class UsedView(View, frozen=True):
    """What was ever used: device-hours, and what they cost by the prices of flavors, both in thousandths."""

    device_hours_milli: int
    cost_milli: int


DISPLACED = "Displaced"
"""In place of a policy: a budget of what is lost as others are displaced."""


class BudgetView(View, frozen=True):
    """What of a budget was used in the period under way, device-hours in thousandths.

    ``period``: Day, Week or Month; ``policy``: Soft, Hard or `DISPLACED`. ``renews_at``: when the
    next one begins.
    """

    name: str
    period: str
    policy: str
    device_hours_milli: int
    used_milli: int
    renews_at: str


class SharerView(View, frozen=True):
    """A LocalQueue of a ClusterQueue that is shared by use. Amounts are in thousandths.

    ``share``: what it goes by, the least first; ``decayed``: device-hours by price and half-life.
    """

    namespace: str
    name: str
    weight_milli: int
    share_milli: int
    decayed_milli: int
    used: UsedView


class QueueView(View, frozen=True):
    """One ClusterQueue. ``share_milli``: its weighted dominant share, thousandths; 0 within its quota.

    ``problems``: what is wrong with the object, by field; ``stopped``: why it admits nothing, if so.
    ``other_pending``: how many of the ``pending`` are of namespaces that the reader may not see. Only told
    with the workloads. ``behind_s``: how long ago half of what members have reported nothing of was
    released, in seconds; 0 where there is none. ``starting``: how many were released and have never run as a
    whole; ``starts``: the first of those that the reader may see, by their release. Both are told with the
    workloads only. ``reservations``: how many of its workloads hold one. ``used``: none where nobody asks
    what it uses. ``sharers``: its LocalQueues, where they share it, of namespaces that the reader may see,
    whose turn is next first; with the workloads only.
    """

    name: str
    parent: str = ""
    strategy: str = ""
    weight_milli: int = 1000
    stopped: str = ""
    problems: list[str] = []
    pending: int = 0
    admitted: int = 0
    share_milli: int = 0
    usage: list[Usage] = []
    waiting: dict[str, int] = {}
    workloads: list[WorkloadView] = []
    other_pending: int = 0
    behind_s: int = 0
    reservations: int = 0
    starting: int = 0
    starts: list[WorkloadView] = []
    used: UsedView | None = None
    budgets: list[BudgetView] = []
    sharers: list[SharerView] = []


class QueueList(View, frozen=True):
    """All ClusterQueues, parents before children, siblings by name; then those that are gone and whose work
    runs on, with what that uses and ``stopped`` saying so.

    ``unresolved``: held workloads for which no queue can be told. ``in_flight``: released, not yet placed;
    ``window``: how many may be at once. ``other_queues``, ``other_unresolved``: how many are kept from the
    reader. ``unreviewed_namespaces``: how many were not looked at, as there are too many: name yours.
    ``observes``: nothing is held, and all of this is what would be.
    """

    queues: list[QueueView] = []
    unresolved: list[WorkloadView] = []
    in_flight: int = 0
    window: int = 0
    is_leader: bool = True
    as_of: str = ""
    other_queues: int = 0
    other_unresolved: int = 0
    unreviewed_namespaces: int = 0
    observes: bool = False


class LocalQueueView(View, frozen=True):
    """One LocalQueue and its pending workloads; ``starting`` and ``starts`` as in `QueueView`.

    ``sharing``: what it has used, where it shares its ClusterQueue.
    """

    namespace: str
    name: str
    cluster_queue: str
    stopped: str = ""
    problems: list[str] = []
    pending: int = 0
    admitted: int = 0
    workloads: list[WorkloadView] = []
    starting: int = 0
    starts: list[WorkloadView] = []
    sharing: SharerView | None = None


class WorkloadList(View, frozen=True):
    """Workloads of one name; several where kinds or bindings share it.

    None where the dispatcher knows none of that name there: a typing error, or gone. What has been released
    is still told of. ``namespaces``: where else there is one of that name, if there is none here.
    """

    workloads: list[WorkloadView] = []
    namespaces: list[str] = []
