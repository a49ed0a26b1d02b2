"""The table of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from dap_mux.frontends.console.breakpoints import Breakpoint, find_file, rank_prefix
from dap_mux.frontends.console.commands import (
    COMMANDS,
    help_text,
    lookup,
    parse_compare_arguments,
    split_command,
)
from dap_mux.frontends.console.screen import parse_list_arguments
from dap_mux.frontends.console.wait import parse_wait_arguments
from dap_mux.frontends.console.words import likely_meant
from dap_mux.pure.errors import UsageError

MONARCH = {"a": "attach", "l": "list", "h": "help", "q": "quit", "c": "continue"}


@pytest.mark.parametrize(("short", "name"), MONARCH.items())
def test_monarchs_short_forms(short: str, name: str) -> None:
    assert lookup(short).name == name == lookup(name).name


def test_no_two_commands_share_a_word() -> None:
    words = [word for command in COMMANDS for word in (command.name, *command.aliases)]
    assert len(words) == len(set(words))


def test_help_names_each_of_them() -> None:
    shown = help_text()
    assert len(shown.splitlines()) == len(COMMANDS)
    assert max(map(len, shown.splitlines())) <= 110


def test_what_was_likely_meant() -> None:
    with pytest.raises(UsageError, match="did you mean 'attach'"):
        lookup("atach")
    with pytest.raises(UsageError, match="'help' lists all"):
        lookup("\x1b[2J")


def test_a_line_is_a_word_and_the_rest() -> None:
    assert split_command("  cast  0-3   p x ") == ("cast", "0-3   p x")
    assert split_command("") == ("", "")


@pytest.mark.parametrize(
    ("line", "ranks", "how"),
    [
        ("", "stopped", ""),
        ("all", "all", ""),
        ("classes", "stopped", "classes"),
        ("full all - 3", "all - 3", "full"),
        ("debugee ranks(0:4) full", "debugee.ranks(0:4)", "full"),
    ],
)
def test_list(line: str, ranks: str, how: str) -> None:
    assert parse_list_arguments(line, default="stopped") == (ranks, how)


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("loss", {"expression": "loss"}),
        ("ranks(0:4) loss", {"ranks": "ranks(0:4)", "expression": "loss"}),
        ("x[0] + f(1, 2)", {"expression": "x[0] + f(1, 2)"}),
        ("0-3 loss within 5%", {"ranks": "0-3", "expression": "loss", "tolerance": 0.05}),
        ("loss within 1e-3", {"expression": "loss", "tolerance": 0.001}),
        ("loss within reason", {"expression": "loss within reason"}),
    ],
)
def test_compare(line: str, asked: dict[str, object]) -> None:
    assert parse_compare_arguments(line) == asked


def test_a_misspelt_command_is_the_only_thing_that_is_proposed() -> None:
    with pytest.raises(UsageError, match=r"^unknown command 'lsit': did you mean 'list'\?$"):
        lookup("lsit")
    with pytest.raises(UsageError, match="cast RANKS COMMAND"):
        lookup("print(loss)")


@pytest.mark.parametrize(
    ("line", "error", "meant"),
    [
        ("watch", "NameError: name 'watch' is not defined", "display"),
        ("ls", "NameError: name 'ls' is not defined", "ranks"),
        ("watch loss", "SyntaxError: invalid syntax", "display"),
        ("comapre loss", "SyntaxError: invalid syntax", "compare"),
        ("watch", "NameError: name 'loss' is not defined", None),
        ("watch.loss", "NameError: name 'watch' is not defined", None),
        ("watch", "is waiting", None),
        ("losses", "NameError: name 'losses' is not defined", None),
    ],
)
def test_a_word_that_ranks_do_not_know(line: str, error: str, meant: str | None) -> None:
    errors = [{"ranks": "0-3", "message": error}]
    assert likely_meant(line, errors, ["compare", "ranks", "why"]) == meant
    ended = {"ranks": "4", "message": "exited: SIGKILL (9), not sent by dap-mux"}
    assert likely_meant(line, [*errors, ended], ["compare", "ranks", "why"]) == meant


def test_words_of_other_debuggers() -> None:
    with pytest.raises(UsageError, match="by 'cast RANKS n'"):
        lookup("next")
    with pytest.raises(UsageError, match="did you mean 'ranks'"):
        lookup("ls")


# What a line of `wait` means.


@pytest.mark.parametrize(
    ("rest", "meant"),
    [
        ("", ("all", "stopped", 60.0)),
        ("exited", ("all", "exited", 60.0)),
        ("stopped 5", ("all", "stopped", 5.0)),
        ("3", ("3", "stopped", 60.0)),
        ("0-3 2.5", ("0-3", "stopped", 2.5)),
        ("ranks(0:4) & ~3 running 10s", ("ranks(0:4) & ~3", "running", 10.0)),
        ("stopped exited", ("stopped", "exited", 60.0)),
    ],
)
def test_read(rest: str, meant: tuple[str, str, float]) -> None:
    assert parse_wait_arguments(rest) == meant


# What `break` takes.

ROWS: list[dict[str, str | None]] = [
    {"path": "/src/train.py"},
    {"path": "/src/model/layers.py"},
    {"path": None},
]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("train.py", "/src/train.py"),
        ("model/layers.py", "/src/model/layers.py"),
        ("/else/where.py", "/else/where.py"),
        ("no.py", ""),
    ],
)
def test_a_file_that_ranks_are_in(name: str, path: str) -> None:
    assert find_file(name, ROWS) == path


def test_a_file_here_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    assert find_file("train.py", ROWS) == str(tmp_path / "train.py")


def test_a_file_that_no_rank_is_in_yet_lies_beside_one(tmp_path: Path) -> None:
    (tmp_path / "model.py").touch()
    rows = [{"path": str(tmp_path / "train.py")}, {"path": "/elsewhere/threading.py"}]
    assert find_file("model.py", rows) == str(tmp_path / "model.py")
    assert find_file("model.py", [], [str(tmp_path)]) == str(tmp_path / "model.py")
    assert find_file("other.py", rows) == ""


def test_the_only_file_need_not_be_named() -> None:
    assert find_file(None, ROWS[:1]) == "/src/train.py"
    with pytest.raises(UsageError, match="which file"):
        find_file(None, ROWS)


@pytest.mark.parametrize(
    ("condition", "sent"),
    [
        ("", "job.ranks(2):"),
        ("n == 1", "job.ranks(2): n == 1"),
        ("ranks(0:4): x > 3", "ranks(0:4): x > 3"),
        ("barrier: x", "job.ranks(2) barrier: x"),
        ("differ: loss", "job.ranks(2) differ: loss"),
    ],
)
def test_a_breakpoint_for_some_ranks(condition: str, sent: str) -> None:
    some = frozenset([("job", 2)])
    assert Breakpoint(1, "/a.py", 3, condition=condition, ranks=some).full_condition == sent


def test_a_breakpoint_is_for_one_group_or_for_all() -> None:
    with pytest.raises(UsageError, match="one group"):
        rank_prefix([("a", 0), ("b", 0)])
