"""One client port watched from both sides: what each side may say, and when.

Beyond the schema: `seq` rises, each request gets exactly one response and no response comes
unasked, nothing but a response precedes that of `initialize` (DAP, "Initialize Request"), and
`initialized` and `terminated` come at most once.
"""

from __future__ import annotations

import json

from tests.support.schema import Json, validate


class _Side:
    """One speaker: its rising `seq`, and the requests it still waits for."""

    def __init__(self, name: str, *, rising: bool = True) -> None:
        self.name = name
        self._rising = rising
        self.last_seq: int | None = None
        self.waiting: dict[int, str] = {}

    def speaks(self, message: Json) -> None:
        seq = message["seq"]
        rising = not self._rising or self.last_seq is None or seq > self.last_seq
        assert rising, f"{self.name}: seq {seq} after {self.last_seq}: {_short(message)}"
        self.last_seq = seq
        if message["type"] == "request":
            self.waiting[seq] = message["command"]

    def is_answered(self, response: Json) -> str:
        """Return the command that `response` answers."""
        command = self.waiting.pop(response["request_seq"], None)
        assert command is not None, f"answers nothing that waits: {_short(response)}"
        return command


class Conversation:
    """Checks one connection; feed it every message in the order it went over the wire.

    `strict=False` is for debugpy's own port: its errors have no body, it speaks before
    `initialize` is answered, and its threads' first events may overtake each other (seen).
    """

    def __init__(self, name: str = "client", *, strict: bool = True) -> None:
        self._strict = strict
        self._client = _Side(name)
        self._server = _Side(f"server of {name}", rising=strict)
        self._introduced = not strict
        self._once: set[str] = set()

    def tap(self, direction: str, message: Json) -> None:
        """Fit `DapClient.tap`: `direction` is "sent" or "received", seen from the client."""
        (self.client_sent if direction == "sent" else self.server_sent)(message)

    def client_sent(self, message: Json, *, wrong: bool = False) -> None:
        """Check what the client wrote; only the rules of a conversation where it is `wrong` DAP."""
        if wrong:
            self._client.speaks(message)
        else:
            self._check(message, self._client, self._server)

    def server_sent(self, message: Json) -> None:
        """Check what the client was given."""
        kind, name = message["type"], message.get("event", "")
        if kind == "response" and message.get("command") == "initialize":
            self._introduced = True
        assert self._introduced or kind == "response", f"before initialize: {_short(message)}"
        if name in ("initialized", "terminated"):
            assert name not in self._once, f"a second {name}"
            self._once.add(name)
        self._check(message, self._server, self._client)

    def finish(self, *, expect_all_answered: bool = True) -> None:
        """Check what only the end shows: nobody was left without an answer."""
        waiting = {**self._client.waiting, **self._server.waiting}
        assert not (expect_all_answered and waiting), f"never answered: {waiting}"

    def _check(self, message: Json, speaker: _Side, listener: _Side) -> None:
        speaker.speaks(message)
        command = listener.is_answered(message) if message["type"] == "response" else None
        validate(message, command, strict=self._strict)


def _short(message: Json) -> str:
    return json.dumps(message)[:300]
