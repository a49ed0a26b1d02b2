"""What the editor models share: requests with continuations, and the start of a session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

Json = dict[str, Any]
Then = Callable[[Json], None]
"""Called with the whole response."""

State = Literal["stopped", "running"]


class Editor(ABC):
    """A debug client without a user interface; `receive` and `press_...` return its requests.

    `focus` is the thread its commands act on, `arrow` the (thread, line) that it highlights,
    `notices` what it tells the user, `requests_sent` counts everything it asked.
    """

    client_id: str

    def __init__(self, breakpoints: Mapping[str, Sequence[int]] | None = None) -> None:
        self.focus: int | None = None
        self.arrow: tuple[int, int] | None = None
        self.notices: list[str] = []
        self.requests_sent = 0
        self.capabilities: Json = {}
        self.breakpoints = dict(breakpoints or {})
        self.terminated = False
        self._waiting: dict[int, Then] = {}
        self._outbox: list[Json] = []

    # What the test drives

    def start(self, arguments: Mapping[str, Any]) -> list[Json]:
        """Begin a session: `initialize`; `attach` with `arguments` follows its response."""

        def attach(response: Json) -> None:
            self.capabilities = dict(response.get("body", {}))
            self._ask("attach", dict(arguments))

        self._ask("initialize", self._introduction(), attach)
        return self._sent()

    def receive(self, message: Json) -> list[Json]:
        """Take any message of the server; return the requests that it makes the editor send."""
        if message["type"] == "response":
            self._answered(message)
        elif message["type"] == "event":
            self._event(message["event"], message.get("body", {}))
        return self._sent()

    @property
    @abstractmethod
    def threads(self) -> dict[int, tuple[str, State]]:
        """The rows of the call stack view, in order: name and state of each thread."""

    @abstractmethod
    def press_f5(self) -> list[Json]:
        """Continue."""

    @abstractmethod
    def press_f10(self) -> list[Json]:
        """Step over."""

    @abstractmethod
    def press_row_button(self, thread: int, command: str) -> list[Json]:
        """Use the controls of one thread's row ("continue", "next" ...)."""

    # For the models

    @abstractmethod
    def _introduction(self) -> Json: ...

    @abstractmethod
    def _configure(self) -> None:
        """Send the breakpoints and `configurationDone`, as `initialized` asks for."""

    def _event(self, name: str, body: Json) -> None:
        if name == "initialized":
            self._configure()
        elif name == "capabilities":
            self.capabilities.update(body["capabilities"])
        elif name == "terminated":
            self.terminated = True
        elif handler := getattr(self, f"_on_{name}", None):
            handler(body)

    def _ask(self, command: str, arguments: Json | None = None, then: Then | None = None) -> None:
        self.requests_sent += 1
        request: Json = {"seq": self.requests_sent, "type": "request", "command": command}
        if arguments is not None:
            request["arguments"] = arguments
        self._outbox.append(request)
        self._waiting[self.requests_sent] = then or _ignore

    def _answered(self, response: Json) -> None:
        then = self._waiting.pop(response["request_seq"])
        if response["success"] or response["command"].startswith("set"):
            then(response)  # a refused breakpoint keeps nobody from `configurationDone`
        else:
            self.notices.append(response.get("message", ""))

    def _sent(self) -> list[Json]:
        sent, self._outbox = self._outbox, []
        return sent

    def _ask_breakpoints(self, then: Then | None = None) -> None:
        for path, lines in self.breakpoints.items():
            wanted = {"breakpoints": [{"line": line} for line in lines], "lines": list(lines)}
            self._ask("setBreakpoints", {"source": {"path": path}, **wanted}, then)

    def _default_filters(self) -> list[str]:
        filters = self.capabilities.get("exceptionBreakpointFilters", [])
        return [one["filter"] for one in filters if one.get("default")]


def _ignore(response: Json) -> None:
    """The editor does not look at this response."""
