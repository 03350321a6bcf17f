"""Changes of objects, for `breaking.edited`: each changes in place what the API server has."""

from collections.abc import Callable

from tests.e2e.objects import Obj

Change = Callable[[Obj], None]


def container(body: Obj) -> Obj:
    """The only one of a Deployment."""
    found: Obj = body["spec"]["template"]["spec"]["containers"][0]
    return found


def flag(name: str, value: str | None) -> Change:
    """A flag of a Deployment's program that is another, or left out."""

    def change(body: Obj) -> None:
        words = "args" if "args" in container(body) else "command"
        kept = [word for word in container(body)[words] if word.partition("=")[0] != f"--{name}"]
        container(body)[words] = kept if value is None else [*kept, f"--{name}={value}"]

    return change


def image_tag(tag: str) -> Change:
    """Another release of a Deployment's program."""

    def change(body: Obj) -> None:
        container(body)["image"] = f"{container(body)['image'].rpartition(':')[0]}:{tag}"

    return change


def field(path: str, value: object) -> Change:
    """A field with dots for what is in between; None takes it away."""

    def change(body: Obj) -> None:
        *above, last = path.split(".")
        for step in above:
            body = body[step]
        if value is None:
            del body[last]
        else:
            body[last] = value

    return change


def every_entry(change: Change) -> Change:
    """The change of each webhook of a configuration."""

    def changed(body: Obj) -> None:
        for entry in body["webhooks"]:
            change(entry)

    return changed
