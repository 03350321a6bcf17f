"""Stores the object of our node, and survives every way in which that fails.

One request a write: server-side apply makes the object or brings it up to date, whoever wrote it before.
Nothing is deleted: the object belongs to its Node and goes with it. What stays wrong is told once, and once
more when it has ended.
"""

import logging
import re
from collections.abc import Callable
from typing import Final

from fairway.kube.client import METADATA, KubeClient
from fairway.kube.errors import BadObject, Forbidden, KubeError, NotFound, Refused
from fairway.kube.node_devices import NODE_DEVICES, NodeDevices
from fairway.kube.patching import apply
from node_agent.document import Owner, encoded
from node_agent.identity import Identity, who_am_i

logger = logging.getLogger(__name__)

_ASK_AGAIN_S: Final = 3600.0
_OWNER_REFUSED: Final = "cannot set an ownerRef"
"""OwnerReferencesPermissionEnforcement: owners only for who may delete the object, which we may not."""
_NO_SUCH_OBJECT: Final = re.compile(r'"[^"]+" not found')
"""Of an object that is not there the server tells the name; of a kind that is not served it knows none."""


class WriteFailed(Exception):
    """Nothing was stored, as far as is known. ``label``: the reason in metrics."""

    def __init__(self, label: str, retry_after_s: float | None) -> None:
        super().__init__(label)
        self.label = label
        self.retry_after_s = retry_after_s


class ReadFailed(Exception):
    """What is stored is not known, and may be later. ``label``: the reason in metrics."""

    def __init__(self, label: str, retry_after_s: float | None) -> None:
        super().__init__(label)
        self.label = label
        self.retry_after_s = retry_after_s


class Writer:
    """Writes the object of ``node``. ``clock`` is monotonic, in seconds."""

    def __init__(self, client: KubeClient, node: str, clock: Callable[[], float]) -> None:
        self._client = client
        self._node = node
        self._clock = clock
        self._identity: Identity | None = None
        self._ask_at_s = 0.0
        self._may_own = True
        self._generation = 0
        self._problem = ""
        self._failure = ""
        self._left_out = ""
        self.foreign_writes = 0

    @property
    def problem(self) -> str:
        """Why nothing can be written; empty while it can."""
        return self._problem

    async def read(self) -> NodeDevices | None:
        """What is stored; None where there is nothing, or nothing that can be read.

        Raises ReadFailed where that is not known: to write then would lose what is wrong with the devices,
        and the days of a month. A server that has just started denies what it is going to grant, and does not
        serve what it is going to serve.
        """
        try:
            return await self._client.get_json(NODE_DEVICES.object_path(self._node), NodeDevices)
        except BadObject as error:
            logger.warning("what was written before cannot be read, and is written anew: %s", error)
            return None
        except KubeError as error:
            if isinstance(error, NotFound) and _NO_SUCH_OBJECT.search(str(error)):
                return None
            self._failed(error, "it is known what was")
            wait_s = error.retry_after_s if isinstance(error, Refused) else None
            raise ReadFailed(error.label, wait_s) from error

    async def is_there(self) -> bool:
        """False only where the server says that there is nothing; asks for the metadata alone."""
        path = NODE_DEVICES.object_path(self._node)
        try:
            await self._client.get_json(path, NodeDevices, accept=METADATA)
        except NotFound:
            return False
        except KubeError as error:
            logger.debug("whether NodeDevices %s is there is not known: %s", self._node, error)
        return True

    async def write(self, made: NodeDevices) -> None:
        """Store it. Raises WriteFailed."""
        try:
            stored = await self._apply(made)
        except KubeError as error:
            self._failed(error, "this has ended")
            wait_s = error.retry_after_s if isinstance(error, Refused) else None
            raise WriteFailed(error.label, wait_s) from error
        if self._problem:
            logger.info("NodeDevices %s is written again", self._node)
            self._problem = self._failure = ""
        self._look_for_others(stored)

    async def _apply(self, made: NodeDevices) -> NodeDevices:
        owner = await self._owner()
        path = NODE_DEVICES.object_path(self._node)
        body, left_out = encoded(made, owner)
        if left_out != self._left_out:
            if left_out:
                logger.warning("NodeDevices %s is too large, and left out are: %s", self._node, left_out)
            self._left_out = left_out
        try:
            return await apply(self._client, path, body, NodeDevices)
        except Forbidden as error:
            if owner is None or _OWNER_REFUSED not in str(error):
                raise
            logger.warning(
                "NodeDevices %s cannot belong to its Node, for the server demands permission to delete it: "
                "it has to be deleted by hand when the node is gone",
                self._node,
            )
            self._may_own = False
            return await apply(self._client, path, encoded(made, None)[0], NodeDevices)

    async def _owner(self) -> Owner | None:
        """Our Node; asked for now and then, for a node that is made anew has another uid."""
        if not self._may_own:
            return None
        now_s = self._clock()
        if self._identity is None or now_s >= self._ask_at_s:
            identity = await self._ask()
            if identity != self._identity:
                self._tell(identity)
            self._identity, self._ask_at_s = identity, now_s + _ASK_AGAIN_S
        uid = self._identity.node_uid
        return Owner(self._node, uid) if uid and self._identity.node == self._node else None

    async def _ask(self) -> Identity:
        try:
            return await who_am_i(self._client)
        except Refused as error:
            logger.warning(
                "who we are is not known, so that the object does not belong to its Node: %s", error
            )
            return Identity()

    def _tell(self, identity: Identity) -> None:
        if not identity.node:
            logger.warning(
                "the token of %r names no node; expected that of a pod (Kubernetes 1.30 or newer): the "
                "object does not belong to its Node, and the admission policy refuses it where installed",
                identity.user,
            )
        elif identity.node != self._node:
            logger.warning(
                "we write about node %s, and our token is of node %s: expected the same; "
                "the admission policy refuses that where it is installed",
                self._node,
                identity.node,
            )

    def _failed(self, error: KubeError, until: str) -> None:
        self._ask_at_s = 0.0
        problem = str(error)
        if isinstance(error, NotFound):
            problem = (
                "nodedevices.fairway.dev is not served; expected its CustomResourceDefinition "
                "(manifests/member/node-agent/crd.yaml); metrics are served all the same"
            )
        if error.label != self._failure:
            logger.warning("NodeDevices %s is not written until %s: %s", self._node, until, problem)
        self._problem, self._failure = problem, error.label

    def _look_for_others(self, stored: NodeDevices) -> None:
        """The generation counts every write; one that is not ours is somebody else's."""
        before, self._generation = self._generation, stored.metadata.generation
        others = stored.metadata.generation - before - 1
        if not before or others <= 0:
            return
        if not self.foreign_writes:
            logger.warning(
                "NodeDevices %s: somebody else writes it, too; expected one agent on each node: look for a "
                "second DaemonSet (kubectl get pods -A --field-selector spec.nodeName=%s)",
                self._node,
                self._node,
            )
        self.foreign_writes += others
