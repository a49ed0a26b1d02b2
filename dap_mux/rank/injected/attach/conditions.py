"""Evaluate the conditions of breakpoints as cheaply as debugpy allows, and note what they take.

debugpy compiles a condition each time that its line runs, which takes longer than all the rest.
Private interfaces of debugpy, so whoever calls this must expect any exception.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from importlib import import_module
from time import perf_counter
from traceback import extract_stack, format_exception, format_exception_only
from typing import Any

WINDOW_S = 1.0
"""The period over which the cost of a condition is measured, in seconds."""


class Cost:
    """The cost of one condition: evaluations a second, and the share of time that they take."""

    def __init__(self, code: Any) -> None:
        self.code = code
        self.rate = 0.0
        self.share = 0.0
        self._since = perf_counter()
        self._hits = 0
        self._seconds = 0.0

    def add(self, start: float) -> None:
        """One evaluation has come to its end."""
        now = perf_counter()
        self._hits += 1
        self._seconds += now - start
        window = now - self._since
        if window >= WINDOW_S:
            self.rate, self.share = self._hits / window, self._seconds / window
            self._since, self._hits, self._seconds = now, 0, 0.0


def compile_once(debugger: Any) -> None:
    """From now on `debugger`, a PyDB, keeps each breakpoint's condition compiled."""
    if "handle_breakpoint_condition" in vars(debugger):
        return
    usual = debugger.handle_breakpoint_condition

    def evaluate(info: Any, breakpoint: Any, frame: Any) -> Any:
        cost = getattr(breakpoint, "dap_mux_cost", None)
        if cost is None:
            cost = breakpoint.dap_mux_cost = Cost(_compiled(breakpoint))
        if cost.code is None:
            return usual(info, breakpoint, frame)
        start = perf_counter()
        try:
            return eval(cost.code, frame.f_globals, frame.f_locals)  # noqa: S307  (the user's own)
        except Exception as error:  # noqa: BLE001  (whatever the user's expression raises)
            return _failed(debugger, info, breakpoint.condition, error, frame)
        finally:
            cost.add(start)

    debugger.handle_breakpoint_condition = evaluate


def _failed(debugger: Any, info: Any, condition: str, error: Exception, frame: Any) -> bool:
    """Tell of an error in a condition as debugpy does; return whether the line stops."""
    if not isinstance(error, debugger.skip_print_breakpoint_exception):
        own = error.__traceback__  # of `evaluate`: the user's frames begin behind it
        trace = "".join(format_exception(type(error), error, own and own.tb_next))
        text = "Error while evaluating expression in conditional breakpoint: "
        api = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI()
        api.send_error_message(debugger, f"{text}{condition}\n{trace}")
    if isinstance(error, debugger.skip_suspend_on_breakpoint_exception):
        return False
    message = "".join(format_exception_only(type(error), error))
    told = f"Condition:\n{condition}\n\nError:\n{message}"
    info.conditional_breakpoint_exception = (told, extract_stack(frame))
    return True


def _compiled(breakpoint: Any) -> Any:
    """None where debugpy has to do it: it counts hits, and says what is wrong with the text."""
    if getattr(breakpoint, "hit_condition", None) or not breakpoint.condition:
        return None
    return _compiled_text(breakpoint.condition)


# Fold what a logpoint says in a hot loop: 1,500 lines a second fill a slow tunnel.
#
# The first lines of a logpoint are told one by one. Those that come faster than that are counted,
# and the newest is told once a second, with their number. `FIRST_LINES` in a second are what a
# person can still follow; eight ranks behind one line take 12 kB/s for them, and less than 2 kB/s
# once folded.
#
# Seconds are those of the clock, so all ranks tell at the same moment, and lines that are equal
# meet in the session. It lasts until the next `disconnect`: other debuggers get every line.
# Private interfaces of debugpy, so whoever calls this must expect any exception.

FIRST_LINES = 10
"""Lines of one logpoint in one second that are told one by one."""
KEPT_AS = "dap_mux_logpoints"
"""The debugger's attribute that holds what is installed, so that it is installed once."""
LOGPOINT = "1"
"""pydevd's name for stdout in a logpoint's output; for the program's own it is a number."""


class Logpoint:
    """The messages of one logpoint in the current second, and those still to be sent."""

    def __init__(self, expression: str, place: dict[str, Any] | None = None) -> None:
        self.code = _compiled_text(expression)
        self._place = place
        self.left_out = 0
        self._newest = ""
        self._second = 0
        self._lines = 0
        self._free = FIRST_LINES
        self._told_at = 0.0

    def is_told(self, text: str, now: float) -> bool:
        """Whether this line is told at once; otherwise it is kept. `now`: s of the clock."""
        if int(now) != self._second and not self.left_out:
            self._begin_second(int(now))
        self._lines += 1
        if self._free:
            self._free -= 1
            self._told_at = now
            return True
        self.left_out += 1
        self._newest = text
        return False

    def placed(self, command: Any) -> Any:
        """Return a message to the client with the place of the line, of which pydevd has none."""
        event = getattr(command, "as_dict", None)
        if not event or not self._place:
            return command
        told = {**event, "body": {**event["body"], **self._place}}
        return type(command)(command.id, 0, told, is_json=True)

    def take(self, now: float) -> str:
        """Return the newest line that was kept, with the number of the others."""
        text, others = self._newest, self.left_out - 1
        if others:
            body = text.rstrip("\r\n")
            since = _duration(now - self._told_at)
            text = f"{body}  ({others:,} more like it in {since}){text[len(body) :]}"
        self._newest, self.left_out, self._told_at = "", 0, now
        self._begin_second(int(now))
        return text

    def _begin_second(self, second: int) -> None:
        calm = self._lines <= FIRST_LINES or second > self._second + 1
        self._second, self._lines, self._free = second, 0, FIRST_LINES if calm else 0


class Folder:
    """The logpoints of a debugger, and the thread that tells what they have left out."""

    def __init__(self, debugger: Any) -> None:
        self._debugger = debugger
        self._left_out = import_module("_pydevd_bundle.pydevd_net_command").NULL_NET_COMMAND
        threads = import_module("_pydevd_bundle.pydevd_daemon_thread")
        self._start = threads.run_as_pydevd_daemon_thread
        self._evaluate = debugger.handle_breakpoint_expression
        self._lock = threading.RLock()  # a finalizer may run wherever it is held
        self._attached = False
        self._pending: list[Logpoint] = []
        self._thread_runs = False
        self._over = threading.Event()
        self._hit = threading.local()

    def attach(self) -> None:
        """A session is there: fold, also with another writer or factory than before."""
        factory, writer = self._debugger.cmd_factory, self._debugger.writer
        if "make_io_message" not in vars(factory):
            factory.make_io_message = self._folding(factory.make_io_message)
        if KEPT_AS not in vars(writer):
            setattr(writer, KEPT_AS, True)
            writer.add_command = self._for_told_lines(writer.add_command)
        self._attached = True

    def detach(self) -> None:
        """The session has left: what was left out is of interest to nobody."""
        with self._lock:
            self._attached = False
            for one in self._pending:
                one.take(time.time())
            self._pending.clear()

    def evaluate(self, breakpoint: Any, info: Any, frame: Any) -> Any:
        """Make a logpoint's message, as pydevd does, but compiled once (9 of 10 µs, measured)."""
        logpoint = self._hit.logpoint = self._logpoint(breakpoint, frame)
        if logpoint is None or logpoint.code is None:
            return self._evaluate(breakpoint, info, frame)
        try:
            value = eval(logpoint.code, frame.f_globals, frame.f_locals)  # noqa: S307  (the user's)
        except BaseException as error:  # noqa: BLE001  (as pydevd has it)
            value = error
        info.pydev_message = str(value)
        return None

    def tell(self) -> None:
        """Send what has been left out so far."""
        factory, writer = self._debugger.cmd_factory, self._debugger.writer
        with self._lock:
            due, self._pending = self._pending, []
            for one in due:
                text = one.take(time.time())
                message = type(factory).make_io_message(factory, text, LOGPOINT)
                writer.add_command(one.placed(message))

    def end(self) -> None:
        """The program is over: tell the rest, and let the thread end, for pydevd waits for it."""
        self._over.set()
        self.tell()

    def _logpoint(self, breakpoint: Any, frame: Any) -> Logpoint | None:
        if not self._attached or not getattr(breakpoint, "is_logpoint", False):
            return None
        logpoint: Logpoint | None = getattr(breakpoint, KEPT_AS, None)
        if logpoint is None:
            logpoint = Logpoint(breakpoint.expression, _place_of(frame))
            setattr(breakpoint, KEPT_AS, logpoint)
        return logpoint

    def _folding(self, make: Any) -> Any:
        def make_unless_left_out(text: str, stream: Any) -> Any:
            logpoint = getattr(self._hit, "logpoint", None) if stream == LOGPOINT else None
            if logpoint is None:
                return make(text, stream)
            told = self._is_told(logpoint, text)
            return logpoint.placed(make(text, stream)) if told else self._left_out

        return make_unless_left_out

    def _for_told_lines(self, add_command: Any) -> Any:
        """The writer's thread is not even woken for a line that is left out."""

        def add_unless_left_out(command: Any) -> Any:
            return None if command is self._left_out else add_command(command)

        return add_unless_left_out

    def _is_told(self, logpoint: Logpoint, text: str) -> bool:
        with self._lock:
            if not self._attached or logpoint.is_told(text, time.time()):
                return True
            if logpoint.left_out == 1:
                self._pending.append(logpoint)
            if not self._thread_runs:
                self._thread_runs = True
                self._start(self._debugger, self._tell_each_second)
            return False

    def _tell_each_second(self) -> None:
        while not self._over.wait(1 - time.time() % 1):
            with self._lock:
                self._thread_runs = bool(self._pending)
                if not self._thread_runs:
                    return
                self.tell()


def fold_logpoints(debugger: Any) -> None:
    """From now on, until it is left, `debugger`, a PyDB, folds what its logpoints say."""
    folder = vars(debugger).get(KEPT_AS)
    if folder is None:
        folder = Folder(debugger)
        _install(debugger, folder)
        setattr(debugger, KEPT_AS, folder)
    folder.attach()


def _install(debugger: Any, folder: Folder) -> None:
    wait, disconnected = debugger.do_wait_suspend, debugger.on_disconnect
    dispose = debugger.dispose_and_kill_all_pydevd_threads

    def tell_and_wait(*arguments: Any, **named: Any) -> Any:
        with suppress(Exception):
            folder.tell()  # it was said before the stop
        return wait(*arguments, **named)

    def detach_and_disconnect() -> None:
        folder.detach()
        disconnected()

    def end_and_dispose(*arguments: Any, **named: Any) -> Any:
        with suppress(Exception):
            folder.end()
        return dispose(*arguments, **named)

    debugger.handle_breakpoint_expression = folder.evaluate
    debugger.do_wait_suspend = tell_and_wait
    debugger.on_disconnect = detach_and_disconnect
    debugger.dispose_and_kill_all_pydevd_threads = end_and_dispose


def _place_of(frame: Any) -> dict[str, Any] | None:
    """Return where a frame is, as fields of an `output` event; the path is the client's."""
    with suppress(Exception):
        files = import_module("pydevd_file_utils")
        path = files.get_abs_path_real_path_and_base_from_frame(frame)[0]
        return {"source": {"path": files.map_file_to_client(path)[0]}, "line": frame.f_lineno}
    return None


def _compiled_text(expression: str) -> Any:
    """None where pydevd has to say what is wrong with it."""
    try:
        # as `eval` takes a text
        return compile(expression.lstrip(" \t"), "<string>", "eval", 0, True)
    except (SyntaxError, ValueError):
        return None


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1 else f"{max(seconds, 0.001):.1g} s"
