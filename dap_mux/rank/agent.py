"""The agent's steps: listen, report that, wait for a debugger, run the program."""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
from contextlib import suppress
from dataclasses import fields

from dap_mux.rank.api import Setup, start
from dap_mux.rank.dial import CannotDial
from dap_mux.rank.environ import NoSuchPort, Place, place_of
from dap_mux.rank.in_process import CannotListen
from dap_mux.rank.options import OWN_FAILURE_CODE, USAGE_CODE
from dap_mux.rank.ready import say
from dap_mux.rank.runpy import run_module, run_script
from dap_mux.rank.starter import dying_of_ctrl_c


def run(options: argparse.Namespace) -> None:
    """Run to the program's end; its exceptions, SystemExit among them, pass through."""
    place = place_of(os.environ)
    interrupted = "was interrupted while it waited for a debugger"
    if not options.module:
        # Before a debugger can ask which file this rank runs, as debugpy itself does.
        sys.argv[:] = options.script
    with dying_of_ctrl_c(lambda: say(place, interrupted)):
        _start(options, place)
    _return_free_memory()
    if options.module:
        run_module(options.module[0], options.module[1:])
    else:
        run_script(options.script[0], options.script[1:])


def _return_free_memory() -> None:
    """Return what importing debugpy has left free to the system, before the program uses memory.

    3 % of a rank (measured). Only glibc does so; ctypes is imported: by debugpy.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _start(options: argparse.Namespace, place: Place) -> None:
    try:
        names = {each.name for each in fields(Setup)}
        start(Setup(**{name: value for name, value in vars(options).items() if name in names}))
    except CannotDial as error:
        say(place, f"has no debug session: {error}")
        sys.exit(OWN_FAILURE_CODE)
    except CannotListen as error:
        say(place, f"cannot listen for a debugger: {error}")
        sys.exit(OWN_FAILURE_CODE)
    except (NoSuchPort, ValueError) as error:
        say(place, f"cannot start: {error}")
        sys.exit(USAGE_CODE)
