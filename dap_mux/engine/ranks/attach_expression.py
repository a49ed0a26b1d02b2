"""What is evaluated in every rank before it runs on: its patches, in one message.

A message of its own costs each rank 2 ms of CPU while many attach (measured). Frameless evaluates
share pydevd's own globals: nothing here may leave a name behind.
"""

from __future__ import annotations

from typing import Final

from dap_mux.engine.injected_sources import InjectedSources, call

PROGRAM_OVER: Final = "dap-mux: the program is over"
"""The output, as telemetry, by which a patched rank announces the end of its program."""

# multiprocessing's own helper process runs no line of the user's: it is no worker.
IS_TRACKER: Final = (
    "'multiprocessing.resource_tracker' in"
    " ' '.join(getattr(__import__('sys'), 'orig_argv', None) or __import__('sys').argv)"
)
YES: Final = "True"


def attach_expression(
    injected: InjectedSources, *, debug_children: bool, user_threads: bool = False
) -> str:
    """Return what applies the patches; see `injected.attach.attach` for its value.

    One expression, for two that are evaluated without a frame may run at once, in two threads.
    """
    debugger = "__import__('pydevd').get_global_debugger()"
    arguments = f"{debug_children}, {PROGRAM_OVER!r}, {user_threads}"
    value = f"own['attach']({debugger}, own['sent'], {arguments})"
    return injected.bundles["attach"].bring(value)


def confirmation(count: int) -> str:
    """Return what tells a patched rank that so many bytes of its output have come."""
    return f"dapMuxMark {count}"


def leave_children_alone(injected: InjectedSources) -> str:
    """Return what keeps child processes out of the debugger: else they would wait for one."""
    return call(injected["child_processes"], "leave_children_alone")
