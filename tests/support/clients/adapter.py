"""A debug adapter of the simplest kind, for tests of what an editor makes of its messages."""

from __future__ import annotations

from tests.support.clients.conversation import Conversation
from tests.support.editors import Editor
from tests.support.schema import Json


class Adapter:
    """Answers an editor as a debug adapter would, and remembers what it was asked."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self.names = {thread: f"rank {thread - 1}" for thread in range(1, 5)}
        self.asked: list[tuple[str, int | None]] = []
        self.answering = True
        self.all_continued: bool | None = True
        self._conversation = Conversation(editor.client_id)
        self._seq = 0
        self._requests: list[Json] = []

    def start(self) -> None:
        self.take(self.editor.start({"justMyCode": False}))
        self.event("initialized")
        self.asked.clear()

    def event(self, name: str, **body: object) -> None:
        self._say({"type": "event", "event": name, "body": body})

    def stopped(
        self, thread: int, *, every: bool, reason: str = "breakpoint", **more: bool
    ) -> None:
        self.event("stopped", threadId=thread, reason=reason, allThreadsStopped=every, **more)

    def continued(self, thread: int, *, every: bool) -> None:
        self.event("continued", threadId=thread, allThreadsContinued=every)

    def take(self, requests: list[Json]) -> None:
        """Take requests, and answer them unless `answering` is off."""
        for request in requests:
            self._conversation.client_sent(request)
            self.asked.append((request["command"], request.get("arguments", {}).get("threadId")))
        self._requests += requests
        if self.answering:
            self.answer()

    def answer(self) -> None:
        """Answer all requests that wait, and those that the answers bring about."""
        while self._requests:
            request = self._requests.pop(0)
            body = self._body(request["command"], request.get("arguments", {}))
            same = {"request_seq": request["seq"], "command": request["command"]}
            self._say({"type": "response", "success": True, **same, "body": body})

    @property
    def resumed(self) -> list[int | None]:
        return [thread for command, thread in self.asked if command == "continue"]

    def shows(self) -> dict[int, str]:
        return {thread: state for thread, (_, state) in self.editor.threads.items()}

    def _say(self, message: Json) -> None:
        self._seq += 1
        message = {"seq": self._seq, **message}
        self._conversation.server_sent(message)
        self.take(self.editor.receive(message))

    def _body(self, command: str, arguments: Json) -> Json:
        thread = arguments.get("threadId", 0)
        frame = {"id": thread, "name": "main", "line": 10, "column": 1}
        scope = {"name": "Locals", "variablesReference": 7, "expensive": False}
        bodies: dict[str, Json] = {
            "initialize": {"supportsDelayedStackTraceLoading": True},
            "threads": {"threads": [{"id": i, "name": name} for i, name in self.names.items()]},
            "stackTrace": {"stackFrames": [] if arguments.get("startFrame") else [frame]},
            "scopes": {"scopes": [scope]},
            "variables": {"variables": []},
            "setBreakpoints": {"breakpoints": []},
            "setFunctionBreakpoints": {"breakpoints": []},
        }
        if command == "continue" and self.all_continued is not None:
            return {"allThreadsContinued": self.all_continued}
        return bodies.get(command, {})
