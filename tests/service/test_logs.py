import io
import json
import logging
from collections.abc import Iterator

import pytest

from fairway.service.logs import JsonFormatter, LogFormat, TextFormatter, configure


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)


def record(message: str, *args: object, **fields: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "estimator.server", "levelno": 20, "levelname": "INFO"})
    made.msg, made.args, made.created = message, args, 1_700_000_000.25
    made.__dict__.update(fields)
    return made


def raised() -> BaseException:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        return error


def test_text_shows_time_level_logger_message_and_fields() -> None:
    line = TextFormatter().format(record("synced %s", "m1", nodes=5000, took_s=0.1234567891, why="a b"))
    assert line == (
        '2023-11-14T22:13:20.250Z INFO    estimator.server: synced m1 nodes=5000 took_s=0.123457 why="a b"'
    )


def test_json_holds_the_same_as_an_object() -> None:
    entry = json.loads(JsonFormatter().format(record("synced %s", "m1", nodes=5000, msg_id=None)))
    assert entry == {
        "ts": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "estimator.server",
        "msg": "synced m1",
        "nodes": 5000,
        "msg_id": None,
    }


def test_a_field_cannot_replace_a_part_of_the_record() -> None:
    entry = json.loads(JsonFormatter().format(record("real", level="fatal", ts=1)))
    assert (entry["level"], entry["field_level"], entry["field_ts"]) == ("info", "fatal", 1)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), {1, 2}, ValueError("x")])
def test_json_stays_json_whatever_the_field(value: object) -> None:
    def refuse(name: str) -> object:
        raise AssertionError(f"{name} is not JSON")

    assert "age" in json.loads(JsonFormatter().format(record("m", age=value)), parse_constant=refuse)


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
@pytest.mark.parametrize("hostile", ["a\nINFO forged", "a\r\x1b[31m", "a\u2028b", "a\x85b"])
def test_text_from_outside_cannot_start_another_line(formatter: logging.Formatter, hostile: str) -> None:
    line = formatter.format(record(hostile, name_of_it=hostile))
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line


def test_only_an_exception_in_text_takes_more_lines_all_of_them_indented() -> None:
    error = raised()
    failed = record("failed", exc_info=(type(error), error, error.__traceback__))
    first, *rest = TextFormatter().format(failed).splitlines()
    assert first.endswith("failed")
    assert rest
    assert all(line.startswith("  ") for line in rest)
    line = JsonFormatter().format(failed)
    assert len(line.splitlines()) == 1
    assert "ValueError: two" in json.loads(line)["exception"]


@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize(("verbosity", "lines"), [(0, 1), (3, 1), (4, 2), (10, 2)])
def test_verbosity_four_shows_debugging(
    root: logging.Logger, log_format: LogFormat, verbosity: int, lines: int
) -> None:
    stream = io.StringIO()
    configure(log_format=log_format, verbosity=verbosity, stream=stream)
    logger = logging.getLogger("estimator.test")
    logger.info("seen")
    logger.debug("seen by some")
    assert len(stream.getvalue().splitlines()) == lines


def test_configuring_again_replaces_and_does_not_double(root: logging.Logger) -> None:
    first, second = io.StringIO(), io.StringIO()
    configure(log_format="text", verbosity=0, stream=first)
    configure(log_format="text", verbosity=0, stream=second)
    logging.getLogger("estimator.test").info("once")
    assert (first.getvalue(), second.getvalue().count("once")) == ("", 1)
