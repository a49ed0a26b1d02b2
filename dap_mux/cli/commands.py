"""The table of commands: names that other people's scripts use, and what each one takes."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, BooleanOptionalAction, _ActionsContainer
from collections.abc import Callable
from dataclasses import dataclass

from dap_mux.config import OPTIONS, Option

RUN_USAGE = """\
dap-mux run [-n N] [OPTIONS] SCRIPT [ARGS...]
       dap-mux run [-n N] [OPTIONS] -m MODULE [ARGS...]
       dap-mux run [OPTIONS] -- LAUNCHER [WORDS...]"""
SESSION = "HOST:PORT or a session file; by default the only session running"
RUN_NOTES = """\
A LAUNCHER (torchrun, mpirun, srun, ...) runs as typed, and the ranks it starts are debugged.
Ends with the job's own exit code (a rank that signal S ended: 128+S), 125 when dap-mux itself
failed, 2 when these words were wrong."""

DOCTOR_NOTES = """\
Ends with 0 where nothing wrong was found and 1 where a cause is named. No rank is disturbed."""


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
    parser.add_argument("-n", dest="world_size", metavar="N", help="how many ranks to start (1)")
    parser.add_argument(
        "--dial",
        action="store_true",
        help="ranks call the session instead of listening: no ports, less memory, quicker answers",
    )
    surface = parser.add_mutually_exclusive_group()
    surface.add_argument("--headless", action="store_true", help="only serve editors (so it is)")
    surface.add_argument(
        "--console",
        action="store_true",
        help="a console in this terminal; ranks that wait stop at the script's first line",
    )
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
    parser.usage = "dap-mux list [SESSION] [classes|full] [RANKS] [OPTIONS]"
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help=f"{SESSION}; a rank set such as 0-3 or stopped; `classes` for a row for all ranks at "
        "one place, `full` for a row for each (without: classes above 32 ranks)",
    )
    _json(parser)
    _options(parser, "list")


def _console(parser: ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION", help=SESSION)
    parser.add_argument(
        "--serve", metavar="[HOST:]PORT", help="offer plain consoles to `nc` on this loopback port"
    )
    _options(parser, "console")


def _lsp(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Speaks the Language Server Protocol on stdin and stdout; see language-server.md."
    )
    parser.add_argument(
        "--session",
        metavar="SESSION",
        help="HOST:PORT or a session file; by default the session that runs, of several the newest",
    )
    _options(parser, "lsp")


def _cast(parser: ArgumentParser) -> None:
    parser.usage = "dap-mux cast [SESSION] RANKS COMMAND [--timeout S] [--json] [OPTIONS]"
    parser.epilog = "Put -- before words that begin with a dash."
    parser.add_argument(
        "words",
        nargs="+",
        metavar="WORD",
        help=f"{SESSION}; a rank set such as 0-3; a command of pdb, or an expression",
    )
    parser.add_argument("--timeout", metavar="S", default="5", help="how long ranks may take (5 s)")
    _json(parser)
    _options(parser, "cast")


def _compare(parser: ArgumentParser) -> None:
    parser.usage = "dap-mux compare [SESSION] EXPRESSION [--ranks RANKS] [--json] [OPTIONS]"
    parser.add_argument("words", nargs="+", metavar="WORD", help=f"{SESSION}; an expression")
    parser.add_argument("--ranks", metavar="RANKS", help="whose values; by default all ranks'")
    parser.add_argument(
        "--tolerance",
        metavar="T",
        help="numbers that differ by no more than this share of the larger are the same",
    )
    _json(parser)
    _options(parser, "compare")


def _doctor(parser: ArgumentParser) -> None:
    parser.usage = (
        "dap-mux doctor [SESSION|ENDPOINT...] [--file FILE:LINE] [--python COMMAND] [--json]"
    )
    parser.epilog = DOCTOR_NOTES
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="a session, endpoints as `attach` takes them, or pid:NUMBER; by default your running "
        "sessions and this folder's .vscode/launch.json",
    )
    parser.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="FILE:LINE",
        help="why does a breakpoint there not stop?",
    )
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="COMMAND",
        help="has this Python a debugpy? A path, or 'kubectl exec POD -- python'",
    )
    _json(parser)
    _options(parser, "doctor")


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
    Command(
        "run",
        "start ranks on this machine and debug them",
        _run,
        "session_commands:run",
        failure=125,
    ),
    Command("attach", "debug ranks that run already", _attach, "session_commands:attach"),
    Command(
        "adapter",
        "speak DAP on stdin and stdout, for an editor",
        _adapter,
        "session_commands:adapter",
    ),
    Command("sessions", "your running sessions on this machine", _sessions, "sessions:main"),
    Command("list", "the ranks of a session, and where each one is", _list, "list_ranks:main"),
    Command("config", "the options in force", _config, "config_show:main"),
    Command("console", "a terminal console for a session", _console, "console:main"),
    Command("cast", "one command to many ranks", _cast, "cast:cast"),
    Command(
        "compare", "one expression on all ranks: who has another value", _compare, "cast:compare"
    ),
    Command("stacks", "all ranks' stacks as one tree (not built yet)", _later),
    Command("why", "who waits for whom (not built yet)", _later),
    Command(
        "lsp", "a language server, for an editor: ranks and values in the text", _lsp, "lsp:main"
    ),
    Command("doctor", "why something does not work, and what helps", _doctor, "doctor:main"),
)
BY_NAME = {command.name: command for command in COMMANDS}
