"""Every DAP message in every test is held against the protocol's own JSON schema.

Two editions are used, and a message has to please each that knows it: the one inside debugpy's
wheel, which is always there, and the newest, where a checkout has it beside the repository.
Neither is committed here.

Messages outside the schema (our custom requests, debugpy's `debugpySockets`) are checked as
base requests, responses or events. An ErrorResponse must have a body in the schema, but debugpy
sends none: `validate` lets that pass, a strict `Conversation` (our own port) does not.
"""

from __future__ import annotations

import functools
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import jsonschema

from dap_mux.engine.messages.to_ranks import OF_ALL_THREADS

Json = dict[str, Any]

_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_NEWEST: Final = _REPOSITORY / ".." / "shared" / "debugAdapterProtocol.json"
_IN_WHEEL: Final = "_vendored/pydevd/_pydevd_bundle/_debug_adapter/debugProtocol.json"
_BASE: Final = {"request": "Request", "response": "Response", "event": "Event"}
_CACHE_SIZE: Final = 8192


class Names(NamedTuple):
    """What the schema knows: command names (both directions) and event names."""

    requests: frozenset[str]
    events: frozenset[str]


class Edition:
    """One edition of the schema: a compiled validator for each definition, made when needed."""

    def __init__(self, path: Path) -> None:
        self.label = path.name
        self._definitions: dict[str, Json] = json.loads(path.read_text("utf-8"))["definitions"]
        self._validators: dict[str, jsonschema.Draft4Validator] = {}
        self.requests = dict(self._named("Request", "command"))
        self.events = dict(self._named("Event", "event"))

    def errors(self, message: Json, *, strict: bool) -> Iterator[str]:
        """Yield `path: what is wrong` for every violation."""
        validator = self._validator(self._definition_for(message, strict=strict))
        for error in validator.iter_errors(message):
            path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.path)
            yield f"{path or '.'}: {error.message} ({self.label})"

    def arguments(self, command: str) -> Json:
        """What it says of a request's arguments, references resolved."""
        request = self._definitions[self.requests[command]]["allOf"][1]["properties"]
        found = self._inlined(request.get("arguments", {}), ())
        assert isinstance(found, dict)
        return found

    def _definition_for(self, message: Json, *, strict: bool) -> str:
        kind = message.get("type", "")
        if kind == "event":
            return self.events.get(message.get("event", ""), "Event")
        if kind == "response" and not message.get("success"):
            return "ErrorResponse" if strict or "body" in message else "Response"
        request = self.requests.get(message.get("command", ""))
        if request is None:
            return _BASE.get(kind, "ProtocolMessage")
        return request if kind == "request" else request.removesuffix("Request") + "Response"

    def _named(self, suffix: str, key: str) -> Iterator[tuple[str, str]]:
        """Yield `(name on the wire, name of the definition)`."""
        for name, definition in self._definitions.items():
            if name.endswith(suffix) and name != suffix:
                yield definition["allOf"][1]["properties"][key]["enum"][0], name

    def _validator(self, definition: str) -> jsonschema.Draft4Validator:
        if definition not in self._validators:
            schema = self._inlined(self._definitions[definition], (definition,))
            self._validators[definition] = jsonschema.Draft4Validator(schema)
        return self._validators[definition]

    def _inlined(self, schema: Any, seen: tuple[str, ...]) -> Any:
        """Replace each `$ref` by what it names: half the time of resolving them on every message.

        The one recursive type (ExceptionDetails.innerException) is checked one level deep.
        """
        if isinstance(schema, list):
            return [self._inlined(item, seen) for item in schema]
        if not isinstance(schema, dict):
            return schema
        if "$ref" not in schema:
            return {key: self._inlined(value, seen) for key, value in schema.items()}
        name = schema["$ref"].rsplit("/", 1)[1]
        return {} if name in seen else self._inlined(self._definitions[name], (*seen, name))


@functools.cache
def editions() -> tuple[Edition, ...]:
    """The editions that this machine has, debugpy's first."""
    spec = importlib.util.find_spec("debugpy")
    assert spec is not None
    assert spec.origin is not None
    paths = [Path(spec.origin).parent / _IN_WHEEL, _NEWEST]
    return tuple(Edition(path) for path in paths if path.exists())


@functools.cache
def names() -> Names:
    """All request and event names of all editions, for tests that a table is complete."""
    return Names(
        frozenset(name for edition in editions() for name in edition.requests),
        frozenset(name for edition in editions() for name in edition.events),
    )


def _with_an_integer(message: Json) -> Json:
    """debugpy's adapter, and a session in its place, say "*" to a rank for all of its threads."""
    arguments = message.get("arguments")
    if message.get("command") not in OF_ALL_THREADS or not isinstance(arguments, dict):
        return message
    if arguments.get("threadId") != "*":
        return message
    return {**message, "arguments": {**arguments, "threadId": 1}}


def validate(message: Json, request_command: str | None = None, *, strict: bool = False) -> None:
    """Raise AssertionError, with the path of each fault, unless `message` is valid DAP.

    `request_command` is what a response must answer. `strict` asks for a body in errors.
    """
    faults = list(_faults(_key(_with_an_integer(message)), strict))
    if message.get("type") not in _BASE:  # the schema leaves this open
        faults.append(f".type: {message.get('type')!r}")
    command = message.get("command")
    if request_command is not None and command != request_command:
        faults.append(f".command: {command!r} answers a {request_command!r} request")
    assert not faults, _report(message, faults)


def _key(message: Json) -> str:
    """The message as text with its numbers neutral: thousands of messages differ in them only."""
    same: Json = {}
    for number in ("seq", "request_seq"):
        if type(message.get(number)) is int:
            same[number] = 1
    return json.dumps({**message, **same})


@functools.lru_cache(_CACHE_SIZE)
def _faults(text: str, strict: bool) -> tuple[str, ...]:
    message = json.loads(text)
    return tuple(
        fault for edition in editions() for fault in edition.errors(message, strict=strict)
    )


def _report(message: Json, faults: list[str]) -> str:
    return "\n  ".join(["not valid DAP", *faults, json.dumps(message)[:2000]])


def arguments_of(command: str) -> Iterator[Json]:
    """What each edition says of a request's arguments, references and all; {} for none."""
    for edition in editions():
        if command in edition.requests:
            yield edition.arguments(command)
