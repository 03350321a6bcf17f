"""All of Karmada put together: what one installation is, with its limits, and what can go wrong with it."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from sandbox.simulation.api_server import ApiServer
from sandbox.simulation.karmada.clusters import REPORT_MS, Clusters
from sandbox.simulation.karmada.controller import Controller
from sandbox.simulation.karmada.detector import Detector
from sandbox.simulation.karmada.estimation import Accurate
from sandbox.simulation.karmada.execution import Execution
from sandbox.simulation.karmada.scheduler import Scheduler
from sandbox.simulation.karmada.throttle import Throttle
from sandbox.simulation.member import Member


@dataclass(frozen=True, slots=True)
class Limits:
    """--kube-api-qps and --kube-api-burst of the two programs; 0 requests a second: no limit.

    ``report_ms``: --cluster-status-update-frequency.
    """

    scheduler_qps: int = 40
    scheduler_burst: int = 60
    manager_qps: int = 40
    manager_burst: int = 60
    report_ms: int = REPORT_MS


class Karmada:
    """``labels``: of Cluster objects, by name. `start` it once; from then on it runs with the timeline."""

    def __init__(
        self,
        api: ApiServer,
        members: Mapping[str, Member],
        rng: random.Random,
        *,
        accurate: Accurate | None = None,
        limits: Limits = Limits(),
        has_failover: bool = False,
        labels: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        manager = api.client("karmada-controller-manager")
        self.members = members
        throttle = Throttle(limits.manager_qps, limits.manager_burst)
        self.detector = Detector(manager, rng, throttle)
        self.execution = Execution(manager, rng, throttle, self.detector, members)
        self.clusters = Clusters(
            manager,
            rng,
            members,
            self.execution,
            report_ms=limits.report_ms,
            has_failover=has_failover,
        )
        self.scheduler = Scheduler(
            api.client("karmada-scheduler"),
            rng,
            accurate=accurate,
            throttle=Throttle(limits.scheduler_qps, limits.scheduler_burst),
        )
        self._labels = labels

    def start(self) -> None:
        """Join the members and begin to work."""
        self.clusters.join(self._labels)
        self.detector.start()
        self.execution.start()
        self.scheduler.start()

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """Those of the controller-manager."""
        return (self.detector.controller, *self.execution.controllers)

    def slow_down(self, times: int) -> None:
        """From now on everything takes so many times longer than in quiet; 1: as long."""
        self.scheduler.slow = times
        for controller in self.controllers:
            controller.slow = times

    def stop_manager(self) -> None:
        """The controller-manager is away: no bindings, no Works, no statuses."""
        for controller in self.controllers:
            controller.pause()

    def resume_manager(self) -> None:
        """It is back, and takes up what has queued."""
        for controller in self.controllers:
            controller.resume()
