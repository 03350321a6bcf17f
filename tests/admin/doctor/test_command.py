"""``fairway doctor`` as it is typed, on dumps and a live server: lines, patches, exit codes, bad usage."""

import asyncio
import json
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from admin.doctor.catalogue import CHECKS
from admin.doctor.diagnosis import CONCERN, Diagnosis, Health, Said
from admin.doctor.evidence import Plane, Role
from admin.doctor.finding import Patch, Verdict
from admin.doctor.member_kubeconfigs import BadMember, as_files, check_self_contained, member_kubeconfigs
from admin.doctor.mending import patches
from admin.doctor.platform import PLATFORM
from admin.doctor.running import Secret
from admin.main import run
from admin.sources import DumpSource, LiveSource
from admin.terminal.console import rendered
from admin.terminal.doctor import diagnosis_lines, diagnosis_table
from fairway.kube.objects import ObjectMeta
from sandbox.fakeapi import FakeApi
from tests.admin.doctor.installation import KARMADA, Installation, secret, write

DOCS = Path(__file__).parents[3] / "docs" / "doctor.md"
OFFLINE = ("kubernetes-version", "estimator-reach", "webhook-reach")
"""What dumps cannot tell."""


@dataclass(frozen=True)
class Done:
    """What a run printed, and its exit code."""

    code: int
    out: str
    err: str


Doctor = Callable[..., Done]


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Doctor:
    def call(*args: object) -> Done:
        code = run(["doctor", *map(str, args)])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return call


def dumps(one: Installation, folder: Path) -> list[str]:
    """The installation as files, and the flags that name them."""
    assert one.host is not None
    assert one.karmada is not None
    words = ["--host", str(write(folder / "host.json", one.host))]
    words += ["--karmada", str(write(folder / "karmada.json", one.karmada))]
    for name, objects in one.members.items():
        words += ["--member", f"{name}={write(folder / f'{name}.json', objects)}"]
    return words


def platform(*without: str) -> list[str]:
    return [word for check in PLATFORM if check.name not in without for word in ("--check", check.name)]


def test_whole_dumps_in_which_all_is_well(doctor: Doctor, tmp_path: Path) -> None:
    done = doctor(*dumps(Installation(), tmp_path), "--offline", *platform(*OFFLINE))
    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert [line.split()[0] for line in lines[:-1]] == ["ok"] * (len(PLATFORM) - len(OFFLINE))
    assert lines[-1] == f"{len(PLATFORM) - len(OFFLINE)} checks are well"


@pytest.mark.parametrize(
    ("spec", "health", "told"),
    [
        ("{weight: 2}", Health.WELL, "ok       queue-fields"),
        (
            "{weight: 0.5}",
            Health.ERRORS,
            "spec.weight: expected a whole number or text, found 0.5: it is refused",
        ),
        ("[]", Health.ERRORS, "spec: expected a map, found []: it is refused; mend: correct it in"),
    ],
)
def test_a_file_of_queues_is_looked_at_before_it_is_applied(
    spec: str, health: Health, told: str, doctor: Doctor, tmp_path: Path
) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(
        f"apiVersion: fairway.dev/v1alpha1\nkind: ClusterQueue\nmetadata: {{name: a}}\nspec: {spec}\n"
    )
    done = doctor("--karmada", file, "--check", "queue-fields")
    assert (done.code, done.err) == (health, "")
    assert told in done.out
    assert "reading" not in done.out


def test_what_dumps_cannot_tell_is_unknown_and_never_well(doctor: Doctor, tmp_path: Path) -> None:
    words = dumps(Installation(), tmp_path)
    done = doctor(*words, "--offline", *[word for name in OFFLINE for word in ("--check", name)])
    assert done.code == Health.UNKNOWN
    assert {line.split()[0] for line in done.out.splitlines()[:-1]} == {"unknown"}


WHOLE: list[tuple[str, Callable[[Installation], Installation], Health, str]] = [
    (
        "note",
        lambda o: o.flags("karmada-scheduler", "--kube-api-qps=40"),
        Health.WELL,
        "note     client-throttle",
    ),
    (
        "warning",
        lambda o: o.edit("host", "Deployment/fairway-webhook", "status.readyReplicas", 1),
        Health.WARNINGS,
        "warning  programs-ready",
    ),
    (
        "error",
        lambda o: o.edit(
            "karmada",
            "MutatingWebhookConfiguration/fairway-webhook",
            "webhooks.0.clientConfig.caBundle",
            None,
        ),
        Health.ERRORS,
        "error    webhook-authority",
    ),
    (
        "broken",
        lambda o: o.plus("host", {**secret("bad", KARMADA, {}), "data": {"k": 7}}),
        Health.UNKNOWN,
        "unknown  reading",
    ),
]


@pytest.mark.parametrize(
    ("change", "health", "line"), [case[1:] for case in WHOLE], ids=[case[0] for case in WHOLE]
)
def test_the_worst_decides_the_exit_code(
    change: Callable[[Installation], Installation],
    health: Health,
    line: str,
    doctor: Doctor,
    tmp_path: Path,
) -> None:
    done = doctor(*dumps(change(Installation()), tmp_path), "--offline", *platform(*OFFLINE))
    assert done.code == health
    assert line in done.out.splitlines()[0]


def test_json_and_yaml_hold_the_same(doctor: Doctor, tmp_path: Path) -> None:
    words = [*dumps(Installation(), tmp_path), "--offline", "--check", "definitions"]
    made = doctor(*words, "-o", "json")
    found = json.loads(made.out)
    assert made.code == 0
    assert found["format"] == "fairway-doctor/1"
    assert [plane["name"] for plane in found["planes"]] == ["host", "karmada", "a", "b"]
    assert [(each["check"], each["verdict"]) for each in found["said"]] == [("definitions", "ok")]
    again = yaml.safe_load(doctor(*words, "-o", "yaml").out)
    assert {**again, "made_at": ""} == {**found, "made_at": ""}
    out = tmp_path / "out.json"
    assert doctor(*words, "-o", "json", "--out", out) == Done(0, "", "")
    assert json.loads(out.read_text())["said"] == found["said"]


def test_a_host_alone_leaves_what_karmada_knows_unknown(doctor: Doctor, tmp_path: Path) -> None:
    host = dumps(Installation(), tmp_path)[:2]
    done = doctor(*host, "--offline", "--check", "definitions")
    assert done.code == Health.UNKNOWN
    assert "the karmada API server was not given; mend: add --karmada KUBECONFIG" in done.out


def test_what_could_not_be_read_says_what_mends_it(doctor: Doctor, tmp_path: Path) -> None:
    made = Installation().edit("karmada", "Cluster/a", "spec.syncMode", ["Push"])
    words = dumps(made, tmp_path)
    words += ["--member", f"wst={tmp_path / 'b.json'}"]
    said = json.loads(doctor(*words, "--offline", "-o", "json").out)["said"]
    reading = {each["message"]: each["remedy"] for each in said if each["check"] == "reading"}
    (field,) = (told for told in reading if "syncMode" in told)
    assert reading[field] == "correct this field of the object; the checks are made without the object"
    assert "kubectl get clusters" in reading["--member wst: Karmada has no Cluster wst"]
    assert not any("--member b" in told for told in reading)


def test_members_are_strangers_only_where_clusters_are_known(doctor: Doctor, tmp_path: Path) -> None:
    words = dumps(Installation(), tmp_path)
    alone = [words[at + n] for at in range(0, len(words), 2) if words[at] != "--karmada" for n in (0, 1)]
    alone += ["--member", f"wst={tmp_path / 'b.json'}"]
    lines = doctor(*alone, "--offline").out.splitlines()
    assert any("the karmada API server was not given" in line for line in lines)
    assert not any("Karmada has no Cluster" in line for line in lines)


def test_all_checks_are_listed(doctor: Doctor) -> None:
    done = doctor("--list")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == [check.name for check in CHECKS]


def test_fixes_are_printed_as_commands_and_nothing_is_changed(doctor: Doctor, tmp_path: Path) -> None:
    one = Installation().flags("karmada-scheduler", "--feature-gates=CustomizedClusterResourceModeling=true")
    one = one.without("karmada", "CustomResourceDefinition/localqueues.fairway.dev")
    words = dumps(one, tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    done = doctor(*words, "--offline", "--fix", *platform(*OFFLINE))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert done.code == Health.ERRORS
    assert "patch deployment/karmada-scheduler -n karmada-system --type=strategic" in done.out
    assert "apply --server-side -f - <<'END_OF_MANIFEST'" in done.out
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\necho "called: $1 $2 $3 $4"\ncat > /dev/null\n')
    kubectl.chmod(0o755)
    ran = subprocess.run(
        ["sh", "-eu"],
        input=done.out,
        text=True,
        capture_output=True,
        check=False,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "KUBECONFIG_HOST": "h", "KUBECONFIG_KARMADA": "k"},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        "called: --kubeconfig h patch deployment/karmada-scheduler",
        "called: --kubeconfig k apply --server-side",
    ]


HOSTILE = "x'; touch owned; echo '\n$(touch owned)\x1b[2J"


@pytest.mark.parametrize("strategic", [True, False])
def test_hostile_names_stay_words_and_comments_stay_comments(strategic: bool, tmp_path: Path) -> None:
    patch = Patch("karmada", HOSTILE, f"deployment/{HOSTILE}", strategic)
    manifest = Patch("east", f"a: b\nEND_OF_MANIFEST\n{HOSTILE}\n")
    said = [Said("check", Verdict.ERROR, HOSTILE, HOSTILE, HOSTILE, each) for each in (patch, manifest)]
    diagnosis = Diagnosis("f", "", "", (), tuple(said))
    text = patches(diagnosis, {"karmada": LiveSource("k", Path(HOSTILE), HOSTILE)})
    kubectl = tmp_path / "kubectl"
    kubectl.write_text("#!/bin/sh\ncat > /dev/null\n")
    kubectl.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "KUBECONFIG_EAST": "x"}
    ran = subprocess.run(
        ["sh", "-eu"], input=text, text=True, capture_output=True, check=False, cwd=tmp_path, env=environment
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kubectl"]


def test_a_patch_names_the_kubeconfig_it_is_for() -> None:
    said = Said("c", Verdict.ERROR, "s", "m", "r", Patch("karmada", "{}", "cluster/a"))
    diagnosis = Diagnosis("f", "", "", (), (said, replace(said, check="d")))
    text = patches(diagnosis, {"karmada": LiveSource("k", Path("a b"), "ctx")})
    (command,) = [line for line in text.splitlines() if line.startswith("kubectl")]
    assert shlex.split(command)[1:5] == ["--kubeconfig", "a b", "--context", "ctx"]
    unknown = patches(diagnosis, {"karmada": DumpSource("k", Path("dump"))})
    assert 'kubectl --kubeconfig "${KUBECONFIG_KARMADA:?' in unknown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to look at"),
        (["--karmada", "{file}", "--member", "a=x"], "no file x"),
        (
            ["--karmada", "none"],
            "--karmada: source 'none': no file none; expected KUBECONFIG[@CONTEXT]|DUMP\n",
        ),
        (["--karmada", "grpc://x:1"], "found the address of an estimator"),
        (["--karmada", "{file}", "--member", "{file}"], "expected NAME="),
        (["--karmada", "{file}", "--member", "a={file}", "--member", "a={file}"], "a is given twice"),
        (["--karmada", "{file}", "--check", "resource-model"], "did you mean resource-models?"),
        (["--karmada", "{file}", "--members-from-host"], "expected --host as well"),
        (["--karmada", "{file}", "--cert-file", "x"], "belong together"),
        (["--karmada", "{file}", "--fix", "-o", "json"], "--fix with --output json"),
        (["--karmada", "{broken}", "--offline"], "the JSON breaks off"),
        (["--karmada", "{config}", "--offline"], "GET /version"),
    ],
)
def test_bad_usage_and_nothing_read(
    words: Sequence[str], message: str, doctor: Doctor, tmp_path: Path
) -> None:
    file, broken, config = tmp_path / "file.json", tmp_path / "broken.json", tmp_path / "config"
    karmada = Installation().karmada
    assert karmada is not None
    write(file, karmada)
    broken.write_text("{")
    config.write_text(kubeconfig("http://127.0.0.1:1"))
    named = {"file": file, "broken": broken, "config": config}
    done = doctor(*(word.format(**named) for word in words))
    assert done.code == Health.FAILED
    assert message in done.err


def kubeconfig(url: str, user: str = "{}") -> str:
    return (
        f"current-context: c\nclusters: [{{name: c, cluster: {{server: {url!r}}}}}]\n"
        f"contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {user}}}]\n"
    )


def test_a_live_server_is_read_and_members_are_found_in_its_secrets(doctor: Doctor, tmp_path: Path) -> None:
    async def scenario() -> Done:
        async with FakeApi() as host, FakeApi() as member:
            member.load("/api/v1/nodes", [{"metadata": {"name": "n1"}}])
            for name, text in (
                ("east", kubeconfig(member.url)),
                ("evil", kubeconfig(member.url, "{exec: {command: touch, args: [owned]}}")),
            ):
                made = secret(f"{name}-kubeconfig", KARMADA, {f"{name}-kubeconfig": text.encode()})
                host.create(f"/api/v1/namespaces/{KARMADA}/secrets", made)
            config = tmp_path / "config"
            config.write_text(kubeconfig(host.url))
            words = ["--host", config, "--members-from-host", "--offline", "--check", "kubernetes-version"]
            return await asyncio.to_thread(doctor, *words, "-o", "json")

    done = asyncio.run(scenario())
    found = json.loads(done.out)
    assert [plane["name"] for plane in found["planes"]] == ["host", "east"]
    assert not found["planes"][1]["unread"]
    (problem,) = [each["message"] for each in found["said"] if each["check"] == "reading"]
    assert "Secret karmada-system/evil-kubeconfig: users[name=u].exec" in problem
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (kubeconfig("https://x", "{token: t}"), ""),
        (kubeconfig("https://x", "{client-certificate-data: a, client-key-data: b}"), ""),
        (kubeconfig("https://x", "{exec: {command: x}}"), r"users\[name=u\]\.exec"),
        (kubeconfig("https://x", "{tokenFile: /etc/passwd}"), r"users\[name=u\]\.tokenFile"),
        (kubeconfig("https://x", "{client-certificate: /etc/passwd}"), "client-certificate"),
        (kubeconfig("https://x").replace("server:", "proxy-url: 'http://p', server:"), "proxy-url"),
        (kubeconfig("https://x").replace("server:", "certificate-authority: /x, server:"), "authority"),
        ("[", "expected a kubeconfig"),
        ("clusters: 7", "expected a kubeconfig"),
        ("[" * 3000, "expected a kubeconfig"),
        ("users: [{user: {token: hush-hush}}", "expected a kubeconfig, found what is no YAML$"),
    ],
)
def test_only_kubeconfigs_that_carry_everything_are_taken_from_secrets(text: str, message: str) -> None:
    if not message:
        check_self_contained(text.encode())
        return
    with pytest.raises(BadMember, match=message):
        check_self_contained(text.encode())


def test_kubeconfigs_of_members_are_files_that_nobody_else_reads_for_a_while() -> None:
    found = Secret(ObjectMeta("east-kubeconfig", KARMADA), data={"east-kubeconfig": b"x"})
    elsewhere = Secret(ObjectMeta("west-kubeconfig", "default"), data={"west-kubeconfig": b"x"})
    plane = Plane(Role.HOST, "host", objects={"secrets": (found, elsewhere)})
    texts = member_kubeconfigs(plane, KARMADA)
    assert texts == {"east": b"x"}
    with as_files(texts) as files:
        ((name, path),) = files
        assert (name, path.read_bytes(), path.stat().st_mode & 0o077) == ("east", b"x", 0)
    assert not path.exists()


SAID = tuple(
    Said(f"check-{verdict}", verdict, "Cluster a", f"it is {verdict}\x1b[2J", "mend it")
    for verdict in CONCERN
)


def test_people_see_a_table_and_no_control_characters() -> None:
    diagnosis = Diagnosis("f", "", "", (), SAID)
    assert diagnosis.health is Health.ERRORS
    text = rendered(diagnosis_table(diagnosis), to_terminal=False)
    assert "\x1b" not in text
    assert "mend: mend it" in text
    assert text.splitlines()[-1] == "1 error, 1 warning, 1 unknown, 1 note, 1 check is well"


def test_files_get_one_line_for_each_finding() -> None:
    lines = diagnosis_lines(Diagnosis("f", "", "", (), SAID)).splitlines()
    assert lines[0] == r"ok       check-ok                 Cluster a: it is ok\x1b[2J; mend: mend it"
    assert len(lines) == len(SAID) + 1


def test_verdicts_and_exit_codes_have_the_same_order() -> None:
    assert set(CONCERN) == set(Verdict)
    healths = [Diagnosis("f", "", "", (), (each,)).health for each in SAID]
    assert healths == sorted(healths)
    assert Diagnosis("f", "", "", (), ()).health is Health.WELL


def test_every_check_has_a_section_in_the_docs() -> None:
    text = DOCS.read_text("utf-8")
    missing = [check.name for check in CHECKS if f"### {check.name}\n" not in text]
    assert missing == []
