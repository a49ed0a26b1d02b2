"""What the agent does, in order: listen, say so, wait, run the program."""

from __future__ import annotations

import argparse
import os
import sys

from dap_mux.rank.environ import Place, place_of
from dap_mux.rank.hide import hide_our_frames
from dap_mux.rank.hold import stop_at_first_line, wait_for_debugger
from dap_mux.rank.listen import CannotListen, candidate_ports, listen
from dap_mux.rank.options import OWN_FAILURE_CODE, TIMEOUT_CODE
from dap_mux.rank.ready import LOOPBACK, record_of, say, write_ready_file
from dap_mux.rank.runpy import run_module, run_script


def run(options: argparse.Namespace) -> None:
    """Run to the program's end; its exceptions, SystemExit among them, pass through."""
    place = place_of(os.environ)
    _start_debugger(options, place)
    if options.wait:
        _wait(options, place)
    if options.stop_on_entry:
        stop_at_first_line()
    if options.module:
        run_module(options.module[0], options.module[1:])
    else:
        run_script(options.script[0], options.script[1:])


def _start_debugger(options: argparse.Namespace, place: Place) -> None:
    first = options.port if options.port is not None else options.base_port + (place.rank or 0)
    try:
        host, port = listen(options.host, candidate_ports(first, place.world_size or 1))
    except CannotListen as error:
        say(place, f"cannot listen for a debugger: {error}")
        sys.exit(OWN_FAILURE_CODE)
    hide_our_frames()
    # Only now: who connects to an adapter that is still starting can kill the rank (measured).
    if options.ready_file is not None:
        write_ready_file(options.ready_file, record_of(place, host, port))
    say(place, f"listens for a debugger on {host}:{port} (pid {os.getpid()})")
    if host not in LOOPBACK:
        say(place, f"lets anybody who reaches {host}:{port} run code: debugpy asks no password")


def _wait(options: argparse.Namespace, place: Place) -> None:
    try:
        if wait_for_debugger(options.timeout):
            return
    except KeyboardInterrupt:
        sys.excepthook = lambda *_: say(place, "was interrupted while it waited for a debugger")
        raise  # so that the process dies of SIGINT, as launchers expect
    late = f"had no debugger attached within {options.timeout:g} s"
    if options.on_timeout == "continue":
        say(place, f"{late}; it runs on without one")
        return
    say(place, f"{late}; it exits (--on-timeout continue would run it without one)")
    sys.exit(TIMEOUT_CODE)
