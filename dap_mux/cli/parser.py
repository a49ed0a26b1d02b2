"""Parse command lines: argparse over the table of commands."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence

from dap_mux import __version__
from dap_mux.cli.commands import BY_NAME, COMMANDS
from dap_mux.cli.completion import SHELLS, PrintCompletion, name_files
from dap_mux.errors import UsageError

PROG = "dap-mux"


def parse(command_line: Sequence[str]) -> Namespace:
    """Parse a command line; like argparse, --help and mistakes end the process.

    Raises UsageError for a command that is not implemented yet.
    """
    arguments = list(command_line)
    if arguments and arguments[0] in BY_NAME and BY_NAME[arguments[0]].call is None:
        if {"-h", "--help"}.isdisjoint(arguments):
            raise UsageError(
                f"`dap-mux {arguments[0]}` is not implemented yet; planned for a later release"
            )
        arguments = [arguments[0], "--help"]
    if arguments[:1] == ["run"]:
        return _parse_run(arguments)
    return build_parser().parse_args(arguments)


def build_parser() -> ArgumentParser:
    """Build the parsers of all commands from the table."""
    parser = ArgumentParser(
        prog=PROG,
        description="One debug session for a distributed Python job: every rank is a thread.",
        epilog="See `dap-mux COMMAND --help` for details.",
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
    for command in COMMANDS:
        own = commands.add_parser(
            command.name,
            help=command.help,
            description=command.help[0].upper() + command.help[1:] + ".",
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.arguments(own)
        name_files(own)
    return parser


def _parse_run(arguments: list[str]) -> Namespace:
    """Handle the `--` of `run` here: argparse treats it differently in each Python release."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    args = build_parser().parse_args(arguments[:cut])
    tail = arguments[cut:]
    args.launcher = ()
    if args.module:
        args.module += tail
    elif args.command:
        args.command += tail
    else:
        args.launcher = tuple(tail[1:])
    return args
