"""Tells when a thread comes to a line of a file. There is no debugger in the rank meanwhile."""

from __future__ import annotations

import os
import sys
import threading
from dis import findlinestarts
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable
    from types import CodeType, FrameType

MONITORING: Any = getattr(sys, "monitoring", None)
TOOL = 4
"""Of `sys.monitoring`'s tools, one that no known debugger, profiler or coverage takes."""


class Line:
    """From `begin` to `end`. `place`: `FILE:LINE`; FILE is a path, or the end of one.

    Python 3.12 and newer watch the functions of that file alone; before, each call of a function
    in any file costs a call of ours.
    """

    def __init__(self, place: str, reached: Callable[[FrameType], object]) -> None:
        path, _, line = place.rpartition(":")
        self._end, self._line = os.path.normpath(path), int(line)
        self._reached = reached
        self._known: dict[CodeType, bool] = {}

    def begin(self) -> None:
        """Watch this thread and those that begin later, frames that run already as well."""
        running = []
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
        while frame is not None:
            running += [frame] if self._is_there(frame.f_code) else []
            frame = frame.f_back
        if MONITORING is not None:
            events = MONITORING.events
            MONITORING.use_tool_id(TOOL, "dap-mux")
            MONITORING.register_callback(TOOL, events.PY_START, self._begins)
            MONITORING.register_callback(TOOL, events.LINE, self._comes)
            MONITORING.set_events(TOOL, events.PY_START)
            for each in running:
                MONITORING.set_local_events(TOOL, each.f_code, events.LINE)
            return
        for each in running:
            each.f_trace = self._traces
        threading.settrace(self._calls)
        _set_trace(self._calls)

    def end(self) -> None:
        """Watch no more."""
        if MONITORING is not None:
            MONITORING.set_events(TOOL, 0)
            for event in (MONITORING.events.PY_START, MONITORING.events.LINE):
                MONITORING.register_callback(TOOL, event, None)  # local events stay
            MONITORING.free_tool_id(TOOL)
            return
        threading.settrace(None)
        _set_trace(None)

    def _is_there(self, code: CodeType) -> bool:
        """Whether the line is in this code."""
        if code not in self._known:
            path = code.co_filename
            lines = findlinestarts(code) if self._is_file(path) else ()
            self._known[code] = any(line == self._line for _, line in lines)
        return self._known[code]

    def _is_file(self, path: str) -> bool:
        return path == self._end or path.endswith(os.sep + self._end)

    def _begins(self, code: CodeType, _: int) -> Any:
        if self._is_there(code):
            MONITORING.set_local_events(TOOL, code, MONITORING.events.LINE)
        return MONITORING.DISABLE

    def _comes(self, _: CodeType, line: int) -> Any:
        if line != self._line:
            return MONITORING.DISABLE
        self._reached(sys._getframe(1))  # noqa: SLF001
        return None

    def _calls(self, frame: FrameType, event: str, _: Any) -> Any:
        return self._traces if event == "call" and self._is_there(frame.f_code) else None

    def _traces(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line" and frame.f_lineno == self._line:
            self._reached(frame)
        return self._traces


def _set_trace(function: Any) -> None:
    """Call `sys.settrace`; debugpy's own, which replaces it, prints a warning."""
    debugpys = getattr(sys.modules.get("pydevd_tracing"), "TracingFunctionHolder", None)
    set_trace = getattr(debugpys, "_original_tracing", None) or sys.settrace
    set_trace(function)
