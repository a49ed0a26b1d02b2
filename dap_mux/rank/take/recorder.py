"""Writes down what this rank receives: the outputs of each communication, once they are there."""

from __future__ import annotations

import atexit
import json
import random
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_mux.rank.comm.looks import fingerprint, memory_of
from dap_mux.rank.comm.record import C10D, Call
from dap_mux.rank.take.data_files import DataFiles
from dap_mux.rank.take.rank_file import (
    ANY_SOURCE,
    CALL,
    FILE,
    LARGE,
    RECEIVED,
    SOURCE,
    STORE,
    Writer,
    digest_of,
    is_main,
    joined,
)
from dap_mux.rank.take.reasons import Remarks
from dap_mux.rank.take.stores import take as take_stores

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable, Sequence

    from dap_mux.rank.take.rank_file import Buffer


NO_LIMIT = 1 << 62
FIRST_STEPS = 2


class Recorder:
    """Follows the watch on communication (`Watch.taker`)."""

    def __init__(
        self,
        path: str,
        rank: int,
        world: int,
        environment: dict[str, str],
        limit: int,
        log: Callable[[str], object],
        *,
        digests: bool = False,
    ) -> None:
        self._writer = Writer(
            path,
            {
                "version": 1,
                "rank": rank,
                "world": world,
                "argv": [*getattr(sys, "orig_argv", sys.argv)],
                "program": sys.argv,
                "cwd": str(Path.cwd()),
                "digest": digest_of(sys.argv[0]),
                "environment": environment,
                "executable": sys.executable,
                "python": sys.version,
                "torch": getattr(sys.modules.get("torch"), "__version__", ""),
                "random": _random_state(),
            },
        )
        self._writing = threading.Lock()
        self._order = 0
        self._orders: dict[int, int] = {}
        self._path, self._limit, self._log = path, limit, log
        self._step = self._begun = 0
        self._remarks = Remarks()
        self._files = DataFiles(digests=digests)
        atexit.register(self.end)

    def follow(self, watch: Any) -> None:
        """Begin."""
        watch.taker = self
        watch.record.taken.append(self.received)
        take_stores(self._stored)

    def end(self) -> None:
        """Say what was written."""
        if self._limit:
            self._log(f"is taken to {self._path}: {self._order} calls, {self._writer.bytes} bytes")

    def enter(self, call: Call, outputs: list[Any]) -> None:
        """A call of torch's begins."""
        self.begin(call, [[str(each.dtype), [*each.shape]] for each in outputs])

    def begin(self, call: Call, outputs: list[list[Any]], **more: str) -> None:
        """A call begins; `outputs`: what each is of, and its shape."""
        with self._writing:
            if not self._goes_on(call):
                return
            for file in self._files.new():
                self._add(FILE, lambda: [json.dumps(file).encode()])  # noqa: B023  (called at once)
            self._order += 1
            self._orders[id(call)] = order = self._order
            remarks = self._remarks.on
            self._add(CALL, lambda: [_json(order, call, outputs, {**remarks(call), **more})])

    def _add(self, what: int, parts: Callable[[], Sequence[Buffer]]) -> None:
        """Write a block; where that fails, the rank goes on and is taken no further."""
        try:
            self._writer.add(what, *parts())
        except (OSError, ValueError) as error:
            self._log(f"is taken no further than call {self._order}: {error}")
            self._limit = 0
            self._orders.clear()

    def _goes_on(self, call: Call) -> bool:
        """Whether the limit allows more; once, after the second step, say how far it will do.

        The first step is not like the others: models are built and broadcast in it.
        """
        size = self._writer.bytes
        if self._limit and size > self._limit:
            self._log(f"is taken no further than step {call.step}: {size} bytes are the limit")
            self._limit = 0
        if self._limit and call.step > self._step and self._step < FIRST_STEPS:
            self._step, self._begun, begun = call.step, size, self._begun
            if self._step == FIRST_STEPS:
                each = size - begun
                held = call.step + (self._limit - size) // max(1, each)
                steps = f"; the limit holds {held} steps" if self._limit < NO_LIMIT else ""
                self._log(f"is taken at {each} bytes a step{steps}")
        return bool(self._limit)

    def received(self, call: Call, outputs: list[Any]) -> None:
        """A call's outputs are there, and nobody has used them yet."""
        call.written = []  # they need no second look

        def block(order: int) -> list[Buffer]:
            large = sum(each.nbytes for each in outputs) > LARGE and call.operator != ANY_SOURCE
            hashes = [*map(fingerprint, outputs)] if large else []
            return joined(order, _parts(call, outputs), [*map(bytes.fromhex, hashes)])

        self._write(call, block)

    def _stored(self, said: dict[str, Any]) -> None:
        with self._writing:
            if self._limit:
                self._add(STORE, lambda: [json.dumps(said, default=repr).encode()])

    def write(self, call: Call, parts: Sequence[Buffer]) -> None:
        """Write what a call has received."""
        self._write(call, lambda order: joined(order, parts))

    def _write(self, call: Call, block: Callable[[int], Sequence[Buffer]]) -> None:
        with self._writing:
            order = self._orders.pop(id(call), None)
            if order is not None:
                self._add(RECEIVED, lambda: block(order))

    def wrapped(self, call: Call, result: Any) -> Any:
        """Return what a call of DDP's reducer is given: nobody but C++ waits for its work.

        The work that it gets is complete once the outputs have been written down.
        """
        torch: Any = sys.modules["torch"]
        c10d: Any = sys.modules[C10D]
        outputs = call.written

        def write(done: Any) -> Any:
            self.received(call, outputs)
            return done.value()

        future = c10d.Work.unbox(result[-1]).get_future().then(write)
        work = torch._C._distributed_c10d._create_work_from_future(future)  # noqa: SLF001
        return (*result[:-1], work.boxed())


def _parts(call: Call, outputs: list[Any]) -> list[Buffer]:
    """Return what was received, and at last from whom where anybody could have sent it."""
    parts: list[Buffer] = [*map(memory_of, outputs)]
    if call.operator == ANY_SOURCE:
        parts.append(SOURCE.pack(call.work._source_rank()))  # noqa: SLF001
    return parts


def _json(order: int, call: Call, outputs: list[list[Any]], more: dict[str, Any]) -> bytes:
    said = {
        "order": order,
        "group": call.group[0],
        "number": call.number,
        "operator": call.operator,
        "kind": call.kind,
        "place": call.place,
        "step": call.step,
        "main": is_main(),
        "sent": [*map(str, call.inputs)],
        "outputs": outputs,
        **more,
    }
    return json.dumps(said).encode()


def _random_state() -> dict[str, Any]:
    version, numbers, gauss = random.getstate()
    return {"python": [version, [*numbers], gauss]}
