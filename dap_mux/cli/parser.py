"""Words to a namespace: argparse over the table of commands."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence

from dap_mux import __version__
from dap_mux.cli.commands import BY_NAME, COMMANDS
from dap_mux.cli.completion import SHELLS, PrintCompletion, name_files
from dap_mux.errors import UsageError

PROG = "dap-mux"


def parse(words: Sequence[str]) -> Namespace:
    """Understand a command line; --help and mistakes end the process, as is argparse's way.

    Raises UsageError for a command that is not built yet.
    """
    words = list(words)
    if words and words[0] in BY_NAME and BY_NAME[words[0]].call is None:
        if {"-h", "--help"}.isdisjoint(words):
            raise UsageError(
                f"`dap-mux {words[0]}` is not built yet; it comes with a later release"
            )
        words = [words[0], "--help"]
    if words[:1] == ["run"]:
        return _parse_run(words)
    return build_parser().parse_args(words)


def build_parser() -> ArgumentParser:
    """Build the whole tree of parsers from the table."""
    parser = ArgumentParser(
        prog=PROG,
        description="One debug session for a distributed Python job: every rank a thread.",
        epilog="`dap-mux COMMAND --help` says more.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROG} {__version__}")
    parser.add_argument(
        "--print-completion",
        action=PrintCompletion,
        choices=SHELLS,
        help="print the script that completes these words in a shell",
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


def _parse_run(words: list[str]) -> Namespace:
    """`run` may hold `--`, which Python's releases treat differently: argparse never sees it."""
    cut = words.index("--") if "--" in words else len(words)
    args = build_parser().parse_args(words[:cut])
    tail = words[cut:]
    args.launcher = ()
    if args.module:
        args.module += tail
    elif args.command:
        args.command += tail
    else:
        args.launcher = tuple(tail[1:])
    return args
