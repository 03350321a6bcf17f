"""The documents of a dump, in JSON or YAML, as its text and, where that is either, its name tell."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fairway.kube.dump_document import Document, MalformedDump
from fairway.kube.dump_json import json_documents
from fairway.kube.dump_yaml import yaml_documents

_SNIFFED_BYTES: Final = 4096
_YAML_NAMES: Final = (".yaml", ".yml", ".yaml.gz", ".yml.gz")


def documents_in(path: Path, data: bytes) -> Iterable[Document]:
    """The documents in the UTF-8 text of a file, empty ones left out. Raises MalformedDump, also while they
    are taken.
    """
    if not data[:_SNIFFED_BYTES].lstrip().startswith((b"{", b"[")):
        return yaml_documents(data)
    if not path.name.lower().endswith(_YAML_NAMES):
        return json_documents(data)
    # YAML in flow style begins as JSON does. What is JSON is read as such, as it is much faster.
    try:
        return list(json_documents(data))
    except MalformedDump:
        return yaml_documents(data)
