"""What a replica that does not lead says of what only the leader knows. Pure.

Followers see all that is written, so they know quotas, positions and what runs as well as the leader does.
But only the leader asks the estimators and only the leader releases: what follows from that is told as the
leader's to say, with its name, instead of being guessed.
"""

from typing import Final

from queue_dispatcher.cycle.reasons import Reason, waiting_for_estimate

NOT_DECIDED: Final = waiting_for_estimate("it has not been its turn to be looked at yet")
"""What the leader says of what it has not come to."""
_NOBODY: Final = "a replica of fairway-dispatcher comes to lead: see its log and its Lease"


def asked_by(leader: str) -> Reason:
    """Of what the leader asks the estimators about; ``leader``: its identity in the Lease, empty for none."""
    pod = _pod(leader)
    if not pod:
        told = "no replica leads, so nobody asks the estimators whether it fits"
        return waiting_for_estimate(told, _NOBODY)
    return waiting_for_estimate(
        f"asked by the leader {pod}; its answer is not known here, on a replica that follows",
        f"the estimators answer; {pod} tells what they have said",
    )


def released_by(leader: str) -> Reason:
    """Of what has room as far as a follower knows."""
    pod = _pod(leader)
    if not pod:
        return waiting_for_estimate("there is room for it, but no replica leads and releases it", _NOBODY)
    return waiting_for_estimate(
        f"there is room for it as far as is known here, on a replica that follows; the leader {pod} decides",
        f"the leader releases it; {pod} tells why it has not",
    )


def _pod(identity: str) -> str:
    """The host in an identity; see `fairway.kube.lease.new_identity`."""
    return identity.rpartition("_")[0] or identity
