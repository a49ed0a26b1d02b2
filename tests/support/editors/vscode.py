"""VS Code: debugSession.ts (events), debugModel.ts (rows), rawDebugSession.ts (simulated C)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.editors.base import Editor, Json, State


@dataclass(eq=False)
class _Row:
    """One thread of the call stack view."""

    name: str
    stopped: bool = False
    frames: list[Json] = field(default_factory=list)

    def clear(self, *, stopped: bool) -> None:
        self.stopped = stopped
        self.frames = []


class VSCodeModel(Editor):
    """What VS Code's call stack view and editor show."""

    client_id = "vscode"

    def __init__(self, breakpoints: Mapping[str, Sequence[int]] | None = None) -> None:
        super().__init__(breakpoints)
        self._rows: dict[int, _Row] = {}
        self._stops: list[Json] = []
        self._queue = StatusQueue()
        self._rest_of_stack: set[int] = set()
        self._last_continued: int | None = None
        self._may_pass_focus = False
        self._all_continued = True
        self._stopped_since_step = False
        self._threads_due = False

    @property
    def threads(self) -> dict[int, tuple[str, State]]:
        return {
            thread: (row.name, "stopped" if row.stopped else "running")
            for thread, row in self._rows.items()
        }

    @property
    def state(self) -> State:
        """The state of the session, which decides what F5 and F10 mean."""
        focused = self._rows.get(self.focus) if self.focus is not None else None
        if focused is not None:
            return "stopped" if focused.stopped else "running"
        return "stopped" if any(row.stopped for row in self._rows.values()) else "running"

    # Keys and buttons: `singleThread` is never sent

    def press_f5(self) -> list[Json]:
        return self._press("continue") if self.state == "stopped" else []

    def press_f10(self) -> list[Json]:
        return self._press("next") if self.state == "stopped" else []

    def press_row_button(self, thread: int, command: str) -> list[Json]:
        self._run(command, thread)
        return self._sent()

    def _press(self, command: str) -> list[Json]:
        thread = self.focus if self.focus is not None else next(iter(self._rows), None)
        return [] if thread is None else self.press_row_button(thread, command)

    def _run(self, command: str, thread: int) -> None:
        self._stopped_since_step = False

        def answered(response: Json) -> None:
            every = False
            if command == "continue":
                said = response.get("body", {}).get("allThreadsContinued")
                self._all_continued = self._all_continued if said is None else said
                every = self._all_continued
            if command != "pause" and not self._stopped_since_step:
                self._continued({"threadId": thread, "allThreadsContinued": every})

        self._ask(command, {"threadId": thread}, answered)

    # Timers

    def tick_100ms_after_thread_started(self) -> list[Json]:
        """The one `threads` for all threads that started in the last 100 ms."""
        if self._threads_due:
            self._threads_due = False
            self._ask_threads()
        return self._sent()

    def tick_420ms_after_stop(self) -> list[Json]:
        """The rest of each stack whose top has arrived."""
        for thread in sorted(self._rest_of_stack):
            row = self._rows.get(thread)
            if row is not None and row.stopped:
                self._ask_stack(thread, row, levels=19)
        self._rest_of_stack.clear()
        return self._sent()

    def tick_800ms_after_step(self) -> list[Json]:
        """Pass the focus on from a thread that was continued and has not stopped again."""
        if self._may_pass_focus and any(row.stopped for row in self._rows.values()):
            if self._last_continued is None:
                if self.state != "stopped":
                    self._focus_on_any()
            elif self.focus == self._last_continued and not self._is_stopped(self.focus):
                oldest = self._stops[0].get("threadId") if self._stops else None
                self._focus_on(oldest) if oldest in self._rows else self._focus_on_any()
        self._may_pass_focus = False
        return self._sent()

    def _is_stopped(self, thread: int) -> bool:
        """Return False also for one whose row has gone, as its rank may have meanwhile."""
        row = self._rows.get(thread)
        return row is not None and row.stopped

    # Events

    def _on_stopped(self, body: Json) -> None:
        self._stopped_since_step = True
        self._may_pass_focus = False
        self._stops.append(body)
        lookup = self._queue.look_up()

        def looked_up(response: Json) -> None:
            self._update_rows(response, body)
            threads = [body["threadId"]] if "threadId" in body else list(self._rows)
            for thread, token in self._queue.handle(lookup, threads):
                self._show_stop(body, thread, token)

        self._ask("threads", None, looked_up)

    def _on_continued(self, body: Json) -> None:
        self._all_continued = body.get("allThreadsContinued") is not False
        self._continued(body)

    def _on_thread(self, body: Json) -> None:
        thread = body["threadId"]
        self._queue.cancel(thread)
        if body["reason"] == "started":
            self._threads_due = True
        elif body["reason"] == "exited":
            self._rows.pop(thread, None)
            self._may_pass_focus = False
            if self.focus == thread:
                self._focus_on_any()

    def _continued(self, body: Json) -> None:
        one = body["threadId"] if body.get("allThreadsContinued") is False else None
        self._queue.cancel(one)
        self._stops = [s for s in self._stops if one is not None and s.get("threadId") != one]
        self._last_continued = one
        self._may_pass_focus = True
        self._rest_of_stack.clear()
        for thread, row in self._rows.items():
            if one in (None, thread):
                row.clear(stopped=False)
        if one in (None, self.focus):
            self.arrow = None

    # Stops

    def _show_stop(self, body: Json, thread: int, token: Token) -> None:
        focus_is_gone = self.focus is not None and self.focus not in self._rows
        if focus_is_gone:
            self._focus_on_any()
        row = self._rows.get(thread)
        if row is None or not row.stopped:
            return

        def shown(response: Json) -> None:
            if token.cancelled:
                return
            row.frames.extend(response["body"]["stackFrames"])
            self._rest_of_stack.add(thread)
            if row.frames and (focus_is_gone or not body.get("preserveFocusHint")):
                self._focus_on(thread)

        self._ask("stackTrace", self._stack_arguments(thread, row, 1), shown)

    def _update_rows(self, response: Json, stop: Json | None) -> None:
        named = {one["id"]: one["name"] for one in response["body"]["threads"]}
        old, self._rows = self._rows, {}  # shown in the order of the response
        for thread, name in named.items():
            row = self._rows[thread] = old.get(thread, _Row(name))
            row.name = name
        if stop is None:
            return
        for thread, row in self._rows.items():
            if stop.get("allThreadsStopped") or thread == stop.get("threadId"):
                row.clear(stopped=True)

    # Focus

    def _focus_on_any(self) -> None:
        stopped = (thread for thread, row in self._rows.items() if row.stopped)
        self._focus_on(next(stopped, next(iter(self._rows), None)))

    def _focus_on(self, thread: int | None) -> None:
        self.focus, self.arrow = thread, None
        row = self._rows.get(thread) if thread is not None else None
        if thread is not None and row is not None and row.frames:
            self.arrow = (thread, row.frames[0]["line"])
            self._ask("scopes", {"frameId": row.frames[0]["id"]}, self._ask_variables)

    # Requests

    def _ask_variables(self, response: Json) -> None:
        """The variables view unfolds the first scope that is not expensive."""
        scopes = [one for one in response["body"]["scopes"] if not one.get("expensive")]
        for scope in scopes[:1]:
            self._ask("variables", {"variablesReference": scope["variablesReference"]})

    def _ask_threads(self) -> None:
        self._ask("threads", None, lambda response: self._update_rows(response, None))

    def _ask_stack(self, thread: int, row: _Row, levels: int) -> None:
        def more(response: Json) -> None:
            row.frames.extend(response["body"]["stackFrames"])

        self._ask("stackTrace", self._stack_arguments(thread, row, levels), more)

    def _stack_arguments(self, thread: int, row: _Row, levels: int) -> Json:
        if not self.capabilities.get("supportsDelayedStackTraceLoading"):
            levels = 20
        return {"threadId": thread, "startFrame": len(row.frames), "levels": levels}

    def _configure(self) -> None:
        """All breakpoints at once; then `configurationDone`; then `threads`."""
        left = len(self.breakpoints) + 2

        def one_answered(response: Json) -> None:
            nonlocal left
            left -= 1
            if not left:
                self._ask("configurationDone", None, lambda _: self._ask_threads())

        self._ask_breakpoints(one_answered)
        self._ask("setFunctionBreakpoints", {"breakpoints": []}, one_answered)
        self._ask("setExceptionBreakpoints", self._exceptions(), one_answered)

    def _exceptions(self) -> Json:
        if not self.capabilities.get("supportsExceptionFilterOptions"):
            return {"filters": self._default_filters()}
        options = [{"filterId": name} for name in self._default_filters()]
        return {"filters": [], "filterOptions": options}

    def _introduction(self) -> dict[str, Any]:
        return {
            "clientID": self.client_id,
            "clientName": "Visual Studio Code",
            "adapterID": "debugpy",
            "pathFormat": "path",
            "linesStartAt1": True,
            "columnsStartAt1": True,
            "supportsVariableType": True,
            "supportsVariablePaging": True,
            "supportsRunInTerminalRequest": True,
            "supportsProgressReporting": True,
            "supportsInvalidatedEvent": True,
            "supportsMemoryReferences": True,
            "supportsArgsCanBeInterpretedByShell": True,
            "supportsStartDebuggingRequest": True,
        }


# VS Code's ThreadStatusScheduler: a newer state of a thread cancels what its stop set going.


@dataclass(eq=False)
class Token:
    """The handling of one stop of one thread."""

    cancelled: bool = False


Lookup = set[int | None]
"""What was cancelled while a stop's `threads` was under way; None: everything."""


class StatusQueue:
    """Which stops are being looked up (`threads` is asked) or handled (the stack is asked)."""

    def __init__(self) -> None:
        self._handling: dict[int, Token] = {}
        self._looking_up: list[Lookup] = []

    def look_up(self) -> Lookup:
        """A stop has come; its `threads` is about to be asked."""
        cancelled: Lookup = set()
        self._looking_up.append(cancelled)
        return cancelled

    def handle(self, cancelled: Lookup, threads: Sequence[int]) -> Iterator[tuple[int, Token]]:
        """Its `threads` is answered: yield those of its threads that nothing newer happened to."""
        older = [id(one) for one in self._looking_up].index(id(cancelled))
        for lookup in self._looking_up[:older]:
            lookup.update(threads)
        del self._looking_up[older]
        for thread in threads:
            if not cancelled & {None, thread}:
                self._cancel_handling(thread)
                self._handling[thread] = token = Token()
                yield thread, token

    def cancel(self, thread: int | None) -> None:
        """Cancel what is under way for `thread` (None: for any)."""
        for one in list(self._handling) if thread is None else [thread]:
            self._cancel_handling(one)
        for lookup in self._looking_up:
            lookup.add(thread)

    def _cancel_handling(self, thread: int) -> None:
        if token := self._handling.pop(thread, None):
            token.cancelled = True
