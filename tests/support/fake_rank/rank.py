"""A debugpy in memory: what our engine may rely on, and the traps that it has to avoid.

Sans-IO like the engine: `receive` takes a request, `outbox` collects what the rank says. The
same contract (`rank_contract`) is run against real debugpy and against this, so that scripted
tests speak of the real thing. The program stops when the test says so (`hits`, `stops`,
`raises`) and, unless `slow`, at once after a step or a pause.
"""

from __future__ import annotations

import json
from typing import Any, Final

from dap_mux.engine.messages.requests import FILTERS
from dap_mux.engine.messages.to_ranks import OF_ALL_THREADS
from dap_mux.engine.ranks.handshake import SESSION
from dap_mux.rank.injected import comparisons
from tests.support.fake_rank.children import START, FakeChildren
from tests.support.fake_rank.data import FakeData, Refused
from tests.support.fake_rank.disk import NO_FILE
from tests.support.fake_rank.injected_calls import is_patching
from tests.support.fake_rank.program import RAISE, STEP, Program

Json = dict[str, Any]
STEPS: Final = ("next", "stepIn", "stepOut")
# Asked for any of these, debugpy answers nothing any more, whatever it is asked (measured).
DEADLY: Final = frozenset({"loadedSources", "restartFrame", "cancel"})
NEED_A_STOP: Final = frozenset({"continue", "exceptionInfo"})  # ... and for these while it runs
UNCONFIGURED: Final = '"configurationDone" is only allowed during handling of an "attach" request'
EMPTY: Final = "AttachRequest.__init__() missing 1 required positional argument: 'arguments'"
CAPABILITIES: Final[Json] = {"exceptionBreakpointFilters": FILTERS} | dict.fromkeys(
    """supportsClipboardContext supportsCompletionsRequest supportsConditionalBreakpoints
    supportsConfigurationDoneRequest supportsDebuggerProperties supportsDelayedStackTraceLoading
    supportsEvaluateForHovers supportsExceptionInfoRequest supportsExceptionOptions
    supportsFunctionBreakpoints supportsGotoTargetsRequest supportsHitConditionalBreakpoints
    supportsLogPoints supportsModulesRequest supportsSetExpression supportsSetVariable
    supportsStepInTargetsRequest supportsTerminateDebuggee supportsTerminateRequest
    supportsValueFormattingOptions""".split(),
    True,
)


class FakeRank:
    """One rank's adapter and process, from the client's side of the socket.

    `slow`: blocked in C, so that what must stop does so when `arrives` is called. `silent`:
    commands whose answers it keeps until `answers`. `missing`: files that do not exist here.
    `refuses`: commands that are answered by these errors. `met`: the adapter has met its
    debuggee. `patchable`: its stops can be given their stack (`injected.attach.reports`).
    `never_stops`: told to stop in a condition, it does not. `last_breakpoints`: as sent last.
    `debugpy`: the release that it tells. `waits`: a child that no client has let run. `alone`: it
    has no adapter, once a session has made itself known. `door_to`: nobody yet, but a further
    connection to that rank's adapter.
    """

    def __init__(self, number: int = 0, path: str = "/job/train.py") -> None:
        self.number = number
        self.program = Program(path)
        self.capabilities = dict(CAPABILITIES)
        self.slow = False
        self.met = True
        self.patchable = False
        self.never_stops = False
        self.debugpy = "1"
        self.silent: set[str] = set()
        self.refuses: dict[str, str] = {}
        self.last_breakpoints: list[Json] = []
        self.outbox: list[Json] = []
        self.heard: list[str] = []  # the commands of all requests, over all connections
        self.data = FakeData(number, self.program)
        self.disk = self.data.disk
        self.missing = self.disk.missing
        self.children = FakeChildren(self)
        self.waits = self.ended = self.alone = False
        self.door_to: FakeRank | None = None
        self._forget()

    def _forget(self) -> None:
        """A new connection: nothing is left of the old one, and the program runs on."""
        self.dead = False
        self.data.stopped = None
        self.held: int | None = None  # the line in whose condition it waits
        self.attached_with: Json | None = None
        self._attach: Json | None = None
        self._configured = False
        self._due: str | None = None  # the step or pause that has not stopped yet
        self._seq = 0
        self._breakpoint_ids = 0
        self._holds = 0
        self._breakpoints: dict[str, dict[int, int]] = {}  # path to line to id
        self._kept: list[Json] = []

    @property
    def due(self) -> str | None:
        """The step or pause that has not stopped yet."""
        return self._due

    @property
    def configured(self) -> bool:
        """A client is attached and has let it run."""
        return self._configured

    # What the test makes happen

    def accepts(self) -> None:
        """A client has connected: what debugpy says before it is asked anything."""
        self._forget()
        if self.alone:
            return
        self.event(
            "output", category="telemetry", output="debugpy", data={"packageVersion": self.debugpy}
        )
        self.sockets()

    def sockets(self) -> None:
        """`debugpySockets`: an internal one is there once the adapter has met its debuggee."""
        inner = [{"host": "127.0.0.1", "port": 40000, "internal": True}] if self.met else []
        outer = {"host": "127.0.0.1", "port": 5678 + self.number, "internal": False}
        self.event("debugpySockets", sockets=[outer, *inner])

    def event(self, name: str, /, **body: object) -> None:
        """Say an event."""
        self._say({"type": "event", "event": name} | ({"body": body} if body else {}))

    def hits(self, line: int) -> None:
        """Come to a line with a breakpoint: wait in its condition if it is a barrier's, or stop.

        Conditions hold, unless `data.values` has them as `False`.
        """
        condition = self._condition_at(line)
        if comparisons.MARK not in condition:
            self.stops_at(line)
            return
        _, compared, others = json.loads(condition.rpartition(comparisons.MARK)[2])
        if others is not None and self.data.values.get(others) != "False":
            self.stops_at(line)
        elif compared is None or compared in self.data.values:
            self.holds(line, self.data.values.get(compared, ""))
        else:
            self._holds_with(line, problem=f"NameError: name {compared!r} is not defined")

    def holds(self, line: int, value: str) -> None:
        """Wait in the condition of the barrier at a line, and report this value."""
        self._holds_with(line, value=value)

    def _holds_with(self, line: int, **said: str) -> None:
        number, *_ = json.loads(self._condition_at(line).rpartition(comparisons.MARK)[2])
        self.held, self._holds = line, self._holds + 1
        place = {"line": line, "function": "train"}
        self.event(comparisons.HELD, breakpoint=number, hold=self._holds, **said, **place)

    def _condition_at(self, line: int) -> str:
        found = (one for one in self.last_breakpoints if one.get("line") == line)
        return str(next(found, {}).get("condition", ""))

    def stops_at(self, line: int) -> None:
        """Stop at a breakpoint, without a wait in its condition."""
        ids = self._breakpoints.get(self.program.path, {})
        more: Json = {"hitBreakpointIds": [ids[line]]} if line in ids else {}
        self.stops("breakpoint", line, **more)

    def hears(self, event: Json) -> None:
        """Be told an event: there is one, and it ends a wait in a condition."""
        told = event["body"]
        if told["hold"] == self._holds and self.held is not None:
            line, self.held = self.held, None
            if told["stop"] and not self.never_stops:
                self.stops_at(line)

    def stops(self, reason: str, line: int | None = None, thread: int = 1, **more: object) -> None:
        """Stop; `allThreadsStopped` is always true, and speaks of this rank alone."""
        if line is not None:
            self.program.go(line)
        self._due = None
        stop = {"reason": reason, "threadId": thread, "preserveFocusHint": reason == "pause"}
        self.data.stopped = {**stop, **more, "allThreadsStopped": True}
        self.event("stopped", **self.data.stopped, **self._stack(thread))

    @property
    def _is_patched(self) -> bool:
        return self.patchable and any(map(is_patching, self.data.evaluated))

    def _stack(self, thread: int) -> Json:
        """What a stop tells beside itself, once the process is patched."""
        if not self._is_patched:
            return {}
        told = self.data.answers["stackTrace"]({"threadId": thread})
        frames = (told or {})["stackFrames"]
        line, name = f"code: line {frames[0]['line']}", self.data.threads[thread]
        return {"stackFrames": frames, "lineText": line, "threadName": name}

    def raises(self, text: str = "loss is nan") -> None:
        """Stop at an uncaught exception."""
        self.stops("exception", RAISE, description=text, text="ValueError")

    def arrives(self, line: int | None = None) -> None:
        """What was blocked in C returns: the step or the pause that is due stops now."""
        command, self._due = self._due, None
        assert command is not None, f"rank {self.number} has nothing to arrive from"
        if command in STEPS and line is None:
            self.program.step(command)
        self.stops("pause" if command == "pause" else "step", line)

    def prints(self, text: str, category: str = "stdout") -> None:
        """Write to a stream."""
        self.event("output", output=text, category=category, source={})

    def logs(self, text: str, line: int) -> None:
        """Be told of by a logpoint on this line."""
        source = {"path": self.program.path}
        self.event("output", output=text, category="stdout", source=source, line=line)

    def exits(self) -> None:
        """The program ends: only `terminated` comes, never `exited`."""
        self.ended = True
        self.data.stopped = self._due = None
        self.event("thread", reason="exited", threadId=1)
        self.event("terminated")

    def hangs_up(self) -> None:
        """The client has left, in whatever way: the program runs on."""
        self.data.stopped = self._due = self._attach = self.attached_with = self.held = None
        self._configured = False

    def takes_over(self, door: FakeRank) -> None:
        """A connection turns out to be for this process."""
        self._forget()
        self._seq, self.outbox, door.outbox = door._seq, door.outbox, []

    def answers(self) -> None:
        """Answer, late, what was kept while `silent`."""
        kept, self._kept, self.silent = self._kept, [], set()
        for request in kept:
            self.receive(request)

    def runs_on(self) -> None:
        """Let the program run to its next breakpoint, for clients that do not script it."""
        if not self._configured or self.data.stopped or self._due:
            return
        if self.program.line == RAISE:
            self.exits()
        elif self.program.raising:
            self.raises()
        elif self.program.run_to(set(self._breakpoints.get(self.program.path, {}))):
            self.hits(self.program.line)

    # What it is asked

    def receive(self, request: Json) -> None:
        """Take one request."""
        command = request["command"]
        self.heard.append(command)
        if command in self.silent:
            self._kept.append(request)
        elif self.dead or self._kills(command):
            self.dead = not self.alone
        else:
            self._answer(request, request.get("arguments", {}))

    def _kills(self, command: str) -> bool:
        """Whether debugpy never answers this request, nor any after it."""
        running = self._configured and self.data.stopped is None and not self._holds_threads
        return command in DEADLY or (running and command in NEED_A_STOP)

    @property
    def _holds_threads(self) -> bool:
        """One thread steps, and the others stand meanwhile."""
        together = (self.attached_with or {}).get("steppingResumesAllThreads", True)
        return self._due in STEPS and not together

    def _answer(self, request: Json, arguments: Json) -> None:
        command = request["command"]
        if command in self.refuses:
            self._say_response(request, success=False, message=self.refuses[command])
            return
        if command == "attach" and arguments:
            self._begin(request)
            return
        if command == "initialize" and self.alone and SESSION in arguments:
            self.event("dapMuxServed", debugpy=self.debugpy)
        try:
            body = self._body(command, arguments)
        except Refused as error:
            self._say_response(request, success=False, message=str(error))
            return
        if command == "disconnect":
            self.hangs_up()
            if not self.alone:
                self.event("terminated")
        self._say_response(request, success=True, **({} if body is None else {"body": body}))
        self._afterwards(command)

    def _body(self, command: str, arguments: Json) -> Json | None:
        if command == "initialize":
            return self.capabilities
        if command == "disconnect":
            return None
        if command == "attach":
            raise Refused(EMPTY)
        if self._attach is None:
            text = UNCONFIGURED if command == "configurationDone" else "Server is not available"
            raise Refused(text)
        return self._attached_body(command, arguments)

    def _attached_body(self, command: str, arguments: Json) -> Json | None:
        if arguments.get("expression") == START:
            return {"result": self.children.start_next(), "variablesReference": 0}
        if arguments.get("expression") == STEP and not self._configured:
            return {"result": "-1", "variablesReference": 0}  # its program has not begun
        if command == "setBreakpoints":
            return self._set_breakpoints(arguments)
        if command == "setFunctionBreakpoints":
            wanted = arguments["breakpoints"]
            return {"breakpoints": [self._breakpoint({"source": {}}) for _ in wanted]}
        if self.alone and command in OF_ALL_THREADS:
            self._check_thread(arguments["threadId"])
        if command == "continue":
            return {"allThreadsContinued": True}
        answer = self.data.answers.get(command)
        return answer(arguments) if answer else None

    def _check_thread(self, id: int | str) -> None:
        if id not in ("*", *self.data.threads):
            raise Refused(f"Wrong ID sent from the client: {id}")

    def _afterwards(self, command: str) -> None:
        """What debugpy does after its answer."""
        if command == "configurationDone" and not self._configured:
            self._start()
        elif command == "goto":
            self.stops("goto")
        elif command in ("continue", *STEPS) and self.data.stopped:
            self._resume(command)
        elif command == "continue":
            self._due = None  # its other threads run, and so does the one that was on a step
        elif command == "pause" and not self.data.stopped:
            self._owes(command)

    def _begin(self, request: Json) -> None:
        """`attach` is answered after `configurationDone`."""
        if "subProcessId" in request["arguments"] and self.door_to is not None:
            self._say_response(request, success=True)  # it has ended, or never was
            self.event("terminated")
            return
        self._attach, self.attached_with = request, request["arguments"]
        if self.alone:
            self._say_response(request, success=True)
            self._tell_process()
        else:
            self.event("debugpyWaitingForServer", host="127.0.0.1", port=40000)
        self.event("initialized")
        if self.alone:
            self._tell_threads()

    def _start(self) -> None:
        assert self._attach is not None
        self._configured, self.waits = True, False
        if not self.alone:
            self._say_response(self._attach, success=True)
            self._tell_process()
            self._tell_threads()
        self.children.announce()

    def _tell_process(self) -> None:
        about = {"name": self.program.path, "systemProcessId": 4000 + self.number}
        self.event("process", **about, isLocalProcess=True, startMethod="attach")

    def _tell_threads(self) -> None:
        for thread in self.data.threads:
            self.event("thread", reason="started", threadId=thread)

    def _resume(self, command: str) -> None:
        assert self.data.stopped is not None
        thread, self.data.stopped = self.data.stopped["threadId"], None
        if command == "continue" or not self._is_patched:
            self.event("continued", threadId=thread, allThreadsContinued=True)
        if command in STEPS:
            self._owes(command)

    def _owes(self, command: str) -> None:
        self._due = command
        if not self.slow:
            self.arrives()

    def _set_breakpoints(self, arguments: Json) -> Json:
        path = arguments["source"]["path"]
        known = self._breakpoints[path] = {}
        self.last_breakpoints = arguments["breakpoints"]
        bodies = []
        for wanted in arguments["breakpoints"]:
            line = self.program.moved(wanted["line"])
            body = self._breakpoint({"source": {"path": path}, "line": line})
            known[line] = body["id"]
            if self._remote(path) in self.missing:
                body |= {"verified": False, "message": NO_FILE, "line": wanted["line"]}
            bodies.append(body)
        return {"breakpoints": bodies}

    def _remote(self, path: str) -> str:
        """As `pathMappings` say; the first root that the path begins with."""
        for each in (self.attached_with or {}).get("pathMappings", ()):
            local, remote = each["localRoot"], each["remoteRoot"]
            if path.startswith(local):
                root = f"{self.disk.cwd}/" if remote == "." else remote
                return str(root + path[len(local) :])
        return path

    def _breakpoint(self, more: Json) -> Json:
        body = {"verified": True, "id": self._breakpoint_ids, **more}
        self._breakpoint_ids += 1
        return body

    # The wire

    def _say_response(self, request: Json, **rest: object) -> None:
        same = {"request_seq": request["seq"], "command": request["command"]}
        self._say({"type": "response", **same, **rest})

    def _say(self, message: Json) -> None:
        self._seq += 1
        self.outbox.append({"seq": self._seq, **message})
