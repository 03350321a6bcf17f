"""The CronJob that tells owners: the command as it is, as little of its cluster as it needs."""

from importlib.resources import files

import yaml

from admin.main import cli
from admin.notify.record import RECORDS
from admin.notify_command import notify
from tests.manifests import kustomizer, templater
from tests.manifests.installed import documented, files_of
from tests.manifests.objects import MANIFESTS, ROOT, Json, container_of, of_kind

BUILT = kustomizer.build(MANIFESTS / "overlays" / "notify")
VALUES: Json = {"notify": {"enabled": True, "members": ["member1", "member2"]}}


def cron_job() -> Json:
    (found,) = of_kind(BUILT, "CronJob")
    return found


def job() -> Json:
    """The Job's template as if it were a Deployment of that name."""
    made: Json = cron_job()["spec"]["jobTemplate"]
    return made | {"metadata": cron_job()["metadata"]}


def test_the_command_understands_its_arguments_and_finds_its_files() -> None:
    command, *arguments = container_of(job())["args"]
    assert cli.commands[command] is notify
    context = notify.make_context("notify", list(arguments), resilient_parsing=False)
    read = {str(file.path): file for file in files_of(job())}
    for name, _, path in (text.partition("=") for text in context.params["sources"]):
        assert read[path].secret == f"fairway-system/fairway-notify-{name}"
    assert read[context.params["karmada"]].secret == "fairway-system/fairway-karmada-notify"
    assert context.params["records"] == "fairway-system"
    assert not context.params["dry_run"]
    assert documented()["fairway-system/fairway-karmada-notify"] == ("kubeconfig",)


def test_it_runs_alone_and_ends() -> None:
    spec = cron_job()["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    # What a run leaves unfinished, the next attempt finishes within half an hour.
    assert spec["jobTemplate"]["spec"]["activeDeadlineSeconds"] <= 1800


def test_its_pod_fits_the_restricted_standard_and_has_no_token() -> None:
    pod, container = job()["spec"]["template"]["spec"], container_of(job())
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False
    assert container["resources"]["limits"]["memory"]
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    (account,) = of_kind(BUILT, "ServiceAccount")
    assert account["metadata"]["name"] == pod["serviceAccountName"]


def test_nobody_reaches_it_and_it_reaches_api_servers() -> None:
    (policy,) = of_kind(BUILT, "NetworkPolicy")
    labels = job()["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert "ingress" not in policy["spec"]
    assert {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]} == {
        53,
        443,
        5443,
        6443,
    }


def test_its_image_is_one_of_the_dockerfile_s() -> None:
    name = container_of(job())["image"].rpartition("/")[2].partition(":")[0]
    assert f"FROM run AS {name}\n" in (ROOT / "Dockerfile").read_text()


def test_its_roles_name_the_records_that_it_keeps() -> None:
    for side in ("member", "karmada"):
        text = files("manifests").joinpath(f"{side}/notify/rbac.yaml").read_text("utf-8")
        rules = [rule for obj in yaml.safe_load_all(text) for rule in obj.get("rules", ())]
        (named,) = (rule["resourceNames"] for rule in rules if "resourceNames" in rule)
        assert tuple(named) == RECORDS


def test_without_karmada_nothing_of_it_is_mounted() -> None:
    values = {"notify": {**VALUES["notify"], "karmadaKubeconfigSecret": ""}}
    (found,) = of_kind(templater.render(values), "CronJob")
    assert "karmada/kubeconfig" not in str(found)
    assert "fairway-notify-member2" in str(found)
