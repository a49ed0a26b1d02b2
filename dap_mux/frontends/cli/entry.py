"""The entry point: parse a command line, run the command, turn failures into exit codes."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from argparse import Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from dap_mux import __version__
from dap_mux.frontends.cli.commands import (
    BY_NAME,
    COMMANDS,
    SHELLS,
    SOURCES,
    Command,
    add_arguments,
)
from dap_mux.pure.errors import DapMuxError, NothingToConnect, Refused, UsageError
from dap_mux.pure.printable import closest, printable

# `dap-mux completion SHELL`: completions of our commands and options for a shell.

FILE_METAVARS = frozenset({"FILE", "FOLDER", "DIR", "SCRIPT ..."})
COMPLETE_FILES = {
    "bash": "_shtab_compgen_files",
    "zsh": "_files",
    "fish": "(__fish_complete_path (commandline -ct))",
}


def completion(args: Namespace) -> int:
    """Print the completion script for one shell, generated from the parsers."""
    import shtab

    parser = build_parser()
    for command in parser.commands.values():
        name_sources(command)
    print(shtab.complete(parser, shell=args.shell))
    return 0


class PrintCompletion(Action):
    """Do what `completion` does, by its older name."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Print it."""
        parser.exit(completion(Namespace(shell=values)))


def name_files(parser: ArgumentParser) -> None:
    """Complete file names for the arguments that are files."""
    for action in parser._actions:  # noqa: SLF001  (argparse has no public way)
        if action.metavar in FILE_METAVARS:
            vars(action)["complete"] = COMPLETE_FILES


def name_sources(parser: ArgumentParser) -> None:
    """Put the endpoints of all sources into the help that names them."""
    for action in parser._actions:  # noqa: SLF001
        if action.help and SOURCES in action.help:
            from dap_mux.cluster.endpoints import descriptions

            known = dict.fromkeys(each.help for each in descriptions().values() if each.help)
            action.help = action.help.replace(SOURCES, ", ".join(known))


class Parser(ArgumentParser):
    """A parser whose help names the sources that are installed; `commands`: by name and alias."""

    commands: Mapping[str, ArgumentParser]

    def format_help(self) -> str:
        """Return the help."""
        name_sources(self)
        return super().format_help()


PROG = "dap-mux"
OWN_FLAGS = ("-h", "--help", "--version", "--print-completion")


class HelpFormatter(RawDescriptionHelpFormatter):
    """Given the width, argparse does not import `shutil` (and bz2 and lzma) to learn it."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    """Return the terminal's, as `shutil.get_terminal_size` does."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    with suppress(AttributeError, ValueError, OSError):  # closed, or no terminal
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    return 80


def parse(command_line: Sequence[str]) -> Namespace:
    """Parse a command line; like argparse, --help and mistakes end the process."""
    arguments = list(command_line) or ["--help"]
    known_by(arguments[0])
    if arguments[0] in ("run", "record", "diverge", "replay"):
        return _parse_run(arguments)
    args = _parse(arguments)
    place_session_and_ranks(args)
    return args


def place_session_and_ranks(args: Namespace) -> None:
    """Put what `--session` and `--ranks` name where the command takes it without an option.

    Raises UsageError.
    """
    if getattr(args, "arguments", None) is None:
        return
    if args.session is not None:
        from dap_mux.frontends.cli.listings import names_session  # imports a lot

        if not names_session(args.session):
            raise UsageError(f"--session {args.session}: expected HOST:PORT or a session file")
    leading = [args.session] if args.session is not None else []
    if args.ranks is not None and args.name != "compare":
        leading.append(args.ranks)
    args.arguments = leading + args.arguments


def known_by(name: str) -> None:
    """Raise UsageError for the name of no command, with what may have been meant."""
    if name in BY_NAME or name.startswith(OWN_FLAGS):
        return
    if name.startswith("-"):
        raise UsageError(f"{name}: a command comes first, as in `{PROG} run {name} ...`")
    if name.endswith(".py"):
        meant = f"did you mean `{PROG} run {name}`?"
    else:
        meant = _did_you_mean(name, BY_NAME) or f"`{PROG} help` lists them"
    raise UsageError(f"there is no command {name!r}: {meant}")


def _did_you_mean(typed: str, known: Iterable[str]) -> str:
    close = closest(typed, known)
    return f"did you mean {close!r}?" if close else ""


def explain(args: Namespace) -> int:
    """Show the help of a command, or of all. Raises UsageError for the name of none."""
    if args.command is not None:
        known_by(args.command)
    parser = build_parser(_named([args.command]) if args.command else COMMANDS)
    (parser.commands[args.command] if args.command else parser).print_help()
    return 0


def _parse(arguments: list[str]) -> Namespace:
    """Parse by the parser of the command; its usage is shown for an option that it has not."""
    parser = build_parser(_named(arguments))
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        own = parser.commands[arguments[0]] if arguments[0] in BY_NAME else parser
        known = own._option_string_actions  # noqa: SLF001
        meant = _did_you_mean(unknown[0].partition("=")[0], known)
        own.error(f"unrecognized arguments: {' '.join(unknown)}" + (f" ({meant})" if meant else ""))
    return args


def _named(arguments: Sequence[str]) -> Sequence[Command]:
    """Return the command that comes first, or all: to build their parsers takes 6 ms."""
    return [BY_NAME[arguments[0]]] if arguments and arguments[0] in BY_NAME else COMMANDS


def build_parser(of: Sequence[Command] = COMMANDS) -> Parser:
    """Build the parsers of these commands from the table."""
    parser = Parser(
        prog=PROG,
        description="One debug session for a distributed Python job: every rank is a thread.",
        epilog="See `dap-mux help COMMAND` for details.",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROG} {__version__}")
    parser.add_argument(
        "--print-completion",
        action=PrintCompletion,
        choices=SHELLS,
        help="print a completion script for a shell",
    )
    commands = parser.add_subparsers(dest="name", metavar="COMMAND", required=True)
    for command in of:
        own = commands.add_parser(
            command.name,
            help=command.help,
            description=command.help[0].upper() + command.help[1:] + ".",
            formatter_class=HelpFormatter,
            allow_abbrev=False,
            aliases=command.aliases,
        )
        add_arguments(own, command)
        own.epilog = "\n\n".join(filter(None, (_examples(command), own.epilog)))
        name_files(own)
    parser.commands = commands.choices
    return parser


def _examples(command: Command) -> str:
    lines = (f"  {PROG} {each}" for each in command.examples)
    return "\n".join(("examples:", *lines))


def _parse_run(arguments: list[str]) -> Namespace:
    """Handle the `--` of `run` and its like: argparse treats it differently in each release."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    args = _parse(arguments[:cut])
    tail = arguments[cut:]
    args.launcher = ()
    if getattr(args, "module", None):
        args.module += tail
    elif getattr(args, "command", None):
        args.command += tail
    else:
        args.launcher = tuple(tail[1:])
    return args


# The first matching class counts; other errors have the command's own code (1, `run`: 125).
EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (UsageError, 2),
    (NothingToConnect, 3),
    (Refused, 4),
)
# A job may exit with any of our codes, so `run` has 125 for all failures but usage errors.
RUN_EXIT_CODES = ((UsageError, 2),)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (by default the process's own) and return its exit code."""
    command, verbosity = None, 0
    try:
        args = parse(sys.argv[1:] if arguments is None else arguments)
        command, verbosity = BY_NAME[args.name], getattr(args, "verbosity", None) or 0
        code = _function(command)(args)
        sys.stdout.flush()  # a closed pipe must fail here, not while Python shuts down
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:  # noqa: BLE001 - the last resort: a message, not a traceback
        found = innermost(error)
        if isinstance(found, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 128 + signal.SIGPIPE
        return _explain(found, command, verbosity)
    return code


def innermost(error: BaseException) -> BaseException:
    """Unwrap the exception groups of one that structured concurrency raises."""
    inside: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    while len(inside) == 1:
        error = inside[0]
        inside = getattr(error, "exceptions", ())
    return error


def exit_code(error: BaseException, command: Command | None) -> int:
    """Return the exit code for an error."""
    runs = command is not None and command.name in ("run", "record")
    table = RUN_EXIT_CODES if runs else EXIT_CODES
    fallback = command.failure if command is not None else 1
    return next((code for kind, code in table if isinstance(error, kind)), fallback)


def _explain(error: BaseException, command: Command | None, verbosity: int) -> int:
    if verbosity > 1:
        print(printable("".join(traceback.format_exception(error))), file=sys.stderr, end="")
    if isinstance(error, DapMuxError):
        message = str(error)
    elif isinstance(error, OSError):
        message = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
    else:
        message = f"internal error: {type(error).__name__}: {error} (-vv prints a traceback)"
    print(f"{PROG}: {printable(message)}", file=sys.stderr)
    return exit_code(error, command)


def _function(command: Command) -> Callable[[Namespace], int]:
    module, _, name = command.call.partition(":")
    function = getattr(importlib.import_module(f"dap_mux.frontends.cli.{module}"), name)
    return cast("Callable[[Namespace], int]", function)
