"""dape (Emacs): the event handlers and commands of dape.el."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.editors.base import Editor, Json, State

Status = Literal["stopped", "running", "exited"]


@dataclass(eq=False)
class _Thread:
    """What dape remembers of a thread; None: never heard of its state."""

    name: str
    status: Status | None = None
    frames: list[Json] = field(default_factory=list)


class DapeModel(Editor):
    """What dape's arrow, threads buffer and mode line show; `focus` is its selected thread."""

    client_id = "dape"

    def __init__(self, breakpoints: Mapping[str, Sequence[int]] | None = None) -> None:
        super().__init__(breakpoints)
        self.mode_line = ""
        self._threads: dict[int, _Thread] = {}
        self._handle = 0
        self._applied_handle = 0

    @property
    def threads(self) -> dict[int, tuple[str, State]]:
        return {
            thread: (one.name, "stopped" if one.status == "stopped" else "running")
            for thread, one in self._threads.items()
        }

    # Commands: all act on the selected thread, as long as any thread is stopped

    def press_f5(self) -> list[Json]:
        def answered(response: Json) -> None:
            every = response.get("body", {}).get("allThreadsContinued", True)
            self._on_continued({"threadId": thread, "allThreadsContinued": every})

        thread = self.focus
        if self._any_stopped():
            self._ask("continue", {"threadId": thread}, answered)
        return self._sent()

    def press_f10(self) -> list[Json]:
        return self._step("next")

    def press_row_button(self, thread: int, command: str) -> list[Json]:
        """Rows have no buttons: select the thread, then give the command."""
        sent = self.select_thread(thread)
        return sent + (self.press_f5() if command == "continue" else self._step(command))

    def select_thread(self, thread: int) -> list[Json]:
        """`dape-select-thread`."""
        self.focus = thread
        self._show()
        return self._sent()

    def _step(self, command: str) -> list[Json]:
        if self._any_stopped():
            self._ask(command, {"threadId": self.focus}, lambda _: self._on_continued({}))
        return self._sent()

    def _any_stopped(self) -> bool:
        stopped = any(one.status == "stopped" for one in self._threads.values())
        if not stopped:
            self.notices.append("No stopped threads")
        return stopped

    # Events

    def _on_stopped(self, body: Json) -> None:
        thread, every = body.get("threadId"), body.get("allThreadsStopped") is True
        self.mode_line = "stopped"
        self._select(thread, force=True)
        handle = self._next_handle()

        def updated(response: Json) -> None:
            self._update_threads(response)
            self._set_status(thread, "stopped", handle, every=every)
            for one in self._threads.values():
                one.frames = []
            self._show()

        self._ask("threads", None, updated)

    def _on_continued(self, body: Json) -> None:
        thread = body.get("threadId")
        every = body.get("allThreadsContinued", True) is True
        self.mode_line = "running"
        self.arrow = None
        self._select(thread)
        self._set_status(thread, "running", self._next_handle(), every=every)

    def _on_thread(self, body: Json) -> None:
        thread, exited = body["threadId"], body["reason"] == "exited"
        self._select(thread)
        if body["reason"] == "started":
            self.mode_line = "running"
        handle = self._next_handle()

        def updated(response: Json) -> None:
            self._update_threads(response)
            self._set_status(thread, "exited" if exited else "running", handle)

        self._ask("threads", None, updated)

    # State

    def _select(self, thread: int | None, *, force: bool = False) -> None:
        if thread is not None and (force or self.focus is None):
            self.focus = thread

    def _next_handle(self) -> int:
        self._handle += 1
        return self._handle

    def _set_status(
        self, thread: int | None, status: Status, handle: int, *, every: bool = False
    ) -> None:
        """Ignored when a later event has set a status meanwhile, of whichever thread."""
        if handle <= self._applied_handle:
            return
        self._applied_handle = handle
        for number, one in self._threads.items():
            if every or number == thread:
                one.status = status

    def _update_threads(self, response: Json) -> None:
        old, self._threads = self._threads, {}
        for one in response["body"]["threads"]:
            known = self._threads[one["id"]] = old.get(one["id"], _Thread(""))
            known.name = one["name"]
        self._select(next(iter(self._threads), None))

    # Showing

    def _show(self) -> None:
        thread = self.focus
        known = self._threads.get(thread) if thread is not None else None
        if thread is None or known is None or known.status != "stopped":
            return
        if known.frames:
            self._display(thread, known)
            return

        def fetched(response: Json) -> None:
            known.frames = response["body"]["stackFrames"]
            if self.focus == thread:
                self._display(thread, known)

        self._ask("stackTrace", self._stack_arguments(thread), fetched)

    def _stack_arguments(self, thread: int) -> Json:
        if self.capabilities.get("supportsDelayedStackTraceLoading"):
            return {"threadId": thread, "startFrame": 0, "levels": 1}
        return {"threadId": thread}

    def _display(self, thread: int, known: _Thread) -> None:
        self.arrow = None
        if known.frames and known.status == "stopped":
            self.arrow = (thread, known.frames[0]["line"])
            self._ask("scopes", {"frameId": known.frames[0]["id"]})

    # The start

    def _configure(self) -> None:
        """Exception filters, then breakpoints, then `configurationDone`, each answered first."""
        left = len(self.breakpoints)

        def one_answered(response: Json) -> None:
            nonlocal left
            left -= 1
            if not left:
                self._ask("configurationDone")

        def filters_answered(response: Json) -> None:
            self._ask_breakpoints(one_answered)
            if not left:
                self._ask("configurationDone")

        filters = {"filters": self._default_filters()}
        self._ask("setExceptionBreakpoints", filters, filters_answered)

    def _introduction(self) -> dict[str, Any]:
        return {
            "clientID": self.client_id,
            "adapterID": "debugpy",
            "pathFormat": "path",
            "linesStartAt1": True,
            "columnsStartAt1": True,
            "supportsRunInTerminalRequest": True,
            "supportsStartDebuggingRequest": True,
        }
