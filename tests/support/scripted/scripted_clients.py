"""Who talks to the playbook's engine: clients that a test scripts, and model editors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dap_mux.engine import inputs
from dap_mux.pure.protocol.messages import Message, decode
from tests.support.clients.conversation import Conversation
from tests.support.editors import Editor

if TYPE_CHECKING:
    from tests.support.scripted.playbook import Playbook

Json = dict[str, Any]


@dataclass
class Answer:
    """What became of a request; `response` is None while it waits."""

    response: Json | None = None

    @property
    def body(self) -> Json:
        """The body of a successful response."""
        assert self.response is not None, "not answered yet"
        assert self.response["success"], self.response["message"]
        body: Json = self.response.get("body", {})
        return body

    @property
    def refusal(self) -> str:
        """The message of a failed response."""
        assert self.response is not None, "not answered yet"
        assert not self.response["success"], self.response
        message: str = self.response["message"]
        return message


class Client:
    """A client whose every step the test scripts."""

    def __init__(self, book: Playbook, number: int, name: str) -> None:
        self.name = name
        self.events: list[Json] = []
        self.closed = False
        self._book = book
        self._number = number
        self._seq = 0
        self._asked: dict[int, Answer] = {}
        self._conversation = Conversation(name)

    def ask(self, command: str, /, **arguments: object) -> Answer:
        """Send a request, and let everything happen that it brings about."""
        answer = self.send(command, **arguments)
        self._book.pump()
        return answer

    def ask_wrongly(self, command: str, arguments: object) -> Answer:
        """Send a request whose arguments need not be what DAP says."""
        self._seq += 1
        answer = self._asked[self._seq] = Answer()
        request = {"seq": self._seq, "type": "request", "command": command}
        self.says({**request, "arguments": arguments}, wrong=True)
        self._book.pump()
        return answer

    def send(self, command: str, /, **arguments: object) -> Answer:
        """Send a request, and leave it on its way."""
        self._seq += 1
        request: Json = {"seq": self._seq, "type": "request", "command": command}
        if arguments:
            request["arguments"] = arguments
        answer = self._asked[self._seq] = Answer()
        self.says(request)
        return answer

    def says(self, request: Json, *, wrong: bool = False) -> None:
        """Send a whole request; `wrong`: it need not be DAP."""
        self._conversation.client_sent(request, wrong=wrong)
        message = decode(json.dumps(request).encode())
        self._book.later(lambda: self._deliver(request, message, wrong=wrong))

    def stalls(self) -> None:
        """Read no more of what is sent."""
        self._book.transcript.line(self.name, "=", "does not read")
        self._book.feed(inputs.ClientStalled(self._number))
        self._book.pump()

    def reads(self) -> None:
        """Read again."""
        self._book.transcript.line(self.name, "=", "reads again")
        self._book.feed(inputs.ClientReads(self._number))
        self._book.pump()

    def _deliver(self, request: Json, message: Message, *, wrong: bool) -> None:
        if not self.closed:
            if wrong:
                said = f"{request['command']} {json.dumps(request['arguments'])}"
                self._book.transcript.line(self.name, ">", said)
            else:
                self._book.transcript.of_client(self.name, ">", request)
            self._book.feed(inputs.ClientSaid(self._number, message))

    def hears(self, message: Json) -> None:
        """Take a message."""
        assert not self.closed, f"{self.name} is closed and told {message}"
        self._conversation.server_sent(message)
        self._book.transcript.of_client(self.name, "<", message)
        if message["type"] == "event":
            self.events.append(message)
        elif message["request_seq"] in self._asked:
            self._asked.pop(message["request_seq"]).response = message

    def of(self, event: str) -> list[Json]:
        """The bodies of all events of this name so far."""
        return [one.get("body", {}) for one in self.events if one["event"] == event]

    def vanish(self) -> None:
        """The connection ends without a word."""
        self.hung_up()
        self._book.feed(inputs.ClientGone(self._number))
        self._book.pump()

    def hung_up(self) -> None:
        """The connection is closed, by whomever."""
        self.closed = True
        self._book.transcript.line(self.name, "=", "closed")

    def finish(self) -> None:
        """Nobody may be left without an answer, but for who went away."""
        self._conversation.finish(expect_all_answered=not self.closed)


class EditorClient(Client):
    """A client that asks what a real editor asks."""

    def __init__(self, book: Playbook, number: int, name: str, editor: Editor) -> None:
        super().__init__(book, number, name)
        self.editor = editor

    def hears(self, message: Json) -> None:
        super().hears(message)
        self.press(self.editor.receive(message))

    def send(self, command: str, /, **arguments: object) -> Answer:
        """What an extension of the editor asks over the same session."""
        self.editor._ask(command, dict(arguments))
        answer = self._asked[self.editor.requests_sent] = Answer()
        self.press(self.editor._sent())
        return answer

    def press(self, requests: Iterable[Json]) -> None:
        """Send what a key brought about: `press(editor.press_f5())`."""
        for request in requests:
            self.says(request)

    @property
    def shows(self) -> str:
        """What the user sees: `0 running, 1 stopped <, 2 stopped`; `<` marks the line shown."""
        rows = self.editor.threads.items()
        arrow = (self.editor.arrow or (None,))[0]
        return ", ".join(
            f"{name.split()[1]} {state}" + (" <" if thread == arrow else "")
            for thread, (name, state) in rows
        )
