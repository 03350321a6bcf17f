"""Sources as the command line names them, each with a name: a kubeconfig has that of its context."""

from collections.abc import Sequence
from dataclasses import replace

from admin.sources import (
    SAMPLES,
    LiveSource,
    NamedSource,
    SampleSource,
    Source,
    SourceError,
    UnreadableSource,
    check_names,
    file_kind,
    parse_source,
)
from fairway.kube.errors import BadConfig


def named_sources(texts: Sequence[str], *, samples: bool = False) -> tuple[Source, ...]:
    """All sources, and with ``samples`` the sample clusters; of neither any, the cluster that kubectl would
    talk to. Reads files.

    One of several that cannot be read is an `UnreadableSource`. Raises SourceError, and BadConfig for a
    kubeconfig whose context is needed and cannot be found.
    """
    if not texts and not samples:
        return (_named(LiveSource("", None, "")),)
    named: list[Source] = [SampleSource(name) for name in SAMPLES if samples]
    errors: list[SourceError | BadConfig] = []
    for text in texts:
        try:
            named.append(_named(parse_source(text, file_kind)))
        except (SourceError, BadConfig) as error:
            errors.append(error)
            named.append(UnreadableSource(text, str(error).removeprefix(f"source {text!r}: ")))
    if len(errors) == len(named):
        raise errors[0]
    check_names(named)
    return tuple(named)


def _named(source: NamedSource) -> NamedSource:
    if not isinstance(source, LiveSource) or source.name:
        return source
    # What files do not need costs a third of the time that the command takes to start.
    from fairway.kube.kubeconfig import default_paths, read_kubeconfig

    paths = default_paths() if source.kubeconfig is None else (str(source.kubeconfig),)
    return replace(source, name=read_kubeconfig(paths, source.context or None, None).context)
