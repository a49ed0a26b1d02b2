"""The queue of pydevd's writer: in order while the connection keeps up, answers first where not."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from types import SimpleNamespace
from typing import Any, Final

import anyio
import pytest

from dap_mux.pure.protocol.messages import Framer
from dap_mux.rank.injected.attach import send_queue
from tests.support.processes.waiting import until

LIMIT: Final = 30.0  # s; not a wait
LEFT_OUT: Final = re.compile(r"\(([\d,]+) lines of output left out")
LINE: Final = "x" * 1000 + "\n"
MANY: Final = 7_000  # lines: more than a socket takes, and less than waits at most


class Connection:
    """A debugger with a writer of pydevd's, a thread, and the other end of its connection."""

    def __init__(self, debugger: Any, ours: socket.socket, theirs: socket.socket) -> None:
        self._net = import_module("_pydevd_bundle.pydevd_net_command")
        self._theirs = theirs
        self._framer = Framer()
        self.debugger = debugger
        comm = import_module("_pydevd_bundle.pydevd_comm")
        self.writer = comm.WriterThread(ours, debugger, terminate_on_socket_close=False)
        debugger.writer = self.writer

    def says(self, **message: Any) -> Any:
        """Let the rank send a message."""
        command = self._net.NetCommand(501, 0, message, is_json=True)
        self.writer.add_command(command)
        return command

    def prints(self, text: str) -> None:
        """Let it send what the program prints."""
        self.says(type="event", event="output", body={"output": text})

    def answers(self, number: int) -> None:
        """Let it answer a request."""
        self.says(type="response", request_seq=number, command="evaluate", success=True)

    def heard(self) -> Iterator[str]:
        """What arrives, one after the other; confirm what is to be confirmed."""
        while data := self._theirs.recv(1 << 16):
            for body in self._framer.feed(data):
                message = json.loads(body)
                if message.get("event") == send_queue.MARK:
                    self.writer._cmd_queue.confirmed(message["body"]["bytes"])
                    continue
                if message["type"] == "response":
                    yield f"answer {message['request_seq']}"
                else:
                    yield message.get("body", {}).get("output", message["event"])


@pytest.fixture
def connection(debugger: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    net = import_module("_pydevd_bundle.pydevd_net_command")
    monkeypatch.setattr(net, "get_protocol", lambda: net.HTTP_JSON_PROTOCOL)
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    theirs.settimeout(LIMIT)
    with ours, theirs:
        made = Connection(debugger, ours, theirs)
        made.writer.start()
        yield made
        ours.shutdown(socket.SHUT_RDWR)
        made.writer.do_kill_pydev_thread()
        made.writer.join(LIMIT)
        assert not made.writer.is_alive()


async def patched(connection: Connection) -> Any:
    """The queue, once the writer's thread waits for it."""
    for _ in range(2):
        send_queue.answers_first(connection.debugger)
    queue = connection.writer._cmd_queue
    assert isinstance(queue, send_queue.SendQueue)
    await until(lambda: not queue._busy, within=LIMIT, what="the writer waits")
    return queue


async def test_the_thread_that_has_a_message_sends_it(connection: Connection) -> None:
    queue = await patched(connection)
    taken: list[str] = []
    take = queue._take

    def note_and_take() -> Any:
        taken.append(threading.current_thread().name)
        return take()

    queue._take = note_and_take
    for number in range(3):
        connection.prints(f"line {number}")
        connection.answers(number)
    heard = connection.heard()
    assert [next(heard) for _ in range(6)] == [
        *("line 0", "answer 0", "line 1", "answer 1", "line 2", "answer 2")
    ]
    assert taken == []


async def test_what_was_said_before_comes_first(connection: Connection) -> None:
    """Also where the writer's thread has not come to it yet."""
    for number in range(100):
        connection.prints(f"line {number}")
    send_queue.answers_first(connection.debugger)
    connection.answers(1)
    heard = connection.heard()
    assert [next(heard) for _ in range(101)] == [*(f"line {n}" for n in range(100)), "answer 1"]


@pytest.mark.heavy
async def test_answers_and_stops_overtake_what_is_printed(connection: Connection) -> None:
    queue = await patched(connection)
    for number in range(MANY):
        connection.prints(f"{number} {LINE}")
    waiting = len(queue._later)
    connection.answers(1)
    connection.says(type="event", event="stopped", body={})
    connection.answers(2)
    heard = [*islice(connection.heard(), MANY + 3)]
    lines = [what for what in heard if what.endswith(LINE)]
    others = [what for what in heard if not what.endswith(LINE)]
    assert others[:3] == ["answer 1", "stopped", "answer 2"]
    assert MANY - waiting < (send_queue.WINDOW + len(LINE)) // len(LINE) + 1
    assert heard.index("answer 2") < MANY - waiting + 3
    assert lines == sorted(lines, key=lambda line: int(line.split()[0]))


async def test_what_is_too_much_is_left_out_and_counted(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 1 << 20
    monkeypatch.setattr(send_queue, "MAX_WAITING_OUTPUT", limit)
    queue = await patched(connection)
    for number in range(MANY):
        connection.prints(f"{number} {LINE}")
    assert 0 < queue._waiting_output <= limit
    told, lines, notes = 0, [], 0
    for what in connection.heard():
        note = LEFT_OUT.match(what)
        told += int(note[1].replace(",", "")) if note else 1
        notes += bool(note)
        lines += [] if note else [int(what.split()[0])]
        if told == MANY:
            break
    assert len(lines) < MANY
    assert lines == sorted(lines)
    assert lines[-1] == MANY - 1, "the oldest are left out"
    assert notes <= 1 + MANY * len(LINE) // (limit // 2)
    connection.prints("the next one")
    assert next(connection.heard()) == "the next one"


async def test_the_end_waits_for_what_is_printed(connection: Connection) -> None:
    """pydevd ends its writer's thread with a command of its own."""
    await patched(connection)
    for number in range(MANY):
        connection.prints(f"{number} {LINE}")
    connection.says(type="event", event="terminated")
    connection.writer.do_kill_pydev_thread()
    *lines, last = islice(connection.heard(), MANY + 1)
    assert len(lines) == MANY
    assert last == "terminated"


def test_a_late_confirmation_does_not_hold_up_the_end() -> None:
    """The writer's thread ends where it finds nothing to send, though much may wait."""
    window = send_queue.Window()
    window.limit(True)
    window.sends(2 * send_queue.WINDOW)
    assert window.is_shut()
    window.end()
    assert not window.is_shut()
    window.confirmed(1)
    assert not window.is_shut()


async def test_an_answer_that_waits_is_one_write(connection: Connection) -> None:
    """The adapter is woken by each."""
    queue = await patched(connection)
    answer = connection._net.NetCommand(501, 0, {"type": "response", "message": "é"}, is_json=True)
    queue._add(answer)
    before: list[bytes] = []
    after: list[bytes] = []
    answer.send(SimpleNamespace(sendall=before.append))
    queue._take().send(SimpleNamespace(sendall=after.append))
    assert len(before) == 2, "then debugpy does so itself"
    assert after == [b"".join(before)]


async def test_what_comes_after_a_message_is_done_by_the_writer(connection: Connection) -> None:
    """As pydevd hangs up behind the answer to `disconnect`."""
    queue = await patched(connection)
    done: list[str] = []
    command = connection._net.NetCommand(501, 0, {"type": "event", "event": "bye"}, is_json=True)
    command.call_after_send(lambda _: done.append(threading.current_thread().name))
    queue.put(command)
    assert next(connection.heard()) == "bye"
    await until(lambda: done, within=LIMIT, what="it is done")
    assert done == [connection.writer.name]


async def test_a_print_inside_of_a_print(connection: Connection) -> None:
    """A finalizer may print wherever it runs, also while its thread sends."""
    queue = await patched(connection)

    class Sock:
        """Prints when it is used."""

        def send(self, data: bytes, flags: int) -> int:
            connection.prints("inner")
            sent: int = connection.writer.sock.send(data[:10], flags)
            return sent

    queue._sock = Sock()
    connection.prints("outer")
    heard = connection.heard()
    assert [next(heard), next(heard)] == ["outer", "inner"]


async def test_a_forked_child_says_nothing(connection: Connection) -> None:
    await patched(connection)
    pid = os.fork()
    if not pid:
        connection.prints("of the child")
        os._exit(0)
    assert (await anyio.to_thread.run_sync(os.waitpid, pid, 0))[1] == 0
    connection.prints("of the parent")
    assert next(connection.heard()) == "of the parent"


async def test_a_session_that_confirms_nothing_gets_everything_in_the_end(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_queue, "PATIENCE_S", 0.3)
    queue = await patched(connection)
    queue.confirmed = lambda count: None
    for number in range(MANY):
        connection.prints(f"{number} {LINE}")
    lines = [*islice(connection.heard(), MANY)]
    assert [int(line.split()[0]) for line in lines] == [*range(MANY)]


async def test_it_is_not_limited_once_the_session_has_left(connection: Connection) -> None:
    queue = await patched(connection)
    for number in range(MANY):
        connection.prints(f"{number} {LINE}")
    await until(queue._window.is_shut, within=LIMIT, what="the window is shut")
    connection.debugger.on_disconnect()
    queue.confirmed = lambda count: None
    assert len([*islice(connection.heard(), MANY)]) == MANY
    send_queue.answers_first(connection.debugger)
    assert connection.writer._cmd_queue is queue
    assert queue._window._limited
