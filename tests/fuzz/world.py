"""A storm in which ranks and clients also say what they like; what must hold after every input."""

from __future__ import annotations

import copy
import gc
import json
import re
import time
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from dap_mux.engine import inputs, outputs
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.messages import MessageError, decode
from tests.support.outputs import singly
from tests.support.scripted.interleaving_actions import ACTIONS
from tests.support.scripted.interleaving_fuzz import Storm, Wire

SLOWEST: Final = 0.1  # s that one input may take
RANKS: Final = 2
SAYS_NOTHING: Final = re.compile(r"(^|\w: ?)$")  # of a line of the log; it may be cut off in JSON


class TooSlow(AssertionError):
    """An input took longer than it may."""


class Said(NamedTuple):
    """One step of a fuzzed session: a drawn action, or a message as somebody says it.

    A rank's response to request 0 is one to the next request that is under way to it. With a
    `path`, the rank says what it would have said, but for `message` at that place of it.
    """

    action: int
    message: Any = None
    by_rank: bool = False
    path: tuple[int, ...] = ()


class World(Storm):
    """Counts what the engine is fed, and watches it."""

    fed = 0
    slowest = 0.0

    def __init__(self) -> None:
        super().__init__(RANKS, honest=False)

    def feed(self, happened: inputs.Input) -> None:
        """Feed it; no defect, and not for long."""
        gc.disable()  # what the tests have collected is not the engine's work
        before = time.thread_time()
        done = self.engine.receive(happened)
        took = time.thread_time() - before
        gc.enable()
        World.fed += 1
        World.slowest = max(World.slowest, took)
        told = [one.text for one in done if isinstance(one, outputs.Log)]
        assert not self.engine.core.faults, told
        assert not any(map(SAYS_NOTHING.search, told)), told
        if took > SLOWEST:
            raise TooSlow(f"{took:.3f} s for {happened!r:.2000}")
        for output in singly(done):
            self._carry_out(output)

    def _check_alive(self, wire: Wire) -> None:
        """A rank that lies about its stops is told to continue when it runs, and hangs."""

    def _to_rank(self, output: outputs.ToRank) -> None:
        wire = self.wires.get(output.link)
        if wire:
            json.loads(output.body)
            wire.down.append(output.body)

    def to_client(self, output: outputs.ToClient) -> None:
        """Clients of this world ask wrongly, so only the counting of answers is held to."""
        guest = next(g for g in self.guests if g.number == output.client)
        message = json.loads(output.body)
        body = message.get("body")
        body = body if isinstance(body, dict) else {}
        if message["type"] == "response":
            guest.waiting.discard(message["request_seq"])
            threads = body.get("threads") if message["command"] == "threads" else None
            guest.threads += [row["id"] for row in threads or ()]
        elif message["event"] in ("stopped", "continued", "thread"):
            guest.threads.append(body["threadId"])

    def run(self, steps: Iterable[Said]) -> None:
        """Take these steps."""
        for opening in (self.guest_comes, *[self.connect] * RANKS, *[self.ask_rank] * 4):
            opening(1)
        for step in steps:
            if step.path:
                self._rank_errs(step)
            elif step.message is None:
                action, pick = divmod(step.action, 256)
                ACTIONS[action % len(ACTIONS)](self, pick)
            elif step.by_rank:
                self._rank_says(step)
            else:
                self._client_says(step)

    def _rank_says(self, step: Said) -> None:
        links = sorted(self.engine.core.links)
        if not links:
            return
        link = links[step.action % len(links)]
        message = _decoded(self._answered(link, step.message))
        if message:
            self.feed(inputs.LinkSaid(link, message))

    def _answered(self, link: int, message: Any) -> Any:
        wire = self.wires.get(link)
        if message["type"] != "response" or message["request_seq"] or not wire or not wire.down:
            return message
        request = json.loads(wire.down.popleft())
        return {**message, "request_seq": request["seq"], "command": request["command"]}

    def _rank_errs(self, step: Said) -> None:
        wire = self._wire(step.action, lambda wire: bool(wire.rank.outbox))
        if wire:
            message = _decoded(_replaced(wire.rank.outbox.pop(0), step.path, step.message))
            if message:
                self.feed(inputs.LinkSaid(wire.link, message))

    def _client_says(self, step: Said) -> None:
        here = [guest for guest in self.guests if not guest.closed]
        if not here:
            return
        guest = here[step.action % len(here)]
        guest.seq += 1
        message = _decoded({"seq": guest.seq, **step.message})
        if message:
            self.feed(inputs.ClientSaid(guest.number, message))


def attempt(steps: list[Said]) -> None:
    """Take these steps in a world of their own. Raises what goes wrong."""
    try:
        World().run(steps)
    except TooSlow:
        World().run(steps)  # the engine is slow each time, and a machine that is busy only once


def _replaced(message: Any, path: tuple[int, ...], value: Any) -> Any:
    """A copy that has the value at the path, whose numbers choose keys and places."""
    if not path or not isinstance(message, dict | list) or not message:
        return value
    made = copy.copy(message)
    keys: Any = list(made) if isinstance(made, dict) else range(len(made))
    key = keys[path[0] % len(keys)]
    made[key] = _replaced(made[key], path[1:], value)
    return made


def _decoded(message: Any) -> Any:
    try:
        return decode(json.dumps(message).encode())
    except (MessageError, PeerFault):
        return None
