"""The webhook's command line.

Flags that karmada-webhook has as well are named as its own (1.19: cmd/webhook/app/options), so that arguments
can be copied.
"""

import re
from collections.abc import Callable, Sequence
from ipaddress import IPv6Address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from fairway.scope_flags import GROUP as SCOPE
from fairway.scope_flags import OBSERVE, scope_settings
from fairway.service.addresses import MAX_PORT, BindAddress, parse_bind_address
from fairway.service.common_flags import (
    HELP,
    KARMADA,
    KARMADA_CONTEXT,
    KARMADA_MASTER,
    OTHERS,
    Text,
    endpoint_settings,
    existing_file,
    health_flag,
    karmada_kubeconfig,
    log_settings,
    process_groups,
    verbosity_flag,
)
from fairway.service.goflags import (
    CommandLine,
    Flag,
    FlagError,
    FlagGroup,
    int_between,
    one_of,
    parse_line,
    render_help,
    switch,
    text_flag,
)
from webhook.certificate_secret import SecretName
from webhook.configuration import NAME, FailurePolicy
from webhook.settings import (
    ApiSettings,
    FilesSettings,
    ManifestRequest,
    RegistrationSettings,
    Settings,
)

PROGRAM: Final = "fairway-webhook"
_DEFAULT_URL: Final = "https://fairway-webhook.fairway-system.svc:443"
_HOST: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_OBJECT_NAME: Final = _HOST


def _parse_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        usable = _is_host(host) and port != 0 and "@" not in parts.netloc and text == text.lower()
    except ValueError:
        usable = False
    if not usable or parts.scheme != "https" or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("expected https://HOST or https://HOST:PORT, in lower case and without a path")
    return text.removesuffix("/")


def _is_host(host: str) -> bool:
    if ":" in host:
        IPv6Address(host)
        return True
    return _HOST.fullmatch(host) is not None


def _parse_secret(text: str) -> SecretName:
    namespace, slash, name = text.partition("/")
    if not (slash and _OBJECT_NAME.fullmatch(namespace) and _OBJECT_NAME.fullmatch(name)):
        raise ValueError("expected NAMESPACE/NAME")
    return SecretName(namespace, name)


def _parse_name(text: str) -> str:
    if not _OBJECT_NAME.fullmatch(text):
        raise ValueError("expected the name of an object: lower-case letters, digits, - and .")
    return text


_ADDRESS: Final = text_flag("bind-address", "Address that reviews are served on; every one if empty.", "IP")
_PORT: Final = Flag("secure-port", int_between(0, MAX_PORT, "a port"), "8443", "Its port.", "PORT")
_URL: Final = Flag(
    "url",
    _parse_url,
    _DEFAULT_URL,
    "Where karmada-apiserver reaches this webhook; its host is the name in our own certificates.",
    "URL",
)

_CERTIFICATE: Final = text_flag(
    "tls-cert-file",
    "Certificate chain, PEM, re-read when it changes. Without it certificates are made and renewed by "
    "ourselves and kept in --certificate-secret.",
)
_KEY: Final = text_flag("tls-private-key-file", "Key of that certificate, PEM.")
_AUTHORITIES: Final = text_flag(
    "tls-ca-file",
    "Authorities of that certificate, PEM, to be registered; without it the API server's own count.",
)
_SECRET: Final = Flag(
    "certificate-secret",
    _parse_secret,
    "karmada-system/fairway-webhook",
    "Secret on karmada-apiserver in which our own certificates are kept.",
    "NAMESPACE/NAME",
)

_REGISTER: Final = switch(
    "register", "Create the webhook configuration on karmada-apiserver, and keep it right.", "true"
)
_NAME: Final = Flag("configuration-name", _parse_name, NAME, "Name of that configuration.", "NAME")
_FAILURE_POLICY: Final[Flag[FailurePolicy]] = Flag(
    "failure-policy",
    one_of("Fail", "Ignore"),
    "Fail",
    "What the API server does with a binding that would be held while no webhook answers: refuse it for now, "
    "or let it through.",
    "Fail|Ignore",
)

_HEALTH: Final = health_flag(":8000")
_VERBOSITY: Final = verbosity_flag("a record for each review")

GROUPS: Final = (
    FlagGroup("Serving", (_ADDRESS, _PORT, _URL)),
    FlagGroup("Certificates", (_CERTIFICATE, _KEY, _AUTHORITIES, _SECRET)),
    SCOPE,
    FlagGroup("Registration", (_REGISTER, _NAME, _FAILURE_POLICY)),
    FlagGroup("Karmada's API server", (KARMADA, KARMADA_CONTEXT, KARMADA_MASTER)),
    *process_groups(_HEALTH, _VERBOSITY),
    OTHERS,
)


def parse(
    argv: Sequence[str],
    *,
    version: str,
    width: int = 100,
    is_file: Callable[[Path], bool] = Path.is_file,
) -> Settings | ManifestRequest | Text:
    """Read the arguments after the program's name.

    ``version`` is the text that the ``version`` sub-command shows, ``width`` the columns of the help,
    ``is_file`` tells whether a named file is there. Raises FlagError.
    """
    line = parse_line([flag for group in GROUPS for flag in group.flags], argv, gone={})
    if line.value(HELP) or line.arguments == ("help",):
        return Text(help_text(width))
    match line.arguments:
        case ("version",):
            return Text(f"{PROGRAM} version: {version}")
        case ("policies",):
            return ManifestRequest(scope_settings(line, is_file))
        case ("cronjobs",):
            return ManifestRequest(scope_settings(line, is_file), "cronjobs")
        case ("configuration",):
            asked = line.value(_URL), line.value(_FAILURE_POLICY)
            return ManifestRequest(scope_settings(line, is_file), "configuration", asked)
        case ():
            return _settings(line, is_file)
    raise FlagError(
        f"unknown command {line.arguments[0]!r} for {PROGRAM!r}: "
        "expected flags only, policies, configuration, cronjobs, version or help"
    )


def help_text(width: int) -> str:
    """The help: what the program is, how to call it, and each flag with its default."""
    return (
        "Holds accelerator workloads at their creation and when they grow, by suspending the scheduling of\n"
        "their bindings on karmada-apiserver; fairway-dispatcher releases them.\n\n"
        f"Usage:\n  {PROGRAM} [--kubeconfig FILE] [--url URL] [flags]\n"
        f"  {PROGRAM} policies [--hold-kind KIND.GROUP] [--catalogue FILE]  print MutatingAdmissionPolicies\n"
        f"  {PROGRAM} configuration [--url URL] [flags]                     print what is registered\n"
        f"  {PROGRAM} cronjobs [--catalogue FILE]                           print a policy for members\n"
        f"  {PROGRAM} version\n\n" + render_help(GROUPS, width=width)
    )


def _settings(line: CommandLine, is_file: Callable[[Path], bool]) -> Settings:
    url = line.value(_URL)
    try:
        address = parse_bind_address(_bound(line.value(_ADDRESS), line.value(_PORT)))
    except ValueError as error:
        raise line.error(_ADDRESS, str(error)) from None
    assert address is not None
    registers = line.value(_REGISTER)
    return Settings(
        address=address,
        url=url,
        host=urlsplit(url).hostname or "",
        certificates=_certificates(line, is_file),
        registration=(
            RegistrationSettings(line.value(_NAME), line.value(_FAILURE_POLICY)) if registers else None
        ),
        scope=scope_settings(line, is_file),
        api=ApiSettings(
            karmada_kubeconfig(line, KARMADA, is_file),
            line.value(KARMADA_CONTEXT),
            line.value(KARMADA_MASTER),
        ),
        endpoints=endpoint_settings(line, _HEALTH),
        logs=log_settings(line, _VERBOSITY),
        observe=line.value(OBSERVE),
    )


def _bound(host: str, port: int) -> str:
    return str(BindAddress(host, port))


def _certificates(line: CommandLine, is_file: Callable[[Path], bool]) -> FilesSettings | SecretName:
    certificate, key, authorities = (
        existing_file(line, flag, "PEM", is_file) for flag in (_CERTIFICATE, _KEY, _AUTHORITIES)
    )
    if certificate is None and key is None and authorities is None:
        return line.value(_SECRET)
    if certificate is None or key is None:
        raise FlagError(f"--{_CERTIFICATE.name} and --{_KEY.name}: expected both, or no file at all")
    return FilesSettings(certificate, key, authorities)
