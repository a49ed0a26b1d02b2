"""What the fake rank answers when it is asked for its data: stacks, variables, values.

Ids come from one small counter for each process. A frame keeps its id while its call lasts, so
`<module>` has the same in every stop, and a new call of `train` a new one (measured).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any, Final

from dap_mux.engine.ranks.patching import answer_without_frame
from tests.support.fake_rank.disk import FakeDisk
from tests.support.fake_rank.injected_calls import (
    INJECTED,
    OF_VALUE,
    InjectedCall,
    injected_call,
    is_patching,
    shown,
    users_text,
)
from tests.support.fake_rank.program import FIRST, STEP, Program
from tests.support.fake_rank.question import Question, question

Json = dict[str, Any]
Answer = Callable[[Json], "Json | None"]
_FIRST_ID: Final = 2


class Refused(Exception):
    """The request is answered with an error, in these words."""


class FakeData:
    """The state that requests for data read; `stopped` is the body of the last `stopped` event."""

    def __init__(self, number: int, program: Program) -> None:
        self.number = number
        self.program = program
        self.stopped: Json | None = None
        self.threads = {1: "MainThread"}
        self.disk = FakeDisk()
        self.values = {"step": str(number), "loss": str(number * 10)}
        self.evaluated: list[str] = []
        self.in_frames: dict[str, str] = {}
        """Variables of the functions that its main thread is in, while it runs."""
        self.comm = "off"
        self.steps: Json = {"at": 0, "lines": []}  # its answer where steps differ
        self.process = ""  # which one it is, as `injected.attach.process_identity` says it
        self.torch = True
        self.compiled: list[Any] = []  # breakpoints that torch passes by: path, line, two names
        self.fails: set[str] = set()  # modules of ours that do not fit its debugpy
        self.evidence: Any = None  # its answer to `why`, where it is not its program's stack
        self.pace: Any = {}  # its answer to `why --slow`; None: its look is under way
        self.lacks = "bytecode"  # "source": its Python is another one than the session's
        self._tells_evidence = False
        self._has_local_values = False
        self.arrays: dict[str, Json | str] = {}  # by name, a text is the whole answer
        self.stacks: Any = None  # its answer to `stacks`, where it is not its program's stack
        self.meshes: list[Any] = []  # what its DeviceMesh objects say: names, sizes, its place
        self.clocks: Json = {}  # what it tells of its time-outs
        self._steps = -1
        self._counter = itertools.count(_FIRST_ID)
        self._ids: dict[object, int] = {}
        self.answers: dict[str, Answer] = {
            "threads": self._threads,
            "stackTrace": self._stack_trace,
            "scopes": self._scopes,
            "variables": self._variables,
            "evaluate": self._evaluate,
            "setVariable": self._set_variable,
            "setExpression": self._set_expression,
            "completions": self._completions,
            "stepInTargets": self._step_in_targets,
            "gotoTargets": self._goto_targets,
            "goto": self._goto,
            "exceptionInfo": self._exception_info,
            "modules": self._modules,
            "source": self._source,
            "setDebuggerProperty": lambda arguments: None,
        }

    def id_of(self, key: object) -> int:
        """The id of a thing: given out once, from the one counter."""
        if key not in self._ids:
            self._ids[key] = next(self._counter)
        return self._ids[key]

    def _known(self, id: object, kind: str) -> Any:
        """The key that an id stands for."""
        for key, known in self._ids.items():
            if known == id and isinstance(key, tuple) and key[0] == kind:
                return key
        raise Refused(f"Wrong ID sent from the client: {id}")

    def _threads(self, arguments: Json) -> Json:
        return {"threads": [{"id": id, "name": name} for id, name in self.threads.items()]}

    def _stack_trace(self, arguments: Json) -> Json:
        if arguments["threadId"] not in self.threads:
            raise Refused(f"Wrong ID sent from the client: {arguments['threadId']}")
        source = {"path": self.program.path, "sourceReference": 0}
        frames: list[Json] = [
            {
                "id": self.id_of(("frame", call.function, call.number)),
                "name": call.function,
                "line": call.line,
                "column": 1,
                "source": source,
            }
            for call in self.program.stack
        ]
        start = arguments.get("startFrame") or 0
        levels = arguments.get("levels") or len(frames)
        return {"stackFrames": frames[start : start + levels], "totalFrames": len(frames)}

    def _scopes(self, arguments: Json) -> Json:
        """Answered for any known frame, even while the program runs."""
        frame = self._known(arguments["frameId"], "frame")
        names = {"Locals": {"presentationHint": "locals"}, "Globals": {}}
        return {
            "scopes": [
                {
                    "name": name,
                    "variablesReference": self.id_of(("scope", name, *frame)),
                    "expensive": False,
                    "source": {},
                    **more,
                }
                for name, more in names.items()
            ]
        }

    def _variables(self, arguments: Json) -> Json:
        for key, id in self._ids.items():
            if (
                id == arguments["variablesReference"]
                and isinstance(key, tuple)
                and key[0] == "value"
            ):
                return {"variables": [{"name": "of", "value": key[1], "variablesReference": 0}]}
        self._known(arguments["variablesReference"], "scope")
        if self.stopped is None:
            raise Refused("Unable to find thread to evaluate variable reference.")
        return {
            "variables": [
                {"name": name, "value": value, "type": "int", "variablesReference": 0}
                for name, value in self.values.items()
            ]
        }

    def _evaluate(self, arguments: Json) -> Json:
        """Any expression is known by what the test put in `values`; integers mean themselves."""
        expression = arguments["expression"]
        self.evaluated.append(expression)
        if (about := self.disk.answer(expression)) is not None:
            return {"result": about, "variablesReference": 0, "presentationHint": {}}
        if "frameId" in arguments:
            self._known(arguments["frameId"], "frame")
            if self.stopped is None:
                raise Refused("Unable to find thread for evaluation.")
        meant = question(expression)
        if meant.text in self.values:
            return self._value(meant)
        if (text := self._answer_of_pdb(meant.text)) is not None:
            return {"result": text, "type": "str", "variablesReference": 0}
        if (called := injected_call(meant.text)) is not None:
            return self._call(called)
        if arguments.get("context") == "repl" and "=" in expression:
            return self._assign(expression)
        return self._evaluate_ours(expression, meant.text)

    def _call(self, called: InjectedCall) -> Json:
        if called.module in self.fails:
            raise Refused("Traceback (most recent call last):\nAttributeError: no such method")
        hint: Json = {} if called.module == "torch_state" else {"presentationHint": {}}
        is_array = called.module == "array_view"
        result = self._array(*called.values) if is_array else self._answer_of(called)
        return {"result": result, "variablesReference": 0, **hint}

    def _step(self) -> int:
        """While the program runs it is further at each look."""
        self._steps += self.stopped is None
        return self._steps

    def _assign(self, statement: str) -> Json:
        name, _, value = statement.partition("=")
        self.values[name.strip()] = value.strip()
        return {"result": "", "variablesReference": 0}

    def _evaluate_ours(self, expression: str, text: str) -> Json:
        """What the engine asks on its own account."""
        if is_patching(expression) or expression == "1+1":
            result = "2" if expression == "1+1" else f"True True {self.process}".rstrip()
            return {"result": result, "variablesReference": 0, "presentationHint": {}}
        if expression == answer_without_frame(INJECTED):
            return {"result": "", "variablesReference": 0}
        if (own := self._own(expression)) is not None:
            return {"result": own, "variablesReference": 0, "presentationHint": {}}
        raise Refused(f"NameError: name {text!r} is not defined")

    def _own(self, expression: str) -> str | None:
        """The answer to what is asked of every rank; None for anything else."""
        if expression == STEP:
            return str(self._step())
        if "resource_tracker" in expression:
            return str("resource_tracker" in self.values)
        return "" if expression.startswith("__import__") else None

    def _answer_of(self, called: InjectedCall) -> str:
        """What a function of ours says in this rank."""
        match called.module, called.function:
            case "timeout_probe", function:
                return json.dumps(self.clocks) if function == "look" else "2"
            case "local_values", form:
                return self._local_values(form, *called.values)
            case "torch_state", function:
                about = {"torch": self.torch, "meshes": self.meshes, "compiled": self.compiled}
                return json.dumps(about if function == "look" else self.meshes)
            case "evidence", function:
                return json.dumps(self._evidence_by(function))
            case "stacks", _:
                return json.dumps(self.stacks or self._stack_of_main())
            case (("comm_switch" | "guard_switch"), _):
                return json.dumps(self._watch(called))
            case "waiting_frames", _:
                return self._value_in_frame(*called.values)
            case _:
                return ""

    def _watch(self, called: InjectedCall) -> Json:
        if called.module == "comm_switch":
            self.comm = called.values[0] or self.comm
            return {"mode": self.comm, "problem": ""}
        return self.steps if called.function == "look" else {"problem": ""}

    def _local_values(self, form: str, names: list[str]) -> str:
        """Each value as its text, once the code for it is there."""
        self._has_local_values |= form == "bring"
        if not self._has_local_values:
            return json.dumps({"lacks": self.lacks})
        known = (name for name in names if name in self.values)
        return json.dumps({name: (self.values[name], None) for name in known})

    def _array(self, text: str, asked: Json) -> str:
        """The array of that name: its shape, and its cells where they are asked for."""
        if text not in self.arrays:
            raise Refused(f"NameError: name {text!r} is not defined")
        told = self.arrays[text]
        if isinstance(told, str):
            return told
        return json.dumps(told if asked["cells"] else {**told, "part": None})

    def _value_in_frame(self, text: str) -> str:
        if text not in self.in_frames:
            raise Refused(f"NameError: name {text!r} is not defined")
        return f"int\n{self.in_frames[text]}"

    def _stack_of_main(self) -> Json:
        calls = [*reversed(self.program.stack)]
        frames = [[0, place, call.line] for place, call in enumerate(calls)]
        return {
            "files": [[self.program.path, False]],
            "functions": [call.function for call in calls],
            "threads": [["MainThread", True, frames]],
        }

    def _evidence_by(self, function: str) -> Json:
        if function in {"begin", "told"}:
            return {"begun": True} if function == "begin" else {"pace": self.pace}
        self._tells_evidence |= function == "bring"
        if not self._tells_evidence:
            return {"lacks": self.lacks}
        return {"sample": self.evidence or self._evidence_of_main()}

    def _evidence_of_main(self) -> Json:
        told = self._stack_of_main()
        (name, main, frames), *_ = told["threads"]
        thread = {"name": name, "main": main, "frames": frames, "state": "R"}
        return {**told, "threads": [thread]}

    def _value(self, meant: Question) -> Json:
        """What looks like a dict can be unfolded, unless nothing but text comes back."""
        value = self.values[meant.text]
        unfolds = value.startswith("{") and not meant.in_main
        return {
            "result": f"int\n{value}" if meant.in_main else value,
            "variablesReference": self.id_of(("value", meant.text)) if unfolds else 0,
            "presentationHint": {},
        }

    def _answer_of_pdb(self, text: str) -> str | None:
        """What pdb's words are answered with in this program; None for anything else."""
        if text.isdecimal():
            return text
        called = injected_call(text)
        if called is None or called.module != "pdb_views":
            return None
        if called.function == "lines_from":
            return " ".join(str(line) for line in (6, 7, 8) if line >= called.values[0])
        if called.function not in OF_VALUE:
            return f"code: {shown(called)[1:-1]}"
        name = users_text(called)
        if name not in self.values:
            raise Refused(f"NameError: name {name!r} is not defined")
        return f"{called.function} of {self.values[name]}"

    def _set_variable(self, arguments: Json) -> Json:
        self._known(arguments["variablesReference"], "scope")
        return self._set(arguments["name"], arguments["value"])

    def _set_expression(self, arguments: Json) -> Json:
        return self._set(arguments["expression"], arguments["value"])

    def _set(self, name: str, value: str) -> Json:
        self.values[name] = value
        return {"value": value, "type": "int", "variablesReference": 0}

    def _completions(self, arguments: Json) -> Json:
        names = [name for name in self.values if name.startswith(arguments["text"])]
        return {"targets": [{"label": name, "start": 0, "type": "value"} for name in names]}

    def _step_in_targets(self, arguments: Json) -> Json:
        self._known(arguments["frameId"], "frame")
        return {"targets": [{"id": 0, "label": "train(step)"}]}

    def _goto_targets(self, arguments: Json) -> Json:
        line = arguments["line"]
        return {"targets": [{"id": 0, "label": f"{self.program.path}:{line}", "line": line}]}

    def _goto(self, arguments: Json) -> None:
        self.program.go(FIRST)

    def _exception_info(self, arguments: Json) -> Json:
        stop = self.stopped or {}
        if stop.get("reason") != "exception":
            stop = {"text": "exception: type unknown", "description": "exception: no description"}
        details = {"message": stop.get("description"), "typeName": stop.get("text")}
        return {
            "exceptionId": stop.get("text"),
            "description": stop.get("description"),
            "breakMode": "unhandled",
            "details": {
                **details,
                "source": self.program.path,
                "stackTrace": "",
                "innerException": [],
            },
        }

    def _modules(self, arguments: Json) -> Json:
        return {"modules": [{"id": 0, "name": "__main__", "path": self.program.path}]}

    def _source(self, arguments: Json) -> Json:
        raise Refused("Source unavailable")
