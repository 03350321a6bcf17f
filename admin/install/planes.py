"""The API servers that an installation is about, as the command line names them, and a client for each."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from admin.cli import Failed
from admin.install.step import HOST, KARMADA
from admin.sources import DumpSource, LiveSource, SourceError, file_kind, parse_source
from fairway.kube.client import KubeClient
from fairway.kube.yaml_text import NoYaml, yaml_value

_QPS: Final = 50.0
_BURST: Final = 100
_LARGEST_KUBECONFIG_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class PlaneFlags:
    """As given: ``KUBECONFIG[@CONTEXT]``, and ``NAME=KUBECONFIG[@CONTEXT]`` for members."""

    host: str
    karmada: str
    members: tuple[str, ...]

    def sources(self) -> dict[str, LiveSource]:
        """Where each API server is, by its name. Raises Failed."""
        found = {HOST: _source("--host", self.host), KARMADA: _source("--karmada", self.karmada)}
        for text in self.members:
            source = _source("--member", text)
            if not source.name or source.kubeconfig is None or "=" not in text:
                raise Failed(
                    f"--member {text}: expected NAME=KUBECONFIG[@CONTEXT], by the name that Karmada uses"
                )
            if source.name in found:
                raise Failed(f"--member {text}: {source.name!r} is given twice, or is no name for a cluster")
            found[source.name] = source
        return found


@asynccontextmanager
async def opened(sources: Mapping[str, LiveSource]) -> AsyncIterator[dict[str, KubeClient]]:
    """A client for each; nothing is sent yet."""
    async with AsyncExitStack() as stack:
        clients = {}
        for name, source in sources.items():
            path = None if source.kubeconfig is None else str(source.kubeconfig)
            client = KubeClient.from_kubeconfig(path, context=source.context or None, qps=_QPS, burst=_BURST)
            clients[name] = await stack.enter_async_context(client)
        yield clients


def members_of(planes: Sequence[str]) -> tuple[str, ...]:
    """The names of the members among them, sorted."""
    return tuple(sorted(name for name in planes if name not in (HOST, KARMADA)))


def _source(flag: str, text: str) -> LiveSource:
    if not text:
        raise Failed(f"{flag}: expected KUBECONFIG[@CONTEXT]")
    try:
        source = parse_source(text, file_kind)
    except SourceError as error:
        raise Failed(f"{flag} {text}: {error.why}; expected KUBECONFIG[@CONTEXT]") from None
    if isinstance(source, DumpSource):
        _check_yaml(f"{flag} {text}", source.file)
    if not isinstance(source, LiveSource):
        raise Failed(f"{flag} {text}: expected a kubeconfig, for it is written to")
    return source


def _check_yaml(where: str, file: Path) -> None:
    """Of a file that is not known for a kubeconfig: is it a broken one? Raises Failed."""
    try:
        # What is larger is a dump, and would take minutes.
        if file.stat().st_size <= _LARGEST_KUBECONFIG_BYTES:
            yaml_value(file.read_bytes())
    except OSError as error:
        raise Failed(f"{where}: {error.strerror}; expected a kubeconfig") from None
    except NoYaml as error:
        raise Failed(f"{where}: {error}; expected a kubeconfig") from None


def catalogue_text(file: Path | None) -> str:
    """The text of a catalogue, empty without one. Raises Failed."""
    if file is None:
        return ""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"--catalogue {file}: {error}; expected YAML") from None
