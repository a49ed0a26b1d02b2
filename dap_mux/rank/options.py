"""The agent's command line, and the exit codes that are its own."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from dap_mux.rank.environ import DEFAULT_BASE_PORT

USAGE_CODE = 2
TIMEOUT_CODE = 124
"""No debugger attached in time; `timeout(1)` uses the same code."""
OWN_FAILURE_CODE = 125
ON_TIMEOUT = ("exit", "continue")

EXIT_CODES = (
    f"Exit codes: the program's own; {USAGE_CODE} wrong usage; {TIMEOUT_CODE} no debugger "
    f"attached in time; {OWN_FAILURE_CODE} debugpy could not listen."
)


def options_of(words: list[str] | None = None) -> argparse.Namespace:
    """The command line. Raises SystemExit(2) with a usage message."""
    parser = argparse.ArgumentParser(
        prog="python -m dap_mux.rank",
        usage="%(prog)s [options] script.py ARGS | -m module ARGS",
        description="Run a Python program as one rank of a job, under debugpy.",
        epilog=EXIT_CODES,
        allow_abbrev=False,
    )
    _add_waiting(parser)
    _add_address(parser)
    program = parser.add_argument_group("program")
    program.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module")
    program.add_argument("script", nargs=argparse.REMAINDER, help="run a script")
    options = parser.parse_args(words)
    if not (options.module or options.script):
        parser.error("give a script, or -m and a module")
    if options.script and not Path(options.script[0]).exists():
        parser.error(f"can't open file {options.script[0]!r}: no such file in {Path.cwd()}")
    return options


def _add_waiting(parser: argparse.ArgumentParser) -> None:
    wait = parser.add_mutually_exclusive_group()
    wait.add_argument(
        "--wait",
        action="store_true",
        default=True,
        help="wait for a debugger before starting the program (default)",
    )
    wait.add_argument(
        "--no-wait", dest="wait", action="store_false", help="start the program at once"
    )
    parser.add_argument(
        "--stop-on-entry",
        action="store_true",
        help="stop at the program's first line, where a debugger is attached",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="S",
        default=os.environ.get("DEBUG_TIMEOUT") or None,
        help="wait at most S seconds (default: DEBUG_TIMEOUT, else forever)",
    )
    parser.add_argument(
        "--on-timeout",
        choices=ON_TIMEOUT,
        default=os.environ.get("DEBUG_ON_TIMEOUT") or "exit",
        help=f"then exit with {TIMEOUT_CODE} (default), or run without a debugger",
    )


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", metavar="H", default="127.0.0.1", help="default: %(default)s")
    port = parser.add_mutually_exclusive_group()
    port.add_argument("--port", metavar="P", type=_port, help="this rank's port; 0: any")
    port.add_argument(
        "--base-port",
        metavar="B",
        type=_port,
        help="rank 0's port; rank r takes B + r "
        f"(default: the port that DEBUG_PORT_NAME names, else {DEFAULT_BASE_PORT})",
    )
    parser.add_argument(
        "--ready-file",
        metavar="F",
        type=Path,
        help="write this rank's record to this file once it listens",
    )


def seconds(text: str) -> float:
    """A number of seconds, not negative. Raises argparse's ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return number


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0-65535)")
    return int(text)
