"""A conversation as text: one line a message, ids as names, equal lines of several ranks folded.

Sequence numbers are left out, for `Conversation` checks them. An id is named when it is first
seen, after the rank that the engine says it belongs to: `<thread:r3>`, `<frame:r3.1>`.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from dap_mux.engine import Engine
from dap_mux.engine.ranks.patching import IS_TRACKER, answer_without_frame, attach_expression
from dap_mux.engine.routes import ROUTES
from dap_mux.pure.protocol.exchange import Fields, Id, IdFault, Kind, handles_of
from dap_mux.pure.protocol.handle_fields import EVENTS, RESPONSES
from dap_mux.pure.rank_sets import RankId, fold
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import WORKING_FOLDER
from tests.support.fake_rank.injected_calls import (
    INJECTED,
    injected_call,
    shown,
)
from tests.support.fake_rank.question import question

Json = dict[str, Any]
Who: TypeAlias = "str | tuple[str, RankId]"
_MANY: Final = 4  # capabilities, written as one list
_NOTHING: Final = Fields()
_REQUESTS: Final = {name: handles_of(route.arguments) for name, route in ROUTES.items()}
_OURS: Final = {  # what is evaluated in every rank
    answer_without_frame(INJECTED): "<answer without a frame>",
    attach_expression(INJECTED, debug_children=False): "<no delay, no children>",
    attach_expression(INJECTED, debug_children=True): "<no delay, children>",
    attach_expression(
        INJECTED, debug_children=False, user_threads=True
    ): "<no delay, no children, user threads>",
    IS_TRACKER: "<multiprocessing's own?>",
    WORKING_FOLDER: "<where it runs>",
}
_ALONE: Final = frozenset({"child_processes", "file_probe", "torch_state"})  # without a frame


class Transcript:
    """Lines of a conversation, and the names in them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lines: list[tuple[Who, str]] = []
        self._quiet = False
        self._names: dict[tuple[Kind, Id], str] = {}
        self._counts: dict[str, int] = {}
        self._at = 0.0

    def line(self, who: Who, sign: str, text: str) -> None:
        """Write one line; `=` is for what is not a message."""
        if not self._quiet:
            self._lines.append((who, f"{sign} {text}".lstrip()))

    def note(self, text: str) -> None:
        """Write a line about what happens next."""
        self.line("--", "", text)

    def at(self, seconds: float) -> None:
        """Write what time it is, if that is new."""
        if seconds > self._at + 1e-9:
            self._at = seconds
            self.line("at", "", f"+{seconds:.3f}".rstrip("0").rstrip(".") + "s")

    @contextmanager
    def quietly(self, text: str) -> Iterator[None]:
        """One line instead of everything that happens in the block."""
        self.note(text)
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False

    def of_client(self, name: str, sign: str, message: Json) -> None:
        """What a client says (`>`) or is told (`<`)."""
        self.line(name, sign, self._message(message, named=True))

    def of_rank(self, rank: Who, sign: str, message: Json) -> None:
        """What a rank says or is told: ids are debugpy's own, small and reused."""
        self.line(rank, sign, self._message(message, named=False))

    def text(self) -> str:
        """All lines, those that several ranks share as one."""
        lines: list[str] = []
        for text, group in itertools.groupby(self._lines, lambda line: line[1]):
            lines += (f"{who} {text}" for who in _folded([who for who, _ in group]))
        return "\n".join(lines) + "\n"

    # One message

    def _message(self, message: Json, *, named: bool) -> str:
        name = message.get("event") or message["command"]
        body = message.get("arguments" if message["type"] == "request" else "body", {})
        if named:
            body = self._named(message, json.loads(json.dumps(body)))
        text = _pairs(body)
        if message["type"] == "event":
            return f"event {name} {text}".rstrip()
        if message["type"] == "request":
            return f"{name} {text}".rstrip()
        if not message["success"]:
            return f"{name}: failed {json.dumps(message.get('message', ''), ensure_ascii=False)}"
        return f"{name}: ok {text}".rstrip()

    def _named(self, message: Json, body: Json) -> Json:
        table = {"request": _REQUESTS, "response": RESPONSES, "event": EVENTS}[message["type"]]
        fields = table.get(message.get("event") or message["command"]) or _NOTHING
        try:
            fields.walk(body, self._name)
        except IdFault:
            return body  # a bogus id is shown as it is
        for one in (body, *body.get("ranks", ())) if fields is _NOTHING else ():
            if isinstance(one, dict) and isinstance(one.get("threadId"), int):
                one["threadId"] = self._name(Kind.THREAD, one["threadId"])
        return body

    def _name(self, kind: Kind, id: Id) -> Id:
        if (kind, id) not in self._names:
            self._names[kind, id] = self._new_name(kind, id)
        return self._names[kind, id]

    def _new_name(self, kind: Kind, id: Id) -> str:
        if kind is Kind.BREAKPOINT:
            return f"<breakpoint:{id}>"
        if kind is Kind.THREAD:
            return self._thread_name(id)
        owner = self._engine.core.handles._owners.get(id)
        word = kind.value.split()[0]
        label = f"{word}:{_short(owner.rank)}." if owner else f"{word}:"
        self._counts[label] = self._counts.get(label, 0) + 1
        return f"<{label}{self._counts[label]}>"

    def _thread_name(self, id: Id) -> str:
        key = self._engine.view._owners.get(id) if isinstance(id, int) else None
        if key is None:
            return str(id)
        rank, thread = key
        return f"<thread:{_short(rank)}" + ("" if thread is None else f"/{thread}") + ">"


def _short(rank: DebuggeeId) -> str:
    number = "/".join(map(str, rank[1:]))
    return f"r{number}" if rank[0] == "job" else f"{rank[0]}.r{number}"


def _folded(who: list[Who]) -> Iterator[str]:
    """Neighbours that are different ranks become one name."""
    ranks: list[RankId] = []
    for one in who:
        if isinstance(one, tuple) and one[1] not in ranks:
            ranks.append(one[1])
            continue
        yield from _ranks(ranks)
        ranks = []
        if isinstance(one, tuple):
            ranks = [one[1]]
        else:
            yield one
    yield from _ranks(ranks)


def _ranks(ranks: list[RankId]) -> Iterator[str]:
    if ranks:
        yield ("rank " if len(ranks) == 1 else "ranks ") + fold(ranks)


def _pairs(body: Json) -> str:
    """A body as `key=value` pairs."""
    if isinstance(body.get("expression"), str) and body["expression"] in _OURS:
        return _OURS[body["expression"]]
    if "expression" in body:
        called = injected_call(str(body["expression"]))
        if called is not None and called.module in _ALONE:
            return shown(called)
        asked = question(str(body["expression"]))
        called = injected_call(asked.text)
        body = {**body, "expression": shown(called) if called else str(asked)}
    flags = [key for key, value in body.items() if key.startswith("support") and value is True]
    if len(flags) > _MANY:
        offered = [re.sub("^supports?|Request$", "", key) for key in flags]
        rest = {key: value for key, value in body.items() if key not in flags}
        body = {"supports": sorted(offered), **rest}
    return " ".join(f"{key}={_value(value)}" for key, value in body.items())


def _value(value: object) -> str:
    if isinstance(value, dict) and {"mode", "label"} <= set(value):
        return str(value["mode"])
    if isinstance(value, dict) and {"filter", "label"} <= set(value):
        return f"{value['filter']} ({'on' if value.get('default') else 'off'})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str) and value and not set(value) & set(' ,:=[]{}"\n'):
        return value
    if isinstance(value, str) and value.startswith("<") and value.endswith(">"):
        return value
    return json.dumps(value, ensure_ascii=False)
