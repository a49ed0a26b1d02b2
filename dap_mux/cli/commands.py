"""The table of commands: names that other people's scripts use, and what each one takes."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, BooleanOptionalAction, _ActionsContainer
from collections.abc import Callable
from dataclasses import dataclass

from dap_mux.config import OPTIONS, Option

RUN_USAGE = """\
dap-mux run [-n N] [OPTIONS] SCRIPT [ARGS...]
       dap-mux run [-n N] [OPTIONS] -m MODULE [ARGS...]"""
RUN_NOTES = """\
Ends with the job's own exit code (a rank that signal S ended: 128+S), 125 when dap-mux itself
failed, 2 when these words were wrong."""


@dataclass(frozen=True)
class Command:
    """One command. `call` is `module:function` below `dap_mux.cli`, or None: not built yet.

    `failure` is the exit code for failures that have no code of their own.
    """

    name: str
    help: str
    arguments: Callable[[ArgumentParser], None]
    call: str | None = None
    failure: int = 1


def _run(parser: ArgumentParser) -> None:
    parser.usage = RUN_USAGE
    parser.epilog = RUN_NOTES
    parser.add_argument(
        "-n", dest="world_size", metavar="N", default="1", help="how many ranks to start (1)"
    )
    surface = parser.add_mutually_exclusive_group()
    surface.add_argument(
        "--headless", action="store_true", help="only serve editors; the way it works so far"
    )
    surface.add_argument("--console", action="store_true", help="not built yet")
    # Both take all that follows: from there on every word is the job's.
    parser.add_argument(
        "-m", dest="module", nargs=REMAINDER, metavar="MODULE ...", help="run a module, not a file"
    )
    parser.add_argument("command", nargs=REMAINDER, metavar="SCRIPT ...", help="and its arguments")
    _options(parser, "run")


def _attach(parser: ArgumentParser) -> None:
    parser.add_argument(
        "endpoints",
        nargs="+",
        metavar="ENDPOINT",
        help="HOST:PORT, HOST:FIRST-LAST, HOST:FIRST+COUNT or @ranks.json; GROUP=... names a group",
    )
    _options(parser, "attach")


def _adapter(parser: ArgumentParser) -> None:
    _options(parser, "adapter")


def _sessions(parser: ArgumentParser) -> None:
    _json(parser)


def _list(parser: ArgumentParser) -> None:
    parser.add_argument(
        "session",
        nargs="?",
        metavar="SESSION",
        help="HOST:PORT or a session file; by default the only session running",
    )
    parser.add_argument(
        "ranks", nargs="?", metavar="RANKS", help="a rank set such as 0-3 or stopped"
    )
    _json(parser)
    _options(parser, "list")


def _config(parser: ArgumentParser) -> None:
    show = parser.add_subparsers(dest="action", metavar="ACTION", required=True).add_parser(
        "show", help="each option, its value and where it came from", allow_abbrev=False
    )
    _json(show)
    _options(show)


def _later(parser: ArgumentParser) -> None:
    parser.description = "Not built yet; it comes with a later release."


def _json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def _options(parser: ArgumentParser, command: str | None = None) -> None:
    """Add the flags of the option table that this command takes; all for None."""
    group = parser.add_argument_group("session options")
    for option in OPTIONS:
        if command is None or command in option.commands:
            _option(parser if option.name == "verbosity" else group, option)


def _option(group: _ActionsContainer, option: Option) -> None:
    default = "" if option.default is None else f" ({option.kind.show(option.default)})"
    if option.name == "verbosity":
        group.add_argument("-v", dest=option.name, action="count", help=option.help)
    elif isinstance(option.default, bool):
        group.add_argument(
            option.flag, dest=option.name, action=BooleanOptionalAction, help=option.help
        )
    else:
        group.add_argument(
            option.flag, dest=option.name, metavar=option.kind.metavar, help=option.help + default
        )


COMMANDS: tuple[Command, ...] = (
    Command("run", "start ranks on this machine and debug them", _run, "work:run", failure=125),
    Command("attach", "debug ranks that run already", _attach, "work:attach"),
    Command("adapter", "speak DAP on stdin and stdout, for an editor", _adapter, "work:adapter"),
    Command("sessions", "your running sessions on this machine", _sessions, "sessions:main"),
    Command("list", "the ranks of a session, and where each one is", _list, "list_ranks:main"),
    Command("config", "the options in force", _config, "config_show:main"),
    Command("console", "a terminal console (not built yet)", _later),
    Command("cast", "one command to many ranks (not built yet)", _later),
    Command("stacks", "all ranks' stacks as one tree (not built yet)", _later),
    Command("compare", "one expression on all ranks (not built yet)", _later),
    Command("why", "who waits for whom (not built yet)", _later),
    Command("lsp", "a language server (not built yet)", _later),
    Command("doctor", "check this machine (not built yet)", _later),
)
BY_NAME = {command.name: command for command in COMMANDS}
