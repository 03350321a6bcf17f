"""The sample clusters of the demonstration as sources, for everybody who has no cluster at hand."""

import json
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile

from estimator.demo.fleet import fleet
from estimator.demo.objects import as_list
from fairway.kube.dumps import Dump, read_dump
from fairway.kube.member_kinds import Namespace
from fairway.kube.objects import ObjectMeta
from fairway.names import NOTIFY


def sample_dump(name: str, now: datetime) -> Dump:
    """The objects of the sample cluster, read as a dump of it would be. Blocks."""
    with NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(as_list(fleet(now)[name]), file)
        file.flush()
        dump = read_dump(Path(file.name))
    names = sorted({pod.metadata.namespace for pod in dump.pods})
    # So that `fairway notify` has somebody to tell.
    made = (Namespace(ObjectMeta(name=each, labels={NOTIFY: "true"})) for each in names)
    return dump.with_others(Namespace, tuple(made))
