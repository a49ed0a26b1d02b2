"""What a process tells of its own threads: each of them waits for something real."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from dap_mux.engine.job_insight.gather_evidence import SAMPLE, EvidenceAnswer
from dap_mux.pure.insight.why.evidence import Call, Sample, Thread, stack_of
from dap_mux.rank.injected.evidence import MAX_CHARS, evidence, fitting
from dap_mux.rank.injected.evidence.stacks import Found, Place
from dap_mux.session.session import injected_sources

SOURCES: Final = injected_sources().all
BUNDLE: Final = injected_sources().bundles["evidence"]
WITHIN: Final = 30.0  # s; not a wait
HERE: Final = __file__
linux = pytest.mark.skipif(sys.platform != "linux", reason="it has no /proc")
positions = pytest.mark.skipif(sys.version_info < (3, 11), reason="lines are all that frames know")


class Scene:
    """Threads of a test, which end with it."""

    def __init__(self) -> None:
        self.leave = threading.Event()
        self.ends = ExitStack()

    def start(self, function: Callable[[], object], name: str) -> None:
        """Run a function until `leave` is set, or what it waits for is done."""

        def run() -> None:
            with suppress(OSError, RuntimeError):
                function()

        thread = threading.Thread(target=run, name=name)
        thread.start()
        self.ends.callback(thread.join)

    def waiting(self, name: str, text: str = "") -> tuple[Thread, Call]:
        """Return a thread and its innermost call once that is this one, and it sleeps."""
        deadline = time.monotonic() + WITHIN
        while True:
            found = {thread.name: thread for thread in sample().threads}[name]
            call = found.call
            if call is not None and text in call.text and found.state in {"S", ""}:
                return found, call
            assert time.monotonic() < deadline, f"{name} does not wait: {found}"


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    with made.ends:
        yield made
        made.leave.set()


def sample() -> Sample:
    """What this process tells of itself."""
    return msgspec.json.decode(evidence(SOURCES), type=Sample)


def identity(lock: object) -> str:
    return f"{type(lock).__module__}.{type(lock).__qualname__} {id(lock):x}"


def test_the_main_thread_comes_first_and_stands_here() -> None:
    told = sample()
    first = told.threads[0]
    assert (first.name, first.main) == ("MainThread", True)
    frame = stack_of(told, first)[-2]
    assert (frame.path, frame.function, frame.library) == (
        HERE,
        "test_the_main_thread_comes_first_and_stands_here",
        False,
    )
    assert (told.recorder, told.collectives, told.finalizing) == ("", [], False)
    assert first.call is None, "it is in this very call"


@linux
def test_what_the_system_knows() -> None:
    """This thread reads it itself, so it runs, and its own call is not told."""
    first = sample().threads[0]
    assert (first.tid, first.state, first.system_call) == (os.getpid(), "R", "")
    before = time.thread_time()
    assert before - 1 < first.cpu < before + 1


def test_a_function_of_c_and_its_arguments(scene: Scene) -> None:
    class Settings:
        seconds = 0.25

    def nap() -> None:
        while not scene.leave.is_set():
            time.sleep(Settings.seconds)

    scene.start(nap, "sleeper")
    thread, call = scene.waiting("sleeper", "time.sleep")
    assert call.text == "time.sleep(Settings.seconds)"
    assert (call.function, call.arguments) == ("time.sleep", {"0": 0.25})
    assert (thread.lock, thread.holds, thread.handling) == ("", [], "")


def test_a_socket_and_its_peer(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
    scene.ends.callback(client.close)
    scene.ends.callback(accepted.close)
    size = 4

    def receive() -> None:
        client.recv(size, -0)

    scene.start(receive, "receiver")
    scene.ends.callback(accepted.send, b"over")
    thread, call = scene.waiting("receiver", "client.recv")
    assert call.function == "_socket.socket.recv"
    assert call.arguments == {"0": 4, "1": 0}
    assert call.of == {"fd": client.fileno(), "peer": f"127.0.0.1:{port}"}
    if sys.platform == "linux":
        assert (thread.system_call, thread.file[:8]) == ("recvfrom", "socket:[")


def test_a_file_that_has_nothing_to_read(scene: Scene, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = os.open(fifo, os.O_RDWR)
    scene.ends.callback(os.close, writer)
    reader = fifo.open("rb")
    scene.ends.callback(reader.close)

    def read() -> None:
        reader.read(3)

    scene.start(read, "reader")
    scene.ends.callback(os.write, writer, b"end")
    thread, call = scene.waiting("reader", "reader.read")
    assert call.function == "_io.BufferedReader.read"
    assert (call.arguments, call.of) == ({"0": 3}, {"name": str(fifo)})
    if sys.platform == "linux":
        assert (thread.system_call, thread.file) == ("read", str(fifo))


def test_opening_a_file_that_nobody_writes(scene: Scene, tmp_path: Path) -> None:
    fifo = str(tmp_path / "fifo")
    os.mkfifo(fifo)

    def read() -> None:
        os.close(os.open(fifo, os.O_RDONLY))

    scene.start(read, "opener")
    scene.ends.callback(lambda: os.close(os.open(fifo, os.O_WRONLY)))
    thread, call = scene.waiting("opener", "os.open")
    assert call.arguments == {"0": fifo, "1": os.O_RDONLY}
    if sys.platform == "linux":
        assert thread.system_call == "openat"


def test_a_loop_over_a_pipe(scene: Scene) -> None:
    incoming, outgoing = os.pipe()
    lines = os.fdopen(incoming)
    scene.ends.callback(lines.close)

    def read() -> None:
        for line in lines:
            assert line

    scene.start(read, "reader")
    scene.ends.callback(os.close, outgoing)
    _, call = scene.waiting("reader", "for line in lines")
    assert call.function == "_io.TextIOWrapper.__next__"
    assert call.of == {"name": incoming}


def test_two_threads_that_wait_for_each_others_locks(scene: Scene) -> None:
    first, second = threading.Lock(), threading.RLock()
    both = threading.Barrier(2)

    def one() -> None:
        with first:
            both.wait()
            if second.acquire(timeout=WITHIN):
                second.release()

    def other() -> None:
        with second:
            both.wait()
            while not first.acquire(timeout=0.2):
                if scene.leave.is_set():
                    return
            first.release()

    scene.start(one, "one")
    scene.start(other, "other")
    waits, call = scene.waiting("one", "second.acquire")
    assert (waits.lock, waits.owner) == (identity(second), "other")
    assert waits.holds == [identity(first)]
    assert call.arguments == {"timeout": WITHIN}
    waits, _ = scene.waiting("other", "first.acquire")
    assert (waits.lock, waits.owner, waits.holds) == (identity(first), "", [identity(second)])


def test_a_lock_at_the_beginning_of_a_with(scene: Scene) -> None:
    class Store:
        def __init__(self) -> None:
            self._count = 0
            self.__lock = threading.Lock()
            self.changed = threading.Condition()

        def lock(self) -> threading.Lock:
            return self.__lock

        def use(self) -> None:
            with self.changed:
                self._count += 1
                with self.__lock:
                    self._count += 1

    store = Store()
    store.lock().acquire()
    scene.start(store.use, "user")
    scene.ends.callback(store.lock().release)
    thread, call = scene.waiting("user", "self.__lock")
    assert call.function == "_thread.lock.__enter__"
    assert thread.lock == identity(store.lock())
    assert thread.holds == [identity(vars(store.changed)["_lock"])]


@positions
def test_a_with_of_two_locks(scene: Scene) -> None:
    first, second = threading.Lock(), threading.Lock()

    def use() -> None:
        with first, second:
            pass

    second.acquire()
    scene.start(use, "user")
    scene.ends.callback(second.release)
    thread, _ = scene.waiting("user", "second")
    assert (thread.lock, thread.holds) == (identity(second), [identity(first)])


def test_a_condition_that_is_waited_for_is_not_held(scene: Scene) -> None:
    changed = threading.Condition()

    def consume() -> None:
        with changed:
            changed.wait()

    def notify() -> None:
        with changed:
            changed.notify_all()

    scene.start(consume, "consumer")
    scene.ends.callback(notify)
    thread, _ = scene.waiting("consumer", "waiter.acquire")
    assert thread.holds == []


class Reported(Exception):
    """One whose text is computed by the program."""

    def __str__(self) -> str:
        raise AssertionError("code of the program runs")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no loss"), "ValueError: no loss"),
        (FileNotFoundError(2, "gone", "x"), "FileNotFoundError: [Errno 2] gone: 'x'"),
        (KeyError(), "KeyError"),
        (ValueError(Reported()), "ValueError"),
        (Reported(), f"{__name__}.Reported"),
    ],
)
def test_the_exception_in_whose_handler_a_thread_is(
    scene: Scene, error: Exception, told: str
) -> None:
    def fail() -> None:
        try:
            raise error
        except Exception:  # noqa: BLE001  (any of them)
            scene.leave.wait()

    scene.start(fail, "handler")
    assert scene.waiting("handler")[0].handling == told


def test_an_exception_that_leaves_a_with(scene: Scene) -> None:
    class Slow:
        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            scene.leave.wait()

    def fail() -> None:
        with Slow():
            raise RuntimeError("late")

    scene.start(fail, "leaver")
    assert scene.waiting("leaver")[0].handling == "RuntimeError: late"


def test_nothing_of_the_program_runs(scene: Scene) -> None:
    ran = []

    class Odd:
        def __getattr__(self, name: str) -> Any:
            ran.append(name)
            raise AttributeError(name)

        @property
        def nap(self) -> Callable[[float], None]:
            if threading.current_thread().name != "sleeper":
                ran.append("nap")
            return time.sleep

        def __repr__(self) -> str:
            ran.append("repr")
            return "odd"

    odd = Odd()

    def nap() -> None:
        while not scene.leave.is_set():
            odd.nap(0.2)

    scene.start(nap, "sleeper")
    _, call = scene.waiting("sleeper", "odd.nap")
    assert (call.function, call.arguments) == ("", {"0": 0.2})
    assert ran == []


def test_a_part_that_fails_loses_nothing_else(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dap_mux.rank.injected.evidence._modules", {})
    broken = "def {}(*_):\n    raise RuntimeError\n"
    names = {"thread_states": "thread_state", "flight_recorder": "recorded"}
    sources = {**SOURCES, **{file: broken.format(name) for file, name in names.items()}}
    sources["flight_recorder"] += broken.format("world_rank")
    told = msgspec.json.decode(evidence(sources), type=Sample)
    assert told.threads[0].name == "MainThread"
    assert (told.threads[0].state, told.world_rank) == ("", -1)


def place(path: str = "train.py") -> Place:
    """Where a frame of this file is."""
    names: dict[str, Any] = {"sys": sys}
    exec(compile("frame = sys._getframe()", path, "exec"), names)
    return Place(names["frame"])


@pytest.mark.heavy
def test_a_long_answer_loses_the_oldest_collectives_and_then_threads() -> None:
    collectives = [{"group": "x" * 1000, "number": n, "kind": "send"} for n in range(100)]
    few = fitting({"collectives": collectives}, [({"name": "a", "main": True}, [])], Found)
    told = msgspec.json.decode(few, type=Sample)
    assert len(few) <= MAX_CHARS
    assert [one.number for one in told.collectives][-1] == 99
    assert 0 < len(told.collectives) < 60
    threads = [({"name": str(number), "main": False}, [place()] * 200) for number in range(100)]
    threads += [({"name": "long", "main": False}, [place("y" * MAX_CHARS)])]
    few = fitting({"collectives": collectives}, threads, Found)
    told = msgspec.json.decode(few, type=Sample)
    assert len(few) <= MAX_CHARS
    assert told.collectives == []
    assert [thread.name for thread in told.threads][:2] == ["0", "1"]


def test_names_that_are_no_text() -> None:
    odd = os.fsdecode(b"/tmp/\xff.py")
    text = fitting({}, [({"name": "\ud800", "main": True}, [place(odd)])], Found)
    told = msgspec.json.decode(text, type=Sample)
    assert (told.files[0][0], told.threads[0].name) == ("/tmp/?.py", "?")


@pytest.mark.parametrize("compiled", [True, False])
def test_the_expressions_that_ask(
    debugger: Any, monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    """In a frame with other builtins. They leave no name behind, and are run once."""
    monkeypatch.setattr("pydevd.get_global_debugger", lambda: debugger)
    names: dict[str, Any] = {"compile": True, "exec": None, "vars": 3}
    before = dict(names)

    def answer(expression: str) -> EvidenceAnswer:
        return msgspec.json.decode(eval(expression, {}, names), type=EvidenceAnswer)

    assert answer(BUNDLE.ask(SAMPLE)) == EvidenceAnswer(lacks="bytecode")
    first = answer(BUNDLE.bring(SAMPLE, compiled=compiled))
    (kept,) = (own for name, own in vars(debugger).items() if name.startswith("dap_mux_evidence"))
    assert {"waiting_calls", "stacks"} <= kept["_modules"].keys()
    run = dict(kept["_modules"])
    second = answer(BUNDLE.ask(SAMPLE))
    for told in (first, second):
        assert told.sample is not None
        names_of_main = [
            told.sample.functions[name] for _, name, _ in told.sample.threads[0].frames
        ]
        assert "answer" in names_of_main
    assert names == before
    assert all(kept["_modules"][name] is module for name, module in run.items())
