"""A file of templates: what is rendered under which condition, and where it comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from manifests.templating.tree import Node, written


@dataclass(frozen=True, slots=True)
class TemplateFile:
    """``documents`` are rendered when ``condition`` holds, and once for each of ``clause`` if there is one.

    ``source`` names the file below ``manifests`` that they are made of, for whoever reads the template.
    """

    name: str
    source: str
    condition: str
    documents: Sequence[Node]
    clause: str = ""

    @property
    def text(self) -> str:
        """The file's content."""
        head = f"{{{{- /* Made of manifests/{self.source} by 'make manifests': edit that. */ -}}}}\n"
        body = "".join(f"---\n{written(document)}{_end_of(document)}" for document in self.documents)
        if self.clause:
            body = f"{{{{- range {self.clause} }}}}\n{body}{{{{- end }}}}\n"
        return f"{head}{{{{- if {self.condition} }}}}\n{body}{{{{- end }}}}\n"


def _end_of(node: Node) -> str:
    """A line that ends a text of several lines, which Helm would cut the last line break off."""
    while isinstance(node, Mapping | list) and node:
        node = list(node.values())[-1] if isinstance(node, Mapping) else node[-1]
    return "# end\n" if isinstance(node, str) and "\n" in node else ""
