"""The small parts that checks stand on: versions, command lines, certificates, gates, patches of flags."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from admin.doctor.arguments import read_arguments
from admin.doctor.certificate import BadCertificate, covers, days_left, read_certificates, read_der
from admin.doctor.estimator_address import Address, Discovery, addresses
from admin.doctor.finding import Verdict
from admin.doctor.gates import COMPONENTS, MODELING, OVERCOMMIT, PRIORITY, has_gate, is_on
from admin.doctor.platform.karmada_releases import FAULTS
from admin.doctor.program import SCHEDULER, File, programs
from admin.doctor.version import Faulty, Version, parse_version, version
from tests.admin.doctor.installation import KARMADA, NOW_MS, Installation
from tests.certs import DAY, NOW, Authority


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("v1.17.2", Version(1, 17, 2)),
        ("1.30", Version(1, 30, 0)),
        ("v1.30.4-gke.100", Version(1, 30, 4)),
        ("v1.29.1+k3s1", Version(1, 29, 1)),
        ("v1.19.0-rc.0", Version(1, 19, 0, ("rc", 0))),
        ("v1.19.0-master-f8fdd02", Version(1, 19, 0)),
        ("latest", None),
        ("", None),
        ("sha256-1.2.3", None),
        ("v1.99999999.0", None),
        ("v1.17.²", None),
    ],
)
def test_versions(text: str, found: Version | None) -> None:
    assert parse_version(text) == found


def test_versions_have_an_order() -> None:
    ordered = ["1.18.2", "1.19.0-alpha.1", "1.19.0-beta.0", "1.19.0-rc.0", "1.19.0-rc.1", "1.19.0", "1.19.1"]
    assert sorted(map(version, reversed(ordered))) == [version(each) for each in ordered]
    assert [str(version(each)) for each in ordered] == ordered
    with pytest.raises(ValueError, match="expected a version"):
        version("x")


COMPONENT_SETS = Faulty(version("1.16.0"), (version("1.16.6"), version("1.17.3"), version("1.18.0")))


@pytest.mark.parametrize(
    ("found", "holds", "remedy"),
    [
        ("1.15.9", False, ""),
        ("1.16.0", True, "1.16.6"),
        ("1.16.5", True, "1.16.6"),
        ("1.16.6", False, ""),
        ("1.17.0", True, "1.17.3"),
        ("1.17.3", False, ""),
        ("1.18.0-rc.0", True, "1.18.0"),
        ("1.18.0", False, ""),
        ("2.0.0", False, ""),
    ],
)
def test_a_fault_is_mended_on_each_line_by_itself(found: str, holds: bool, remedy: str) -> None:
    assert COMPONENT_SETS.holds(version(found)) is holds
    if holds:
        assert str(COMPONENT_SETS.remedy(version(found))) == remedy


def test_what_mended_a_fault_is_in_order_and_without_it() -> None:
    for fault in FAULTS:
        assert list(fault.faulty.mended) == sorted(fault.faulty.mended)
        assert "#" in fault.source
        assert fault.verdict is not Verdict.OK
        for fix in fault.faulty.mended:
            assert not fault.faulty.holds(fix)


@pytest.mark.parametrize(
    ("words", "text", "switch", "number"),
    [
        (["--x=1"], "1", True, 1.0),
        (["--x", "0"], "0", False, 0.0),
        (["-x=2", "--x=3"], "3", False, 3.0),
        (["--x"], "true", True, 7.0),
        (["--x", "--y=1"], "true", True, 7.0),
        (["positional", "--y"], "none", False, 7.0),
        (["--x=a=b"], "a=b", False, 7.0),
    ],
)
def test_command_lines(words: list[str], text: str, switch: bool, number: float) -> None:
    read = read_arguments(words)
    assert (read.text("x", "none"), read.switch("x"), read.number("x", 7.0)) == (text, switch, number)


@given(st.lists(st.text(max_size=12), max_size=8))
def test_no_command_line_is_too_odd(words: list[str]) -> None:
    read = read_arguments(words)
    assert read.gates() is not None
    assert read.seconds("x", 3.0) is not None
    assert all(values for values in read.values.values())


@pytest.mark.parametrize(("text", "seconds"), [("200ms", 0.2), ("1m30s", 90.0), ("soon", 3.0)])
def test_durations(text: str, seconds: float) -> None:
    assert read_arguments([f"--x={text}"]).seconds("x", 3.0) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("gate", "stated", "release", "on"),
    [
        (MODELING, {}, "1.18.0", True),
        (MODELING, {MODELING: False}, "1.18.0", False),
        (MODELING, {"AllBeta": False}, "1.18.0", False),
        (COMPONENTS, {}, "1.18.0", False),
        (COMPONENTS, {"AllAlpha": True}, "1.18.0", True),
        (COMPONENTS, {"AllAlpha": True, COMPONENTS: False}, "1.18.0", False),
        (COMPONENTS, {"AllAlpha": True}, "1.14.0", False),
        (PRIORITY, {}, "1.18.2", False),
        (PRIORITY, {}, "1.19.0-rc.0", False),
        (PRIORITY, {}, "1.19.0", True),
        (PRIORITY, {}, "", True),
        (OVERCOMMIT, {"AllAlpha": True}, "", True),
    ],
)
def test_gates(gate: str, stated: dict[str, bool], release: str, on: bool) -> None:
    assert is_on(gate, stated, version(release) if release else None) is on


def test_a_gate_is_not_known_before_it_was_made() -> None:
    assert not has_gate(OVERCOMMIT, version("1.17.9"))
    assert has_gate(OVERCOMMIT, version("1.18.0"))


@pytest.mark.parametrize(
    ("names", "host", "is_covered"),
    [
        (["*.karmada-system.svc"], "x.karmada-system.svc", True),
        (["*.karmada-system.svc"], "x.y.karmada-system.svc", False),
        (["*.karmada-system.svc"], "karmada-system.svc", False),
        (["LOCALHOST"], "localhost.", True),
        (["127.0.0.1"], "127.0.0.1", True),
        (["::1"], "[::1]", True),
        (["*.0.0.1"], "127.0.0.1", False),
        ([], "x", False),
    ],
)
def test_names_of_certificates(names: list[str], host: str, is_covered: bool) -> None:
    assert covers(names, host) is is_covered


def test_certificates() -> None:
    mine, other = Authority("mine"), Authority("other")
    pair = mine.issue("server", expires=NOW + 10 * DAY, names=("a", "b"))
    (found,) = read_certificates(pair.certificate)
    assert found.names == ("a", "b", "127.0.0.1")
    assert days_left(found.not_after_ms, NOW_MS) == 10
    assert days_left(found.not_after_ms, found.not_after_ms + 1) == -1
    assert found.is_signed_by(read_certificates(other.pem + mine.pem))
    assert not found.is_signed_by(read_certificates(other.pem))
    assert not found.is_authority
    assert read_certificates(mine.pem)[0].is_authority
    assert read_der(pair.der).names == found.names


@pytest.mark.parametrize(
    "text", [b"", b"x", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_what_is_no_certificate(text: bytes) -> None:
    with pytest.raises(BadCertificate, match="expected"):
        read_certificates(text)
    with pytest.raises(BadCertificate, match="expected"):
        read_der(text)


def test_the_scheduler_dials_two_names_where_karmada_has_no_service() -> None:
    found = addresses("east", Discovery("ns", "prefix", 7), ())
    assert found == (Address("prefix-east.ns.svc.cluster.local", 7), Address("prefix-east.ns.svc", 7))
    assert str(found[1]) == "prefix-east.ns.svc:7"


def test_a_flag_is_changed_and_the_others_are_kept(tmp_path: Path) -> None:
    host = Installation().flags(SCHEDULER, "--kube-api-qps", "20").evidence(tmp_path).on_host()
    (scheduler,) = programs(host, (SCHEDULER,))
    patch = scheduler.with_flag("kube-api-qps", "500")
    assert patch is not None
    assert (patch.plane, patch.target, patch.strategic) == (
        "host",
        "deployment/karmada-scheduler -n karmada-system",
        True,
    )
    (container,) = yaml.safe_load(patch.body)["spec"]["template"]["spec"]["containers"]
    old = list(scheduler.container.command or ())
    kept = [word for word in old if "kube-api-qps" not in word and word != "20"]
    assert container == {"name": SCHEDULER, "command": [*kept, "--kube-api-qps=500"]}


def test_files_of_flags_lead_to_secrets(tmp_path: Path) -> None:
    host = Installation().evidence(tmp_path).on_host()
    (estimator, _) = programs(host, ("fairway-estimator",))
    assert estimator.file("grpc-auth-cert-file") == File("karmada-scheduler-estimator-cert", "tls.crt")
    assert estimator.file("kubeconfig") is None
    assert estimator.clusters == ("a",)
    mounted = Installation().edit(
        "host",
        "Deployment/karmada-scheduler-estimator-a",
        "spec.template.spec.volumes.0.secret.items",
        [{"key": "other.crt", "path": "tls.crt"}],
    )
    (estimator, _) = programs(mounted.evidence(tmp_path).on_host(), ("fairway-estimator",))
    assert estimator.file("grpc-auth-cert-file") == File("karmada-scheduler-estimator-cert", "other.crt")
    assert estimator.namespace == KARMADA
