"""How good are the answers about gangs, and how soon are they there?

Four kinds of instances, drawn by chance: small ones, each compared with the best there is by brute force; ones
on 50 mixed nodes, where first-fit is often short; and ones shaped like GPU workloads, on 500 and on 5,000
nodes. Every placement is checked from the objects. No process is started: this is the search alone.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from statistics import mean

from benchmarks.load import percentile
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import Setting
from estimator.capacity import integer_program
from estimator.capacity.budget import Budget
from estimator.capacity.component_sets import Sets, max_sets
from estimator.capacity.eligibility import EligibilityCache
from estimator.capacity.first_fit import first_fit
from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.cluster.mirror import ClusterMirror
from tests import gang_checker
from tests.estimator.gang_instances import (
    Fleet,
    by_node,
    components,
    gpu_fleet,
    gpu_gang,
    mixed_fleet,
    mixed_gang,
    small_fleet,
    small_gang,
)
from tests.gang_checker import Part
