"""The command line: defaults, what is checked, what is only asked for."""

from pathlib import Path

import pytest

from fairway.scope import WorkloadKind
from fairway.scope_flags import ScopeSettings
from fairway.service.addresses import BindAddress
from fairway.service.common_flags import EndpointSettings, LogSettings, Text
from fairway.service.goflags import FlagError
from webhook.certificate_secret import SecretName
from webhook.flags import GROUPS, parse
from webhook.main import main
from webhook.settings import (
    ApiSettings,
    FilesSettings,
    ManifestRequest,
    RegistrationSettings,
    Settings,
)


def parsed(*argv: str) -> Settings:
    settings = parse(argv, version="1", is_file=lambda path: path.name != "absent")
    assert isinstance(settings, Settings)
    return settings


def test_defaults() -> None:
    assert parsed() == Settings(
        address=BindAddress("", 8443),
        url="https://fairway-webhook.fairway-system.svc:443",
        host="fairway-webhook.fairway-system.svc",
        certificates=SecretName("karmada-system", "fairway-webhook"),
        registration=RegistrationSettings("fairway-webhook", "Fail"),
        scope=ScopeSettings(None, ()),
        api=ApiSettings(None, "", ""),
        endpoints=EndpointSettings(BindAddress("", 8000), BindAddress("", 8080), None),
        logs=LogSettings("text", 0),
    )


def test_everything_given() -> None:
    settings = parsed(
        *("--bind-address=::1", "--secure-port=0", "--url=https://10.0.0.1/", "--kubeconfig=k"),
        *("--karmada-context=c", "--master=https://m", "--hold-kind=Job.batch", "--hold-kind=Pod"),
        *("--tls-cert-file=c", "--tls-private-key-file=k", "--tls-ca-file=a", "--catalogue=own.yaml"),
        *("--failure-policy=Ignore", "--configuration-name=ours", "--logging-format=json", "-v=4"),
        *("--health-probe-bind-address=0", "--metrics-bind-address=0", "--enable-pprof"),
    )
    assert settings.address == BindAddress("::1", 0)
    assert (settings.url, settings.host) == ("https://10.0.0.1", "10.0.0.1")
    assert settings.certificates == FilesSettings(Path("c"), Path("k"), Path("a"))
    assert settings.registration == RegistrationSettings("ours", "Ignore")
    assert settings.scope.kinds == (WorkloadKind("Job", "batch"), WorkloadKind("Pod", ""))
    assert settings.api == ApiSettings(Path("k"), "c", "https://m")
    assert settings.endpoints == EndpointSettings(None, None, BindAddress("", 6060))


def test_registration_can_be_left_to_others() -> None:
    assert parsed("--register=false").registration is None


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (["--url=http://a"], "--url=http://a: expected https://HOST"),
        (["--url=https://a/b"], "expected https://HOST"),
        (["--url=https://a?b=c"], "without a path"),
        (["--url=https://A"], "in lower case"),
        (["--url=https://u:p@a"], "expected https://HOST"),
        (["--url=https://a:99999"], "expected https://HOST"),
        (["--url=https://[::g]"], "expected https://HOST"),
        (["--url="], "expected https://HOST"),
        (["--secure-port=x"], "expected a port between 0 and 65535"),
        (["--bind-address=a b"], "--bind-address=a b: "),
        (["--certificate-secret=a"], "expected NAMESPACE/NAME"),
        (["--certificate-secret=a/b/c"], "expected NAMESPACE/NAME"),
        (["--configuration-name=A"], "expected the name of an object"),
        (["--failure-policy=fail"], "expected Fail or Ignore"),
        (["--hold-kind=batch/v1"], "expected KIND.GROUP"),
        (["--catalogue=absent"], "no such file: expected a YAML list of rules"),
        (["--kubeconfig=absent"], "no such file: expected the kubeconfig"),
        (["--tls-cert-file=absent", "--tls-private-key-file=k"], "no such file: expected PEM"),
        (["--tls-cert-file=c"], "--tls-cert-file and --tls-private-key-file: expected both"),
        (["--tls-ca-file=c"], "--tls-cert-file and --tls-private-key-file: expected both"),
        (["--logging-format=xml"], "expected text or json"),
        (["serve"], "unknown command 'serve'"),
        (["--nonsense"], "unknown flag: --nonsense"),
    ],
)
def test_what_is_wrong_is_said(argv: list[str], problem: str) -> None:
    with pytest.raises(FlagError) as refused:
        parsed(*argv)
    assert problem in str(refused.value)


def test_what_is_only_asked_for() -> None:
    assert parse(["version"], version="1.2", is_file=lambda _: True) == Text("fairway-webhook version: 1.2")
    helped = parse(["--help"], version="1", is_file=lambda _: True)
    assert isinstance(helped, Text)
    assert all(f"--{flag.name}" in helped.text for group in GROUPS for flag in group.flags)
    assert parse(["policies", "--hold-kind=Pod"], version="1") == ManifestRequest(
        ScopeSettings(None, (WorkloadKind("Pod", ""),))
    )
    assert parse(["configuration", "--url=https://a"], version="1") == ManifestRequest(
        ScopeSettings(None, ()), "configuration", ("https://a", "Fail")
    )


def test_the_program_ends_with_1_and_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url=nonsense"]) == 1
    assert capsys.readouterr().err.startswith("Error: --url=nonsense: expected https://HOST")
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith("fairway-webhook version: ")
