"""From cgroup paths to pods and containers, for every runtime and driver that can be met."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.cgroups import NoPod, PodContainer, pod_containers
from tests.node_agent.cgroup_paths import POD, RECORDED, UID, A, B, Recorded, v1, v2


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda one: one.what)
def test_recorded_paths(recorded: Recorded) -> None:
    assert pod_containers(recorded.text) == recorded.expected, recorded.source


def test_as_many_forms_as_are_to_be_met() -> None:
    assert len({one.text for one in RECORDED}) >= 40


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("empty", ""),
        ("no cgroup file", "Name:\tpython\nState:\tR\n"),
        ("cut within a line", "12:memory"),
        ("a path that is none", "0::kubepods\n"),
        ("a hierarchy without a number", "x:memory:/kubepods\n"),
        ("not text", "\udcff\udcfe:\x00"),
    ],
)
def test_what_linux_does_not_write(what: str, text: str) -> None:
    assert pod_containers(text) is NoPod.UNREADABLE


OTHER = "00000000-1111-2222-3333-444444444444"


@pytest.mark.parametrize(
    ("what", "text", "expected"),
    [
        (
            "a container that makes a cgroup by another pod's name stays its own pod first",
            v2(f"/kubepods/burstable/pod{UID}/{A}/kubepods/pod{OTHER}/{B}"),
            (POD, PodContainer(OTHER, B)),
        ),
        (
            "the same by its id only",
            v2(f"/kubepods/burstable/pod{UID}/{A}/{B}"),
            (POD,),
        ),
        (
            "devices decides where controllers disagree",
            v1(f"/kubepods/pod{OTHER}/{B}", "memory") + v1(f"/kubepods/pod{UID}/{A}", "devices"),
            (POD,),
        ),
        (
            "a slice within a pod's slice is the same pod",
            v2(f"/kubepods/pod{UID}/kubepods-pod{UID.replace('-', '_')}.slice/{A}"),
            (POD,),
        ),
        ("a uid of mixed marks is none", v2(f"/kubepods/pod{UID.replace('-', '_', 1)}"), NoPod.HOST),
        ("a uid in capitals is none", v2(f"/kubepods/pod{UID.upper()}"), NoPod.HOST),
        ("a longer number is no static pod", v2(f"/kubepods/pod{'a' * 33}"), NoPod.HOST),
    ],
)
def test_who_decides(what: str, text: str, expected: object) -> None:
    assert pod_containers(text) == expected, what


HEX = st.text("0123456789abcdef", min_size=64, max_size=64)
STATIC_UID = st.text("0123456789abcdef", min_size=32, max_size=32)
SYSTEMD = st.sampled_from(["cri-containerd-{}.scope", "crio-{}.scope", "docker-{}.scope", "libpod-{}.scope"])
CGROUPFS = st.sampled_from(["{}", "crio-{}"])
ABOVE = st.sampled_from(["", "/system.slice/docker-{}.scope", "/docker/{}", "/../../..", "/tenant/team"])
ROOT = st.sampled_from(["", "kubelet"])
BELOW = st.sampled_from(["", "/container", "/init.scope", "/system.slice/x.service", "/docker/" + "f" * 64])
CLASS = st.sampled_from(["", "burstable", "besteffort"])


@given(
    uid=st.one_of(st.uuids(), STATIC_UID),
    container=HEX,
    node=HEX,
    systemd=st.booleans(),
    scope=SYSTEMD,
    plain=CGROUPFS,
    above=ABOVE,
    root=ROOT,
    of_class=CLASS,
    below=BELOW,
    is_deleted=st.booleans(),
    version=st.sampled_from([v1, v2]),
)
def test_every_path_comes_back_to_its_uid(
    uid: object,
    container: str,
    node: str,
    systemd: bool,
    scope: str,
    plain: str,
    above: str,
    root: str,
    of_class: str,
    below: str,
    is_deleted: bool,
    version: object,
) -> None:
    """Written as kubelet does: by the systemd driver, each slice is named by all that it is in."""
    levels = [level for level in (root, "kubepods", of_class) if level]
    if systemd:
        names = ["-".join(levels[: end + 1]) for end in range(len(levels))]
        names.append("-".join([*levels, f"pod{str(uid).replace('-', '_')}"]))
        path = "".join(f"/{name}.slice" for name in names) + "/" + scope.format(container)
    else:
        path = "/" + "/".join([*levels, f"pod{uid}", plain.format(container)])
    path = above.format(node) + path + below + (" (deleted)" if is_deleted else "")
    assert callable(version)
    expected = PodContainer(str(uid), container, isinstance(uid, str))
    assert pod_containers(version(path)) == (expected,)


@given(st.text(max_size=400))
def test_no_text_raises(text: str) -> None:
    pod_containers(text)
    pod_containers(f"0::/{text}")
