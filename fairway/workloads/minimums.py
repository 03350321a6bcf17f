"""How a minimum that is stated for a whole workload is shared among its pod sets.

"12 pods must start together" does not say which 12. Gang schedulers reserve room for some definite ones, and
so does Fairway: what each set needs by itself first, then the sets in their order. Mirrors what the job
controller of Volcano sets aside for a PodGroup (pkg/controllers/job/job_controller_util.go), with all
priorities taken as equal, because a template names a priority class without its value.
"""

from collections.abc import Sequence


def shared_minimum(total: int, counts: Sequence[int], least: Sequence[int]) -> tuple[int, ...]:
    """How many pods of each set make up the ``total`` that must start together.

    Each set gets its ``least``, and what is left of the total goes to the sets in order, up to their counts.
    A total below the sum of what the sets need overrules them: then the sets are filled in order. A total
    above the sum of the counts gives the counts.
    """
    shares = [0] * len(counts)
    if total >= sum(least):
        shares = [min(needed, count) for needed, count in zip(least, counts, strict=True)]
    left = total - sum(shares)
    for index, count in enumerate(counts):
        more = max(0, min(left, count - shares[index]))
        shares[index] += more
        left -= more
    return tuple(shares)
