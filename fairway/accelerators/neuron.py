"""AWS Neuron: one piece of hardware under three resource names.

Chips are advertised as ``neuron`` and, by older plugins, as ``neurondevice`` too; the cores on them as
``neuroncore``. kube-scheduler counts each name on its own, so a pod that holds chips leaves the node's cores
looking free. What is free under one name is what all of them together leave.
"""

import re
from collections.abc import Mapping

from fairway.accelerators.devices import Read
from fairway.resources import Amounts

NEURON = "aws.amazon.com/neuron"
NEURON_DEVICE = "aws.amazon.com/neurondevice"
NEURON_CORE = "aws.amazon.com/neuroncore"
NAMES = (NEURON, NEURON_DEVICE, NEURON_CORE)

_INSTANCE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_FAMILY = re.compile(r"(?:ml\.)?(inf1|inf2|trn1|trn2)[a-z-]*\.")
# Physical cores on a chip; a node may be told to join them in pairs, which only its allocatable shows.
_CORES = {"inf1": 4, "inf2": 2, "trn1": 2, "trn2": 8}


def cores_per_chip(allocatable: Mapping[str, int], labels: Mapping[str, str]) -> Read[int]:
    """Cores of one chip, from allocatable, else from the instance type; 0 if neither tells."""
    chips, cores = _chips(allocatable), allocatable.get(NEURON_CORE, 0)
    if chips > 0 and cores > 0 and cores % chips == 0:
        return Read(cores // chips)
    instance = next((labels[key] for key in _INSTANCE_LABELS if key in labels), "")
    family = _FAMILY.match(instance)
    known = _CORES[family[1]] if family else 0
    if chips > 0 and cores > 0:
        used = (
            f"{known} a chip, as {instance} has" if known else "each chip counted as used by any core in use"
        )
        return Read(known, (f"{cores} of {NEURON_CORE} on {chips} chips: expected a multiple; {used}",))
    return Read(known)


def free_neuron(
    allocatable: Mapping[str, int], used: Mapping[str, int], labels: Mapping[str, str]
) -> Read[Amounts]:
    """What is really free on a node under each of the names that it advertises, never negative.

    ``used`` is what its pods ask for. Cores in use are taken to lie close together, lowest chips first, as
    the plugin hands them out; a chip with one core in use is no free chip. Where the number of cores of a
    chip is not known, any core in use takes a chip of its own and any chip in use takes all cores.
    """
    read = cores_per_chip(allocatable, labels)
    per_chip = read.found
    chips_used = max(used.get(NEURON, 0), 0) + max(used.get(NEURON_DEVICE, 0), 0)
    cores_used = max(used.get(NEURON_CORE, 0), 0)
    chips_by_cores = -(-cores_used // per_chip) if per_chip else cores_used
    chips = max(_chips(allocatable) - chips_used - chips_by_cores, 0)
    cores = allocatable.get(NEURON_CORE, 0) - cores_used
    if chips_used:
        cores = cores - chips_used * per_chip if per_chip else 0
    free: Amounts = {}
    for name in (NEURON, NEURON_DEVICE):
        if name in allocatable:
            free[name] = max(min(chips, allocatable[name] - used.get(name, 0)), 0)
    if NEURON_CORE in allocatable:
        free[NEURON_CORE] = max(cores, 0)
    return Read(free, read.problems)


def _chips(allocatable: Mapping[str, int]) -> int:
    return max(allocatable.get(NEURON, 0), allocatable.get(NEURON_DEVICE, 0))
