"""Lines that can be trusted: one event, one line, nothing of a body."""

from __future__ import annotations

import asyncio
import json
import logging
import warnings

import pytest
import structlog

from ruleop.errors import RuleopError
from ruleop.operator.telemetry.logging import set_up
from tests.logs import captured_stderr

SECRET = "hunter2"  # noqa: S105 - the canary


@pytest.fixture
def stream():
    """The output on stderr."""
    with captured_stderr() as text:
        yield text


@pytest.fixture(params=["text", "json"])
def form(request):
    return request.param


def lines(stream):
    return stream.getvalue().splitlines()


def record(stream):
    return json.loads(stream.getvalue())


def test_json_has_the_event_and_its_fields(stream):
    set_up(form="json")
    structlog.get_logger().bind(controller="App").info(
        "reconciled", resource="shop/web", written=2, seconds=0.5, clean=True, why=None
    )
    output = record(stream)
    assert output.pop("timestamp").endswith("Z")
    assert output == {
        "event": "reconciled",
        "level": "info",
        "controller": "App",
        "resource": "shop/web",
        "written": 2,
        "seconds": 0.5,
        "clean": True,
        "why": None,
    }


def test_json_starts_with_time_level_and_event(stream):
    set_up(form="json")
    structlog.get_logger().bind(controller="App").warning("problem", resource="shop/web")
    try:
        fail(RuleopError("no"))
    except RuleopError:
        structlog.get_logger().exception("it failed", resource="shop/web")
    logged = [list(json.loads(line)) for line in lines(stream)]
    assert logged == [
        ["timestamp", "level", "event", "controller", "resource"],
        ["timestamp", "level", "event", "resource", "exception"],
    ]


@pytest.mark.parametrize("value", ["ready", "1 → 2", "\x7f", 2**70, ["a", "é"]])
def test_all_lines_of_json_have_one_form(stream, value):
    set_up(form="json")
    structlog.get_logger().info("changed", value=value, more=1)
    line = stream.getvalue().removesuffix("\n")
    assert line == json.dumps(json.loads(line), separators=(",", ":"))


def test_text_is_one_readable_line(stream):
    set_up(form="text")
    structlog.get_logger().warning("reconciled", resource="shop/web", kinds=["App", "Job"])
    (line,) = lines(stream)
    assert "[warning" in line
    assert "reconciled" in line
    assert "resource=shop/web" in line
    assert "App, Job" in line


@pytest.mark.parametrize("terminal", [True, False])
def test_the_default_format_is_text_on_a_terminal_and_json_elsewhere(stream, monkeypatch, terminal):
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    set_up()
    structlog.get_logger().info("hello")
    assert stream.getvalue().startswith("{") != terminal


@pytest.mark.parametrize(("level", "output"), [("debug", 4), ("info", 3), ("WARNING", 2), ("error", 1)])
def test_lines_below_the_level_are_not_logged(stream, level, output):
    set_up(level, "json")
    log = structlog.get_logger()
    for each in (log.debug, log.info, log.warning, log.error):
        each("hello")
    assert len(lines(stream)) == output


NASTY = ["\n", "\r", "\x00", "\x07", "\x1b[2J", "\x7f", "\x85", "\x9b2J", "\u2028", "\u202e", "\ud800"]


@pytest.mark.parametrize("nasty", NASTY, ids=ascii)
@pytest.mark.parametrize("where", ["event", "field", "list", "error"])
def test_values_cannot_forge_a_line(stream, form, nasty, where):
    set_up(form=form)
    log = structlog.get_logger()
    text = f"before{nasty}2026-01-01 [info] all is well"
    if where == "event":
        log.info(text)
    elif where == "field":
        log.info("hello", message=text)
    elif where == "list":
        log.info("hello", kinds=[text])
    else:
        try:
            fail(RuleopError(text))
        except RuleopError:
            log.exception("hello")
    output = stream.getvalue()
    assert all(char.isprintable() or char == "\n" for char in output)
    first, *others = output.rstrip("\n").split("\n")
    assert others == [] if where != "error" or form == "json" else all(line.startswith("    ") for line in others)
    assert "all is well" in output
    assert "before" in first + "".join(others)


def test_printable_text_stays_as_it_is(stream):
    set_up(form="text")
    structlog.get_logger().info("hello", path="C:\\x", name="Übung-日本")
    assert "C:\\x" in stream.getvalue()
    assert "Übung-日本" in stream.getvalue()


@pytest.mark.parametrize(
    "body",
    [
        {"data": {"password": SECRET}},
        [{"data": SECRET}],
        ({"a": SECRET},),
        SECRET.encode(),
        bytearray(SECRET.encode()),
        [SECRET.encode()],
        {SECRET: 1},
    ],
    ids=repr,
)
def test_a_body_is_never_logged(stream, form, body):
    set_up(form=form)
    structlog.get_logger().info("hello", value=body)
    assert SECRET not in stream.getvalue()
    assert "hello" in stream.getvalue()


def test_values_without_a_json_form_are_logged_as_text(stream, form):
    set_up(form=form)
    structlog.get_logger().info("hello", value=complex(1, 2), values={3})
    assert "(1+2j)" in stream.getvalue()


def fail(error=None):
    password = SECRET  # noqa: F841 - a local, which some formatters print
    raise error or ValueError(f"cannot do with {SECRET}")


def test_an_unexpected_exception_is_logged_with_its_traceback_and_without_its_message(stream, form):
    set_up(form=form)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            fail()
        except ValueError:
            structlog.get_logger().exception("it failed")
    output = stream.getvalue()
    assert SECRET not in output
    assert "ValueError" in output
    assert "test_logging.py" in output
    assert "in fail" in output


def test_a_ruleop_error_is_logged_with_its_message_and_its_cause(stream):
    set_up(form="json")
    try:
        try:
            fail()
        except ValueError as error:
            raise RuleopError("the cluster does not answer") from error
    except RuleopError as error:
        structlog.get_logger().error("it failed", exc_info=error)
    logged = record(stream)["exception"].splitlines()
    assert logged[0] == "RuleopError: the cluster does not answer"
    assert "caused by" in logged
    assert "ValueError" in logged
    assert SECRET not in stream.getvalue()


def test_exceptions_that_cause_each_other_are_logged_once(stream):
    set_up(form="json")
    one, two = ValueError(), KeyError()
    one.__cause__, two.__cause__ = two, one
    structlog.get_logger().error("it failed", exc_info=(ValueError, one, None))
    logged = record(stream)["exception"].splitlines()
    assert [line for line in logged if not line.startswith(" ")][:3] == ["ValueError", "caused by", "KeyError"]
    assert len(logged) < 6


def test_the_context_of_an_exception_is_logged_unless_it_is_suppressed(stream):
    set_up(form="json")
    for suppress in (False, True):
        error = ValueError()
        error.__context__ = KeyError()
        error.__suppress_context__ = suppress
        structlog.get_logger().error("it failed", exc_info=error)
    first, second = (json.loads(line)["exception"] for line in lines(stream))
    assert "KeyError" in first
    assert "KeyError" not in second


def test_an_error_without_an_exception_is_logged_without_one(stream):
    set_up(form="json")
    structlog.get_logger().error("it failed", exc_info=True)
    assert "exception" not in record(stream)


def test_warnings_of_libraries_are_logged_in_the_same_form(stream):
    set_up("debug", "json")
    logging.getLogger("some.library").warning("a %s\nand more", "warning")
    logging.getLogger("some.library").critical("the end")
    logging.getLogger("some.library").debug("a body: %s", SECRET)
    logging.getLogger("some.library").info("a body: %s", SECRET)
    one, two = map(json.loads, lines(stream))
    assert (one["event"], one["level"], one["library"]) == ("a warning", "warning", "some.library")
    assert (two["event"], two["level"]) == ("the end", "error")


def test_a_failed_task_that_was_not_awaited_is_logged_without_its_message(stream):
    set_up(form="json")

    async def scenario():
        async def one():
            fail()

        task = asyncio.create_task(one())
        await asyncio.wait([task])
        del task

    asyncio.run(scenario())
    assert "Task exception was never retrieved" in stream.getvalue()
    assert SECRET not in stream.getvalue()
