"""The entry point: run a command, and turn every failure into a message and an exit code."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import cast

from dap_mux.frontends.cli.commands import BY_NAME, Command
from dap_mux.frontends.cli.parser import PROG, parse
from dap_mux.pure.errors import DapMuxError, NothingToConnect, Refused, UsageError
from dap_mux.pure.printable import printable

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
    table = RUN_EXIT_CODES if command is not None and command.name == "run" else EXIT_CODES
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
