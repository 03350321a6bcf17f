"""All objects of a collection, as typed as they are needed."""

from typing import Final, TypeVar

import msgspec

from fairway.kube.client import KubeClient
from fairway.kube.decoding import ListPage
from fairway.kube.errors import BadObject

T = TypeVar("T")

_PAGE: Final = "500"


async def listed(client: KubeClient, path: str, type: type[T], *, label_selector: str = "") -> list[T]:
    """All objects below ``path``, page by page. Raises KubeError; NotFound where the kind is not served."""
    first = {"limit": _PAGE}
    if label_selector:
        first["labelSelector"] = label_selector
    decoder = msgspec.json.Decoder(type)
    params, found = first, list[T]()
    while True:
        page = await client.get_json(path, ListPage, params)
        try:
            found += [decoder.decode(item) for item in page.items or ()]
        except msgspec.DecodeError as error:
            raise BadObject(f"{client.server}: {path}: {error}; expected the API's type") from error
        if not page.metadata.continue_:
            return found
        params = {**first, "continue": page.metadata.continue_}
