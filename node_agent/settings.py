"""Everything a running agent was told, checked and immutable. ``node_agent.flags`` makes it."""

from dataclasses import dataclass
from pathlib import Path

from fairway.service.common_flags import EndpointSettings, LogSettings


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """How to reach the cluster's API server; without a kubeconfig and a master as the pod that we run in."""

    kubeconfig: Path | None
    context: str
    master: str


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole configuration of an agent.

    ``node``: the name of the Node that it runs on. ``period_s``: between two looks at the devices.
    ``publishes``: whether NodeDevices is written; metrics are served in any case.
    """

    node: str
    period_s: float
    publishes: bool
    api: ApiSettings
    endpoints: EndpointSettings
    logs: LogSettings
    notices: tuple[str, ...] = ()
