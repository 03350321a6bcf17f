"""What /proc/<pid>/cgroup says under each runtime, driver and version, and where each form is documented.

Forms of paths are the sources'; ids are made up where the source shortens them. ``k/`` is
kubernetes/kubernetes.
"""

from dataclasses import dataclass

from node_agent.cgroups import NoPod, PodContainer

A = "1a" * 32
B = "2b" * 32
C = "3c" * 32
UID = "6f0d5d1c-3a52-4c1e-9d80-7a1f3f7c2b11"
U = UID.replace("-", "_")
OUTER = "82a2a707-2fe8-4feb-9fea-43ad1530dbf2"
STATIC = "36b6d6be73b1065af369b3985edafa09"
POD = PodContainer(UID, A)
KUBEPODS = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"

Expected = tuple[PodContainer, ...] | NoPod


@dataclass(frozen=True)
class Recorded:
    what: str
    source: str
    text: str
    expected: Expected = (POD,)


def v1(path: str, *controllers: str) -> str:
    names = controllers or ("name=systemd", "pids", "memory", "devices", "cpu,cpuacct")
    return "".join(f"{number}:{name}:{path}\n" for number, name in enumerate(names, start=1))


def v2(path: str) -> str:
    return f"0::{path}\n"


_CONTAINERD = "containerd/containerd internal/cri/server/helpers.go getCgroupsPath; containerd/cri pull 290"
_CRIO = "cri-o/cri-o internal/config/cgmgr; cri-o pull 812, issue 842"
_DOCKER = "cri-o issue 842 (table of Docker's paths); moby daemon/oci_linux.go"
_CRUN = "containers/crun pull 305"
_NAMESPACES = "inspektor-gadget pull 3085; cgroup_namespaces(7)"
_KIND = "containerd/nri pull 227; kubernetes-sigs/kind issue 3947"

RECORDED = (
    Recorded(
        "containerd 1.6 to 2.x, systemd, v2, burstable",
        _CONTAINERD,
        v2(f"{KUBEPODS}{U}.slice/cri-containerd-{A}.scope"),
    ),
    Recorded(
        "containerd, systemd, v2, guaranteed: no slice for its class",
        "k/pkg/kubelet/cm/pod_container_manager_linux.go GetPodContainerName",
        v2(f"/kubepods.slice/kubepods-pod{U}.slice/cri-containerd-{A}.scope"),
    ),
    Recorded(
        "containerd, systemd, v2, best effort",
        "k/ issue 130982",
        v2(
            f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{U}.slice/cri-containerd-{A}.scope"
        ),
    ),
    Recorded(
        "containerd, systemd, v1",
        _CONTAINERD,
        v1(f"{KUBEPODS}{U}.slice/cri-containerd-{A}.scope"),
    ),
    Recorded(
        "containerd, systemd, hybrid: the unified line names systemd's own view",
        "google/gvisor pull 4503 (0:: beside v1 lines)",
        v1(f"{KUBEPODS}{U}.slice/cri-containerd-{A}.scope", "memory", "pids")
        + v2("/system.slice/containerd.service"),
    ),
    Recorded(
        "containerd, cgroupfs, v1",
        "moby issue 34584",
        v1(f"/kubepods/besteffort/pod{UID}/{A}"),
    ),
    Recorded(
        "containerd, cgroupfs, v1, guaranteed", "google/cadvisor pull 2540", v1(f"/kubepods/pod{UID}/{A}")
    ),
    Recorded(
        "containerd, cgroupfs, v2 (k3s without systemd)",
        "rancher/k3k pull 792",
        v2(f"/kubepods/burstable/pod{UID}/{A}"),
    ),
    Recorded(
        "containerd without SystemdCgroup under a kubelet with it, v1: runc takes the parts for a name",
        "k/ issue 106514; containerd issue 5226",
        v1(f"/system.slice/containerd.service/kubepods-burstable-pod{U}.slice:cri-containerd:{A}"),
    ),
    Recorded(
        "the same, some controllers at the root",
        "open-telemetry/opentelemetry-java issue 4507",
        v1(f"/kubepods-besteffort-pod{U}.slice:cri-containerd:{A}", "perf_event", "cpuset")
        + v1(
            f"/system.slice/containerd.service/kubepods-besteffort-pod{U}.slice:cri-containerd:{A}", "devices"
        ),
    ),
    Recorded(
        "containerd 2.0, user namespace, v2",
        "containerd issue 11589",
        v2(f"/system.slice/kubepods-besteffort-pod{U}.slice:cri-containerd:{A}"),
    ),
    Recorded(
        "containerd with runwasi, v2",
        "containerd/runwasi issue 821",
        v2(f"/kubepods-besteffort-pod{U}.slice:cri-containerd:{A}"),
    ),
    Recorded("CRI-O, systemd, v2", _CRIO, v2(f"{KUBEPODS}{U}.slice/crio-{A}.scope")),
    Recorded(
        "CRI-O, systemd, v1",
        "opencontainers/runc issue 4620",
        v1(f"{KUBEPODS}{U}.slice/crio-{A}.scope", "freezer", "cpuset", "devices"),
    ),
    Recorded(
        "CRI-O with crun, systemd, v2: a level of its own below the scope",
        _CRUN,
        v2(f"{KUBEPODS}{U}.slice/crio-{A}.scope/container"),
    ),
    Recorded("CRI-O, cgroupfs", "cri-o pull 812", v1(f"/kubepods/burstable/pod{UID}/crio-{A}")),
    Recorded(
        "CRI-O 1.0, cgroupfs: no prefix yet",
        "cri-o issue 811",
        v1(f"/kubepods/burstable/pod{UID}/{A}", "cpu"),
    ),
    Recorded(
        "CRI-O 1.0 under a kubelet with cgroupfs: encoded twice",
        "cri-o issue 842",
        v1(
            "/kubepods.slice.slice/kubepods.slice-kubepods_burstable.slice.slice/"
            f"kubepods.slice-kubepods_burstable.slice-kubepods_burstable_pod{U}.slice.slice/crio-{A}.scope"
        ),
    ),
    Recorded(
        "CRI-O's conmon in the pod's slice: of the pod, in no container",
        "cri-o issue 9082; opencontainers/runc issue 4620",
        v2(f"{KUBEPODS}{U}.slice/crio-conmon-{A}.scope"),
        (PodContainer(UID),),
    ),
    Recorded(
        "Docker with dockershim or cri-dockerd, systemd, v1",
        "lxc/lxc issue 3890",
        v1(f"{KUBEPODS}{U}.slice/docker-{A}.scope", "rdma", "freezer", "pids"),
    ),
    Recorded("Docker, systemd, v2", _DOCKER, v2(f"{KUBEPODS}{U}.slice/docker-{A}.scope")),
    Recorded("Docker, cgroupfs, v1", _DOCKER, v1(f"/kubepods/burstable/pod{UID}/{A}")),
    Recorded(
        "Podman, a slice given as the pod's",
        "podman libpod/oci_conmon_linux.go",
        v2(f"{KUBEPODS}{U}.slice/libpod-{A}.scope/container"),
    ),
    Recorded(
        "gVisor: the sandbox' cgroup",
        "google/gvisor runsc/cgroup",
        v1(f"/kubepods/burstable/pod{UID}/{A}", "cpu", "memory"),
    ),
    Recorded(
        "Kata 2: the sandbox and its virtual machine",
        "kata-containers docs/design/host-cgroups.md",
        v1(f"/kubepods/burstable/pod{UID}/kata_{A}"),
    ),
    Recorded(
        "kind, systemd, v2, seen in its node",
        _KIND,
        v2(
            f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod{U}.slice/cri-containerd-{A}.scope"
        ),
    ),
    Recorded(
        "kind, guaranteed, v1, seen from the host",
        "kubernetes-sigs/kind issue 3947; k/ pod_container_manager_linux.go",
        v1(
            f"/docker/{B}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{U}.slice/cri-containerd-{A}.scope",
            "cpu,cpuacct",
        ),
    ),
    Recorded(
        "kind 0.8, cgroupfs, --cgroup-root=/kubelet, from the host",
        "kubernetes-sigs/kind images/base/files/etc/systemd (kubelet --cgroup-root=/kubelet)",
        v1(f"/docker/{B}/kubelet/kubepods/burstable/pod{UID}/{A}"),
    ),
    Recorded(
        "minikube's docker driver with CRI-O, from the host",
        "kubernetes/minikube issue 11280",
        v2(
            f"/docker/{B}/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{U}.slice/crio-{A}.scope"
        ),
    ),
    Recorded(
        "k3d, v2, from a host with systemd",
        "k3s-io/k3s pkg/cgroups/cgroups_linux.go; dajudge/kindcontainer issue 341",
        v2(f"/system.slice/docker-{B}.scope/kubepods/besteffort/pod{UID}/{A}"),
    ),
    Recorded(
        "kind in a pod: the pod around it first",
        "kubernetes/test-infra pull 37440",
        v2(
            f"{KUBEPODS}{OUTER.replace('-', '_')}.slice/cri-containerd-{B}.scope/dind/docker/{C}/"
            f"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{U}.slice/cri-containerd-{A}.scope"
        ),
        (PodContainer(OUTER, B), POD),
    ),
    Recorded(
        "Docker in Docker in a pod, v1",
        "jpetazzo/dind issue 87",
        v1(f"/kubepods/burstable/pod{UID}/{A}/docker/{B}"),
    ),
    Recorded(
        "Docker in Docker with the pod's slice as parent",
        "actions/actions-runner-controller pull 4480",
        v2(f"{KUBEPODS}{U}.slice/docker-{A}.scope"),
    ),
    Recorded(
        "Docker in Docker beside the pod: nothing leads back to it",
        "coder/envbox issue 168",
        v2(f"/docker/{A}"),
        NoPod.NO_POD,
    ),
    Recorded(
        "systemd in a container, v2",
        "systemd docs/CGROUP_DELEGATION.md",
        v2(f"{KUBEPODS}{U}.slice/cri-containerd-{A}.scope/system.slice/trainer.service"),
    ),
    Recorded(
        "systemd in a container, v1: only its own hierarchy goes deeper",
        "systemd docs/CGROUP_DELEGATION.md",
        v1(f"/kubepods/burstable/pod{UID}/{A}", "memory", "pids")
        + v1(f"/kubepods/burstable/pod{UID}/{A}/init.scope", "name=systemd"),
    ),
    Recorded(
        "a static pod, systemd",
        "cri-o issue 9082; k/pkg/kubelet/config/common.go (uid is an MD5)",
        v2(f"{KUBEPODS}{STATIC}.slice/crio-{A}.scope"),
        (PodContainer(STATIC, A, True),),
    ),
    Recorded(
        "a static pod, cgroupfs",
        "containerd issue 4857",
        v1(f"/kubepods/burstable/pod{STATIC}/{A}"),
        (PodContainer(STATIC, A, True),),
    ),
    Recorded(
        "a static pod, driver of runtime and kubelet apart",
        "k/ issue 106514",
        v1(f"/system.slice/containerd.service/kubepods-burstable-pod{STATIC}.slice:cri-containerd:{A}"),
        (PodContainer(STATIC, A, True),),
    ),
    Recorded(
        "seen from another cgroup namespace, in another class",
        _NAMESPACES,
        v2(f"/../../../kubepods-burstable.slice/kubepods-burstable-pod{U}.slice/cri-containerd-{A}.scope"),
    ),
    Recorded("the same, in the same class, cgroupfs", _NAMESPACES, v2(f"/../../pod{UID}/{A}")),
    Recorded(
        "a neighbour in the agent's own pod", _NAMESPACES, v2(f"/../cri-containerd-{A}.scope"), NoPod.HIDDEN
    ),
    Recorded("the pod of the agent itself", _NAMESPACES, v2("/.."), NoPod.HIDDEN),
    Recorded(
        "a service of the host, seen from a cgroup namespace",
        _NAMESPACES,
        v2("/../../../../system.slice/nvidia-persistenced.service"),
        NoPod.HOST,
    ),
    Recorded(
        "a cgroup that was removed, v2",
        "cgroups(7)",
        v2(f"{KUBEPODS}{U}.slice/cri-containerd-{A}.scope (deleted)"),
    ),
    Recorded("a cgroup that was removed, cgroupfs", "cgroups(7)", v2(f"/kubepods/pod{UID}/{A} (deleted)")),
    Recorded(
        "kubelet's cgroup root of the administrator's",
        "k/ KubeletConfiguration cgroupRoot",
        v2(f"/tenant/batch/kubepods/burstable/pod{UID}/{A}"),
    ),
    Recorded(
        "Docker without a pod, systemd",
        "neuvector share/system/cgroup_test.go",
        v1(f"/system.slice/docker-{A}.scope"),
        NoPod.NO_POD,
    ),
    Recorded(
        "Podman's own pod",
        "podman libpod/runtime_pod_linux.go",
        v2(f"/machine.slice/machine-libpod_pod_{B}.slice/libpod-{A}.scope/container"),
        NoPod.NO_POD,
    ),
    Recorded(
        "Podman without a user's pod", "podman issue 10989", v1(f"/libpod_parent/libpod-{A}"), NoPod.NO_POD
    ),
    Recorded(
        "a login",
        "opencontainers/runc issue 1189",
        v2("/user.slice/user-1000.slice/session-67.scope"),
        NoPod.HOST,
    ),
    Recorded("a thread of the kernel", "cgroups(7)", v1("/"), NoPod.HOST),
    Recorded(
        "kubelet itself", "kontena/pharos-cluster issue 440", v1("/system.slice/kubelet.service"), NoPod.HOST
    ),
)
