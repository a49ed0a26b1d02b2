"""Help at the command line: suggestions, examples, and session and ranks as options."""

from __future__ import annotations

import shlex

import pytest

from dap_mux.frontends.cli import main
from dap_mux.frontends.cli.commands import COMMANDS, Command
from dap_mux.frontends.cli.entry import parse


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("lst", "there is no command 'lst': did you mean 'list'?"),
        ("help lst", "there is no command 'lst': did you mean 'list'?"),
        ("nonsense", "there is no command 'nonsense': `dap-mux help` lists them"),
        ("train.py", "there is no command 'train.py': did you mean `dap-mux run train.py`?"),
        ("-n 4 train.py", "-n: a command comes first, as in `dap-mux run -n ...`"),
        ("cast --session job 0 n", "--session job: expected HOST:PORT or a session file"),
    ],
)
def test_the_name_of_no_command(
    words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err == f"dap-mux: {sentence}\n"


def test_an_unknown_option_shows_the_usage_of_its_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["stacks", "--treads", "all"])
    printed = capsys.readouterr().err
    assert printed.startswith("usage: dap-mux stacks [SESSION] [RANKS]")
    assert "unrecognized arguments: --treads (did you mean '--threads'?)" in printed


@pytest.mark.parametrize("words", [["help"], ["help", "stacks"]])
def test_help_is_a_command_too(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    printed = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([*words[1:], "--help"])
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.name))
def test_examples_of_the_help_are_right(command: Command) -> None:
    assert command.examples
    for example in command.examples:
        assert parse(shlex.split(example)).name == command.name


@pytest.mark.parametrize(
    "words",
    [
        "cast localhost:5677 0-3 p loss",
        "cast --session localhost:5677 --ranks 0-3 p loss",
        "cast --session localhost:5677 0-3 p loss",
        "cast p loss --ranks 0-3 --session localhost:5677",
    ],
)
def test_session_and_ranks_as_options(words: str) -> None:
    assert parse(words.split()).arguments == ["localhost:5677", "0-3", "p", "loss"]
