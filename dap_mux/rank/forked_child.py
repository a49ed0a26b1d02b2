"""A child that a rank forks, a DataLoader's worker say: it has debugpy's hooks, and no debugpy.

None of debugpy's threads is in it, so a breakpoint that it ran into would hold it for ever
(measured with debugpy 1.8.22; `subProcess=False` does not help). It runs as without a debugger.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress

from dap_mux.rank.breakpoint_hook import give_breakpoint_back


def run_on_without_debugger() -> None:
    """Take debugpy's hooks out of this process. Private interfaces of debugpy."""
    give_breakpoint_back()
    threading.settrace(None)
    with suppress(Exception):
        if sys.version_info >= (3, 12) and sys.monitoring.get_tool(sys.monitoring.DEBUGGER_ID):
            _stop_monitoring()
        else:
            sys.modules["pydevd_tracing"].SetTrace(None)


def _stop_monitoring() -> None:
    """Without callbacks, what is still asked for code that was seen before leads nowhere."""
    if sys.version_info >= (3, 12):
        debugger, events = sys.monitoring.DEBUGGER_ID, sys.monitoring.events
        sys.monitoring.set_events(debugger, events.NO_EVENTS)
        for name in vars(events):
            if name.isupper() and getattr(events, name):
                with suppress(ValueError):  # some of them are no events of their own
                    sys.monitoring.register_callback(debugger, getattr(events, name), None)
