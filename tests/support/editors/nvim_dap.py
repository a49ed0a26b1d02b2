"""nvim-dap: session.lua (events, steps), entity.lua (actions on a thread), dap.lua (continue)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.editors.base import Editor, Json, State, Then


@dataclass(eq=False)
class _Thread:
    """What nvim-dap remembers of a thread; None: never heard whether it stopped."""

    name: str
    stopped: bool | None = None
    frames: list[Json] = field(default_factory=list)


class NvimDapModel(Editor):
    """What nvim-dap's signs and widgets show; `focus` is its `stopped_thread_id`."""

    client_id = "neovim"

    def __init__(self, breakpoints: Mapping[str, Sequence[int]] | None = None) -> None:
        super().__init__(breakpoints)
        self._threads: dict[int, _Thread] = {}
        self._dirty = False
        self._undeterred: set[int] = set()  # requests after whose failure it goes on

    @property
    def threads(self) -> dict[int, tuple[str, State]]:
        return {
            thread: (one.name, "stopped" if one.stopped else "running")
            for thread, one in self._threads.items()
        }

    # Keys and widgets

    def press_f5(self) -> list[Json]:
        if self.focus is None:
            self.notices.append("Session active, but not stopped at breakpoint")
            return []
        return self._step("continue")

    def press_f10(self) -> list[Json]:
        return self._step("next")

    def press_row_button(self, thread: int, command: str) -> list[Json]:
        if command == "pause":
            self._pause(thread)
            return self._sent()
        if self.focus == thread:
            return self._step(command)
        self._threads[thread].stopped = False
        self._ask("continue", {"threadId": thread})
        return self._sent()

    def expand(self, thread: int) -> list[Json]:
        """Show the frames of a row: one that runs is paused for it, and runs on afterwards."""
        known = self._threads[thread]
        runs = not known.stopped

        def fetched(response: Json) -> None:
            if response["success"]:
                known.frames = response["body"]["stackFrames"]
            if runs:
                self._ask("continue", {"threadId": thread}, resumed)

        def resumed(response: Json) -> None:
            known.stopped = False

        def ask_stack() -> None:
            self._ask_anyhow("stackTrace", {"threadId": thread}, fetched)

        if runs:
            self._pause(thread, ask_stack)
        else:
            ask_stack()
        return self._sent()

    def frames(self, thread: int) -> list[Json]:
        """What is shown below a row."""
        return self._threads[thread].frames

    def _pause(self, thread: int, then: Callable[[], None] = lambda: None) -> None:
        def answered(response: Json) -> None:
            if response["success"] and thread in self._threads:
                self._threads[thread].stopped = True  # before any `stopped` has come
            then()

        self._ask_anyhow("pause", {"threadId": thread}, answered)

    def _ask_anyhow(self, command: str, arguments: Json, then: Then) -> None:
        """Ask something, and go on whatever the answer is."""
        self._ask(command, arguments, then)
        self._undeterred.add(self.requests_sent)

    def _answered(self, response: Json) -> None:
        number = response["request_seq"]
        if response["success"] or number not in self._undeterred:
            super()._answered(response)
        else:
            self.notices.append(response.get("message", ""))
            self._waiting.pop(number)(response)
        self._undeterred.discard(number)

    def _step(self, command: str) -> list[Json]:
        stopped = [thread for thread, one in self._threads.items() if one.stopped]
        if self.focus is None and len(stopped) != 1:
            self.notices.append("Select thread to step in>" if stopped else "No stopped threads")
            return []
        thread = stopped[0] if self.focus is None else self.focus
        self.focus, self.arrow = None, None
        if thread in self._threads:
            self._threads[thread].stopped = False
        self._ask(command, {"threadId": thread, "granularity": "statement"})
        return self._sent()

    # Events

    def _on_stopped(self, body: Json) -> None:
        thread = body.get("threadId")
        if not self._dirty and (thread is None or thread in self._threads):
            self._apply_stop(body)
            return
        placeholder = _Thread("Unknown", stopped=True)
        if thread is not None:
            self._threads[thread] = placeholder

        def updated(response: Json) -> None:
            self._update_threads(response)
            if placeholder.stopped:
                self._apply_stop(body)

        self._ask("threads", None, updated)

    def _on_continued(self, body: Json) -> None:
        one = body["threadId"] if body.get("allThreadsContinued") is False else None
        for thread, known in self._threads.items():
            if one in (None, thread):
                known.stopped = False
        if one is None or one == self.focus:
            self.focus, self.arrow = None, None

    def _on_thread(self, body: Json) -> None:
        thread = body["threadId"]
        if body["reason"] == "exited":
            self._threads.pop(thread, None)  # `focus` stays, even on this thread
        elif thread not in self._threads:
            self._dirty = True
            self._threads[thread] = _Thread("Unknown")
        else:
            self._threads[thread].stopped = False
            if self.focus == thread:
                self.focus = None

    def _update_threads(self, response: Json) -> None:
        old, self._threads = self._threads, {}
        for one in response["body"]["threads"]:
            known = old.get(one["id"], _Thread(""))
            self._threads[one["id"]] = _Thread(one["name"], known.stopped, known.frames)
        self._dirty = False

    # Stops

    def _apply_stop(self, body: Json) -> None:
        thread, every = body.get("threadId"), bool(body.get("allThreadsStopped"))
        jump = body["reason"] != "pause" or every
        if jump and self.focus is not None and self.focus != thread:
            self._ask("continue", {"threadId": thread})  # `auto_continue_if_many_stopped`
            return
        if jump:
            self.focus = thread
        for number, one in self._threads.items():
            if every or number == thread:
                one.stopped = True
        if thread in self._threads:  # else it has left since
            self._ask_stack(thread, body, jump=jump)

    def _ask_stack(self, thread: int, body: Json, *, jump: bool) -> None:
        known = self._threads[thread]

        def fetched(response: Json) -> None:
            if known.stopped is False:
                return
            known.frames = response["body"]["stackFrames"]
            sourced = (frame for frame in known.frames if frame.get("source"))
            top = next(sourced, known.frames[0] if known.frames else None)
            if jump and top is not None:
                self._jump(thread, top, body)

        self._ask("stackTrace", {"startFrame": 0, "threadId": thread}, fetched)

    def _jump(self, thread: int, frame: Json, body: Json) -> None:
        self.arrow = None
        source = frame.get("source") or {}
        number = source.get("sourceReference")
        if body.get("preserveFocusHint") or not source:
            self._ask_scopes(frame)
        elif number:
            self._ask_anyhow(
                "source",
                {"source": source, "sourceReference": number},
                lambda response: self._arrive(thread, frame, body, found=response["success"]),
            )
        else:
            self._arrive(thread, frame, body, found=True)

    def _arrive(self, thread: int, frame: Json, body: Json, *, found: bool) -> None:
        """The buffer is there: the scopes are asked for after what is said of an exception."""
        if found:
            self.arrow = (thread, frame["line"])
        tells = self.capabilities.get("supportsExceptionInfoRequest")
        if found and tells and body["reason"] == "exception":
            asked = {"threadId": thread}
            self._ask_anyhow("exceptionInfo", asked, lambda _: self._ask_scopes(frame))
        else:
            self._ask_scopes(frame)

    def _ask_scopes(self, frame: Json) -> None:
        self._ask("scopes", {"frameId": frame["id"]}, self._ask_variables)

    def _ask_variables(self, response: Json) -> None:
        for scope in response["body"]["scopes"]:
            if not scope.get("expensive"):
                reference = scope["variablesReference"]
                self._ask("variables", {"variablesReference": reference})

    # The start

    def _configure(self) -> None:
        """Breakpoints, then exception filters, then `configurationDone`, each answered first."""
        left = len(self.breakpoints)

        def one_answered(response: Json) -> None:
            nonlocal left
            left -= 1
            if not left:
                self._configure_exceptions()

        self._ask_breakpoints(one_answered)
        if not left:
            self._configure_exceptions()

    def _configure_exceptions(self) -> None:
        filters = {"filters": self._default_filters()}
        self._ask("setExceptionBreakpoints", filters, lambda _: self._ask("configurationDone"))

    def _introduction(self) -> dict[str, Any]:
        return {
            "clientID": self.client_id,
            "clientName": "neovim",
            "adapterID": "nvim-dap",
            "pathFormat": "path",
            "linesStartAt1": True,
            "columnsStartAt1": True,
            "supportsRunInTerminalRequest": True,
            "supportsVariableType": True,
            "supportsProgressReporting": True,
            "supportsStartDebuggingRequest": True,
            "locale": "en_US.UTF-8",
        }
