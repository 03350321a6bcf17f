"""The program ``fairway-webhook``: flags in, a running webhook or manifests out, an exit code."""

import sys
from collections.abc import Sequence

from fairway.scope_flags import read_scope
from fairway.service.common_flags import Text, tell
from fairway.service.goflags import FlagError
from fairway.service.program import StartError
from fairway.service.version import release
from webhook.flags import parse
from webhook.manifests import configuration_yaml, cron_jobs_yaml, policies_yaml
from webhook.server import run
from webhook.settings import ManifestRequest


def main(argv: Sequence[str] | None = None) -> int:
    """Run until told to stop. 0 after a clean stop, 1 when it cannot start (the reason is on stderr)."""
    try:
        asked = parse(sys.argv[1:] if argv is None else argv, version=release())
        if isinstance(asked, Text):
            return tell(asked.text)
        if isinstance(asked, ManifestRequest):
            return tell(_manifests(asked), end="")
    except (FlagError, StartError) as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201 - before there is a log
        return 1
    return run(asked)


def _manifests(asked: ManifestRequest) -> str:
    scope = read_scope(asked.scope)
    match asked.manifests:
        case "policies":
            return policies_yaml(scope)
        case "cronjobs":
            return cron_jobs_yaml(scope)
        case "configuration":
            url, failure_policy = asked.configuration
            return configuration_yaml(scope, url, None, failure_policy)
