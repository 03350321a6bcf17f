"""Sources as the command line names them, each with a name: a kubeconfig has that of its context."""

from collections.abc import Sequence
from dataclasses import replace

from admin.sources import SAMPLES, LiveSource, SampleSource, Source, check_names, file_kind, parse_source
from fairway.kube.kubeconfig import default_paths, read_kubeconfig


def named_sources(texts: Sequence[str], *, samples: bool = False) -> tuple[Source, ...]:
    """All sources, and with ``samples`` the sample clusters; of neither any, the cluster that kubectl would
    talk to. Reads files.

    Raises SourceError, and BadConfig for a kubeconfig whose context is needed and cannot be found.
    """
    sources: list[Source] = [parse_source(text, file_kind) for text in texts]
    sources += [SampleSource(name) for name in SAMPLES if samples]
    sources = sources or [LiveSource("", None, "")]
    named = tuple(_named(source) for source in sources)
    check_names(named)
    return named


def _named(source: Source) -> Source:
    if not isinstance(source, LiveSource) or source.name:
        return source
    paths = default_paths() if source.kubeconfig is None else (str(source.kubeconfig),)
    return replace(source, name=read_kubeconfig(paths, source.context or None, None).context)
