"""The command line of the agent."""

from pathlib import Path

import pytest

from fairway.service.common_flags import Text
from fairway.service.goflags import FlagError
from node_agent.flags import parse
from node_agent.main import main
from node_agent.settings import Settings


def settings(*arguments: str) -> Settings:
    asked = parse(["--node-name=gpu-1", *arguments], version="1", is_file=lambda _: True)
    assert isinstance(asked, Settings)
    return asked


def test_defaults() -> None:
    asked = settings()
    assert (asked.node, asked.period_s, asked.publishes) == ("gpu-1", 5.0, True)
    assert asked.api.kubeconfig is None
    assert [str(each) for each in (asked.endpoints.health, asked.endpoints.metrics)] == [":10351", ":8080"]
    assert asked.endpoints.profiling is None


def test_what_is_given_counts() -> None:
    asked = settings("--period=10s", "--publish=false", "--kubeconfig=/k", "--context=c", "--enable-pprof")
    assert (asked.period_s, asked.publishes) == (10.0, False)
    assert (asked.api.kubeconfig, asked.api.context) == (Path("/k"), "c")
    assert asked.endpoints.profiling is not None
    assert settings("--profiling-bind-address=:1").notices != ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--node-name: expected the name of the Node"),
        (["--node-name=$(NODE_NAME)"], "expected the name of a Node"),
        (["--node-name=a", "--period=1ms"], "expected 1s to 1m"),
        (["--node-name=a", "--period=1h"], "expected 1s to 1m"),
        (["--node-name=a", "--kubeconfig=/nowhere"], "no such file"),
        (["--node-name=a", "go"], "unknown command 'go'"),
    ],
)
def test_what_cannot_be_used_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(FlagError, match=message.replace("$", r"\$")):
        parse(arguments, version="1")
    assert main(arguments) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["--help", "help", "version"])
def test_texts(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(parse([argument], version="1"), Text)
    assert main([argument]) == 0
    assert "fairway-node-agent" in capsys.readouterr().out
