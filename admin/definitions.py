"""What the words of the report mean, said once and the same everywhere it is shown."""

POD_SHARE = "half of its devices' fair share of the node's CPU and memory"
"""What pods that are counted as fitting now bring beside devices; what such pods cannot use is stranded."""

DEFINITIONS: tuple[tuple[str, str], ...] = (
    ("Devices", "Physical devices. A device that is shared or advertised several times counts once."),
    ("Total", "All devices that the nodes have, healthy or not."),
    (
        "Unhealthy",
        "Devices that a node does not offer (capacity less allocatable), or that its agent finds broken.",
    ),
    (
        "Allocated",
        "What pods that have not ended request of devices, those nominated to a node among them; a device "
        "that is cut counts whole as soon as one piece is in use. Not how busy the devices are, and more "
        "than what pods hold by 'Who uses what'.",
    ),
    ("Usable", "Free less stranded."),
    ("Free", "Healthy and not allocated, on nodes that take new pods at all."),
    ("Cordoned", "Idle on cordoned nodes: neither allocated nor free until the cordons are lifted."),
    (
        "Stranded",
        f"Free, but of no use now: a pod of one device that brings {POD_SHARE} "
        "does not fit there, the node keeps pods away by a taint, or its slice is not whole.",
    ),
    (
        "Fits now",
        f"So many pods of 8, 4, 2 or 1 devices each fit beside what runs, each of which brings {POD_SHARE}: "
        "never on devices that are stranded. The four are alternatives: do not add them up.",
    ),
    (
        "Largest gang",
        "So many such pods of one size that fit at the same time inside one domain of a topology level, or "
        "anywhere in the cluster.",
    ),
    (
        "Slices",
        "TPU slices and other groups of nodes that are used as a whole. Partly busy: some host is taken, so "
        "the slice cannot be. Incomplete: hosts are missing or unhealthy.",
    ),
    (
        "Partitions",
        "Fixed pieces of devices (MIG profiles). Could be cut: how many more there would be if devices that "
        "nothing runs on were cut anew into this profile alone.",
    ),
    (
        "Fractions",
        "Devices that a sharing scheme divides. Free is in whole devices; the largest piece is what one pod "
        "can get on one device.",
    ),
    (
        "Age",
        "How long ago the state was true: of a live cluster when it was read, of a file when it was written.",
    ),
)

_CAUSES = {
    "cpu": "no CPU left",
    "memory": "no memory left",
    "ephemeral-storage": "no local disk left",
    "pods": "no pod slot left",
    "taint": "behind a taint",
    "unhealthy": "devices unhealthy",
    "fragments": "only fragments of devices",
}


def cause_text(cause: str) -> str:
    """Why devices are stranded, in words; a cause that is not known here stays as it is."""
    return _CAUSES.get(cause, cause)
