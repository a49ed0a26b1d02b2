"""A rank of a report, which answers as debugpy would have: it is read from, and never run."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final, Protocol

from dap_mux.frontends.report.report_file import At, Frame, Thread, Variable
from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.insight.why.evidence import Names
from dap_mux.pure.protocol.messages import Event, Message, Request, Response, plain, raw
from dap_mux.pure.remote import MAX_PARSED_CHARS, called

Body = dict[str, Any]
Say = Callable[["Request | Event | Response"], None]
NEEDS: Final = "{} needs a live rank, and this is a recording"
NOT_RECORDED: Final = "{!r} was not recorded here, and to evaluate it needs a live rank"
CAPABILITIES: Final = dict.fromkeys(
    """supportsConfigurationDoneRequest supportsDelayedStackTraceLoading supportsEvaluateForHovers
    supportsExceptionInfoRequest supportsStepBack""".split(),
    True,
)
MOVES: Final = {
    **dict.fromkeys(("continue", "next", "stepIn", "stepOut"), 1),
    **dict.fromkeys(("stepBack", "reverseContinue"), -1),
}
ENDED: Final = frozenset({"ended", "exited"})
# The engine wraps a user's expression so for a running rank, and asks so for all locals.
_IN_MAIN: Final = re.compile(
    r"\(lambda value: type.*\(eval\((.*), __import__\('sys'\).*", re.DOTALL
)
_LOCALS: Final = re.compile(r"own\['local_values'\]\(own\['sent'\], (\[.*?\]), ")
_PATCHED: Final = "own['attach']("


class Unanswered(DapMuxError):
    """The recording has no answer, for this reason."""


class Recording(Protocol):
    """The stops that all ranks of a report go through together."""

    texts: Mapping[str, str]

    def move(self, by: int) -> None:
        """Go to another stop, all ranks together. Raises `Unanswered` at the ends."""

    def stay(self) -> None:
        """Forget a move that has not been made: ranks that are left are told to continue first."""


class RecordedRank:
    """One rank; `at`: where it was at the stop that is shown.

    Ids last as long as the recording is open: what they stand for never changes.
    """

    def __init__(self, recording: Recording, at: At) -> None:
        self.at = at
        self._recording = recording
        self._say: Say | None = None
        self._stopped = False  # as the session was told
        self._seq = count(1)
        self._things: list[tuple[Frame | Variable, str]] = []  # with their expressions
        self._numbers: dict[int, int] = {}
        self._paths = list(recording.texts)

    def connected(self, say: Say) -> None:
        """A session has connected."""
        self._say, self._stopped = say, False

    def shows(self, at: At) -> None:
        """Another stop is shown: say what has become of this rank."""
        self.at = at
        if self._say is None:
            return
        if self._stopped:
            self._stopped = False
            self._event("continued", threadId=1, allThreadsContinued=True)
        if at.state in ENDED:
            self._event("terminated")
            self._say = None
        elif at.state == "stopped":
            self._stop(at.reason or "pause")

    def _stop(self, reason: str) -> None:
        self._stopped = True
        found = self.at.exception
        about = {"text": found.type, "description": found.text} if found else {}
        self._event("stopped", reason=reason, threadId=1, allThreadsStopped=True, **about)

    def _event(self, name: str, /, **body: object) -> None:
        if self._say is not None:
            self._say(Event(next(self._seq), name, raw(body)))

    # Requests

    def heard(self, request: Message) -> None:
        """Answer a request of the session."""
        command, number = request.command, request.seq
        try:
            body = self._answer(command, plain(request.arguments))
        except Unanswered as error:
            self._respond(Response(next(self._seq), number, False, command, str(error)))
            return
        except (LookupError, TypeError, ValueError) as error:
            problem = f"the recording has no answer: {type(error).__name__}: {error}"
            self._respond(Response(next(self._seq), number, False, command, problem))
            return
        self._respond(Response(next(self._seq), number, True, command, body=body))
        self._afterwards(command)

    def _respond(self, response: Response) -> None:
        if self._say is not None:
            self._say(response)

    def _afterwards(self, command: str) -> None:
        if command == "attach":
            self._event("initialized")
        elif command == "configurationDone" and self.at.state == "stopped":
            self._stop(self.at.reason or "pause")
        elif command == "pause":
            self._stop("pause")
        elif command == "continue" and not self._stopped:
            self._event("continued", threadId=1, allThreadsContinued=True)
        elif command == "disconnect":
            self._recording.stay()
            self._say = None

    def _answer(self, command: str, arguments: Body) -> Body:
        if command == "continue" and self.at.state != "stopped":
            # It was only paused, as nvim-dap does to show a running row's stack: no rank moves.
            self._stopped = False
            return {"allThreadsContinued": True}
        if command in MOVES:
            self._recording.move(MOVES[command])
            return {"allThreadsContinued": True}
        if command.startswith("set") and command.endswith("Breakpoints"):
            return {"breakpoints": [_unbound(each) for each in arguments.get("breakpoints") or ()]}
        answers: dict[str, Callable[[], Body]] = {
            "initialize": lambda: CAPABILITIES,
            "threads": lambda: {
                "threads": [{"id": id, "name": each.name} for id, each in self._threads()]
            },
            "stackTrace": lambda: self._stack(arguments),
            "scopes": lambda: self._scopes(arguments["frameId"]),
            "variables": lambda: self._variables(arguments["variablesReference"]),
            "evaluate": lambda: self._evaluate(str(arguments["expression"]), arguments),
            "exceptionInfo": self._exception,
            "source": lambda: {"content": self._text_of(arguments["sourceReference"])},
            "pause": self._pause,
        }
        if command in answers:
            return answers[command]()
        if command in ("attach", "configurationDone", "disconnect", "setDebuggerProperty"):
            return {}
        raise Unanswered(NEEDS.format(f"`{command}`"))

    def _pause(self) -> Body:
        if not self.at.threads:
            raise Unanswered("it ran here, and its stack was not recorded")
        return {}

    def _threads(self) -> list[tuple[int, Thread]]:
        return [*enumerate(self.at.threads or (Thread("MainThread"),), 1)]

    def _stack(self, arguments: Body) -> Body:
        thread = dict(self._threads()).get(arguments["threadId"])
        # Of a rank that was only paused, it may be asked for before the stop and after `continue`.
        if thread is None or not (self._stopped or thread.frames):
            raise Unanswered("the thread runs here")
        frames = thread.frames
        start = arguments.get("startFrame") or 0
        shown = frames[start : start + (arguments.get("levels") or len(frames))]
        return {"stackFrames": [*map(self._frame, shown)], "totalFrames": len(frames)}

    def _frame(self, frame: Frame) -> Body:
        body = {"id": self._number(frame), "name": frame.name, "line": frame.line, "column": 1}
        if frame.path:
            known = frame.path in self._recording.texts
            reference = self._paths.index(frame.path) + 1 if known else 0
            body["source"] = {"path": frame.path, "sourceReference": reference}
        return {**body, "presentationHint": "subtle"} if frame.library else body

    def _number(self, thing: Frame | Variable, expression: str = "") -> int:
        if id(thing) not in self._numbers:
            self._things.append((thing, expression))
            self._numbers[id(thing)] = len(self._things)
        return self._numbers[id(thing)]

    def _thing(self, number: object) -> tuple[Frame | Variable, str]:
        if not isinstance(number, int) or not 0 < number <= len(self._things):
            raise Unanswered(f"Wrong ID sent from the client: {number}")
        return self._things[number - 1]

    def _scopes(self, frame: object) -> Body:
        self._thing(frame)
        scope = {"name": "Locals", "presentationHint": "locals", "expensive": False}
        return {"scopes": [{**scope, "variablesReference": frame}]}

    def _variables(self, number: object) -> Body:
        thing, of = self._thing(number)
        inside = thing.locals if isinstance(thing, Frame) else thing.children
        return {"variables": [{"name": one.name, **self._shown(one, of)} for one in inside]}

    def _shown(self, one: Variable, of: str = "", value: str = "value") -> Body:
        item = f"{of}.{one.name}" if one.name.isidentifier() else f"{of}[{one.name}]"
        expression = item if of else one.name
        reference = self._number(one, expression) if one.children else 0
        body = {value: one.value, "type": one.type, "variablesReference": reference}
        return {**body, "evaluateName": expression} if value == "value" else body

    def _exception(self) -> Body:
        found = self.at.exception
        if found is None:
            raise Unanswered("it was not recorded which exception this is")
        details = {"message": found.text, "typeName": found.type, "stackTrace": found.traceback}
        return {
            "exceptionId": found.type,
            "description": found.text,
            "breakMode": "unhandled",
            "details": details,
        }

    def _text_of(self, reference: object) -> str:
        if not isinstance(reference, int) or not 0 < reference <= len(self._paths):
            raise Unanswered("this source was not recorded")
        return self._recording.texts[self._paths[reference - 1]]

    # Expressions: looked up, or what our own code in a rank would have told

    def _evaluate(self, text: str, arguments: Body) -> Body:
        frame = None
        if arguments.get("frameId") is not None:
            thing, _ = self._thing(arguments["frameId"])
            frame = thing if isinstance(thing, Frame) else None
        if _PATCHED in text:
            return _text("True True ")
        if names := _LOCALS.search(text):
            return _text(self._local_values(frame, names[1]))
        if in_main := _IN_MAIN.fullmatch(text):
            one = self._value(None, unwrapped(str(_literal(in_main[1]))))
            return _text(f"{one.type}\n{one.value}")
        function, given = called(text) or ("", text)
        helper = self._helpers().get(function)
        if helper is not None:
            return _text(helper(frame, given))
        return self._shown(self._value(frame, unwrapped(text)), value="result")

    def _helpers(self) -> Mapping[str, Callable[[Frame | None, str], str]]:
        """Return what is asked by functions of `injected`; all but these need a live rank."""
        return {
            "answer_without_frame": lambda *_: "",
            "leave_children_alone": lambda *_: "",
            "compare": lambda _, given: self._file(given, lambda text: {"digest": _digest(text)}),
            "read": lambda _, given: self._file(given, lambda text: {"text": text}),
            "stacks": lambda _, given: self._stacks(every=given.startswith("True")),
            "list_lines": self._list_lines,
            "long_list": self._long_list,
            "line_text": lambda frame, given: self._line(frame, _literal(f"({given})")[0]),
            "pp": lambda frame, given: self._value(frame, inside(given)).value,
            "whatis": lambda frame, given: f"<class '{self._value(frame, inside(given)).type}'>",
        }

    def _value(self, frame: Frame | None, text: str) -> Variable:
        """Return what was recorded of an expression: itself, or a variable that it leads to."""
        text = text.strip()
        if text in self.at.values:
            return Variable(text, self.at.values[text])
        if frame is None:
            own = (each for _, thread in self._threads()[:1] for each in thread.frames)
            frame = next((each for each in own if not each.library), None)
        found = _found(text, frame.locals if frame else ())
        if found is None:
            raise Unanswered(NOT_RECORDED.format(text[:200]))
        return found

    def _local_values(self, frame: Frame | None, names: str) -> str:
        known = {one.name: (one.value, None) for one in (frame.locals if frame else ())}
        wanted = _literal(names)
        return json.dumps({name: known[name] for name in wanted if name in known})

    def _file(self, given: str, answer: Callable[[str], Body]) -> str:
        path, *_ = _literal(f"({given})")
        text = self._recording.texts.get(path)
        nothing = {"digest": "", "near": [], "problem": "it was not recorded"}
        return json.dumps(nothing if text is None else answer(text))

    def _stacks(self, *, every: bool) -> str:
        names = Names()
        told = [
            [
                thread.name,
                at == 0,
                [
                    names.place(each.path, each.name, each.line, library=each.library)
                    for each in reversed(thread.frames)
                ],
            ]
            for at, thread in enumerate(self.at.threads if every else self.at.threads[:1])
        ]
        lists = {"files": [*names.files], "functions": [*names.functions]}
        return json.dumps({**lists, "threads": told})

    # Sources

    def _lines(self, frame: Frame | None) -> list[str]:
        text = self._recording.texts.get(frame.path) if frame else None
        if text is None:
            raise Unanswered("the source of this frame was not recorded")
        return text.splitlines(keepends=True)

    def _line(self, frame: Frame | None, line: int) -> str:
        return "".join(self._lines(frame)[max(line - 1, 0) : line]).strip()

    def _list_lines(self, frame: Frame | None, given: str) -> str:
        first, last, current = _literal(f"({given})")
        return _numbered(self._lines(frame)[first - 1 : last], first, current)

    def _long_list(self, frame: Frame | None, given: str) -> str:
        lines, (current,) = self._lines(frame), _literal(f"({given})")
        name = re.escape(frame.name if frame else "")
        defined = re.compile(rf"\s*(async\s+)?def\s+{name}\b")
        first = next((at for at in range(current - 1, -1, -1) if defined.match(lines[at])), None)
        if first is None:
            return _numbered(lines, 1, current)
        return _numbered(inspect.getblock(lines[first:]), first + 1, current)


def _text(result: str) -> Body:
    return {"result": result, "type": "str", "variablesReference": 0}


def _unbound(wanted: Body) -> Body:
    line = {"line": wanted["line"]} if "line" in wanted else {}
    return {"verified": False, "message": NEEDS.format("a breakpoint"), **line}


def _literal(text: str) -> Any:
    """Return the value of a literal, of what the engine or a user has sent."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        raise Unanswered(NOT_RECORDED.format(text[:200])) from None


def inside(given: str) -> str:
    """Return the user's expression among the arguments of one of our functions."""
    return given.strip().removesuffix(",").removeprefix("(").removesuffix("\n)")


def unwrapped(text: str) -> str:
    """Return the user's expression without what summarises its value."""
    function, given = called(text) or ("", "")
    return inside(given) if function == "seen" else text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _numbered(lines: Sequence[str], first: int, current: int) -> str:
    """Lines as `injected.pdb_views` shows them."""
    return "\n".join(
        f"{number!s:>3}{' ->' if number == current else ''}\t{line.rstrip()}"
        for number, line in enumerate(lines, first)
    )


def _found(text: str, variables: Sequence[Variable]) -> Variable | None:
    """Follow names, attributes and constant subscripts to a variable; nothing is evaluated."""
    try:
        node = ast.parse(text[: MAX_PARSED_CHARS + 1], mode="eval").body
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    steps: list[str] = []
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute(value=node, attr=name):
                steps.append(name)
            case ast.Subscript(value=node, slice=ast.Constant(value=key)):
                steps.append(repr(key))
            case _:
                return None
    steps.append(node.id)
    found = None
    for step in reversed(steps):
        found = next((one for one in variables if _is_named(one.name, step)), None)
        if found is None:
            return None
        variables = found.children
    return found


def _is_named(name: str, step: str) -> bool:
    """Whether a child is meant: debugpy pads the indices of long lists."""
    return name == step or (name.isdecimal() and step.isdecimal() and int(name) == int(step))
