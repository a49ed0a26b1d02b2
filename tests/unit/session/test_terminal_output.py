"""No control character of a rank reaches the terminal or a log file."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dap_mux.frontends.cli import entry
from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.printable import one_line, printable
from dap_mux.session.terminal_output import alert, say, set_up_log

EVIL = "\x1b]0;title\x07\x9b2J\r\u202e\nWARNING dap_mux: a line of ours"
SHOWN = "\\x1b]0;title\\x07\\x9b2J\\r\\u202e"


@pytest.fixture
def logs() -> Iterator[None]:
    """Loggers that are afterwards as they were."""
    loggers = [logging.getLogger(name) for name in ("dap_mux", "asyncio")]
    kept = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, before in zip(loggers, kept, strict=True):
        for handler in logger.handlers:
            handler.close()
        logger.handlers, logger.level, logger.propagate = before


def test_what_we_say(capsys: pytest.CaptureFixture[str]) -> None:
    say(EVIL)
    assert capsys.readouterr().err == f"dap-mux: {printable(EVIL)}\n"
    assert printable(EVIL).startswith(SHOWN + "\n")


@pytest.mark.parametrize(
    ("environment", "red"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_alerts_are_red_where_the_terminal_has_colours(
    environment: dict[str, str], red: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    leader, follower = os.openpty()
    with open(follower, "w", encoding="utf-8") as terminal:  # noqa: PTH123  (a descriptor)
        monkeypatch.setattr(sys, "stderr", terminal)
        alert("rank 1 died")
        text = os.read(leader, 1000).decode().strip("\r\n")
    os.close(leader)
    assert text == ("\x1b[31mdap-mux: rank 1 died\x1b[0m" if red else "dap-mux: rank 1 died")


def test_alerts_in_a_file_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    alert(EVIL)
    assert capsys.readouterr().err == f"dap-mux: {printable(EVIL)}\n"


@pytest.mark.parametrize("name", ["dap_mux.rank.3", "asyncio"])
def test_what_we_log(
    name: str, logs: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_log(3, tmp_path)
    logging.getLogger(name).warning("it said %s", EVIL)
    try:
        raise DapMuxError(EVIL)
    except DapMuxError:
        logging.getLogger(name).exception("a traceback")
    for text in (capsys.readouterr().err, (tmp_path / "dap-mux.log").read_text("utf-8")):
        first, rest = text.split("\n", 1)
        assert first.endswith(f"{name}: it said {SHOWN}\\nWARNING dap_mux: a line of ours")
        assert not set(rest) & set(EVIL) - set(printable(EVIL)), "nor in a traceback"


def test_components_with_a_level_of_their_own(
    logs: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others keep the level of `-v`; the file has all in any case."""
    set_up_log(0, tmp_path, {"rank.3": logging.DEBUG, "client": logging.ERROR})
    names = ("rank.3", "rank.3.x", "rank.4", "client", "session")
    for name in names:
        logging.getLogger(f"dap_mux.{name}").debug("detail of %s", name)
        logging.getLogger(f"dap_mux.{name}").warning("fault of %s", name)
    shown = ("detail of rank.3", "fault of rank.3", "detail of rank.3.x", "fault of rank.3.x")
    assert [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()] == [
        *shown, "fault of rank.4", "fault of session"
    ]  # fmt: skip
    kept = (tmp_path / "dap-mux.log").read_text("utf-8")
    assert all(f"{what} of {name}" in kept for what in ("detail", "fault") for name in names)


def test_how_we_fail(capsys: pytest.CaptureFixture[str]) -> None:
    for verbosity in (0, 2):
        entry._explain(DapMuxError(EVIL), None, verbosity)
        assert not set(capsys.readouterr().err) & set(EVIL) - set(printable(EVIL))


def test_one_line() -> None:
    assert one_line("é\t\n\ud800") == "é\\t\\n\\ud800"
