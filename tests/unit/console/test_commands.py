"""The table of commands."""

from __future__ import annotations

import pytest

from dap_mux.console.commands import (
    COMMANDS,
    help_text,
    lookup,
    parse_compare_arguments,
    split_command,
)
from dap_mux.console.results import parse_list_arguments
from dap_mux.errors import UsageError

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
