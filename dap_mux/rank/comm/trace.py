"""Writes down what a rank's watch sees: lines of JSON in a file of its own, each of them whole."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_mux.rank.comm.record import Call

if TYPE_CHECKING:  # a rank may have Python 3.8
    from dap_mux.rank.comm.record import Record
    from dap_mux.rank.comm.steps import Step

MOST_LINES = 4096
"""Kept in memory between two steps; more are written at once."""
WRITES_S = 1.0
"""A program of mpi4py has no steps: what it has called is written from time to time."""


class Trace:
    """The file of one rank, written after each step, a second, or many lines, and at the end.

    Lines are in the order in which things began: `head`, `group`, `call`, `op`, `step`. A call that
    is still open, or whose outputs have no hashes yet, holds back what comes after it.
    """

    def __init__(self, folder: str, rank: int | None) -> None:
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        self._file = (path / f"rank-{os.getpid() if rank is None else rank}.jsonl").open("wb", 0)
        self._pid = os.getpid()
        self._lock = threading.RLock()  # a finalizer may make a call while lines are written
        self._lines: list[Any] = []
        self._groups: set[str] = set()
        self._records: list[Record] = []
        self._written = time.monotonic()
        torch = str(getattr(sys.modules.get("torch"), "__version__", ""))
        self.add({"kind": "head", "rank": rank, "torch": torch, "argv": sys.argv})

    def follow(self, record: Record) -> None:
        """Add the calls of a record, torch's or mpi4py's, from now on."""
        self._records.append(record)
        record.entered.append(self._call)

    def add(self, line: dict[str, Any] | Call) -> None:
        """Add a line, or a call that will be one."""
        if os.getpid() != self._pid:  # a forked child has the parent's file
            return
        with self._lock:
            self._lines.append(line)
            if len(self._lines) % MOST_LINES == 0 or time.monotonic() > self._written + WRITES_S:
                self.flush()

    def _call(self, call: Call) -> None:
        name = call.group[0]
        if name not in self._groups:
            self._groups.add(name)
            self.add({"kind": "group", "name": name, "ranks": call.ranks})
        self.add(call)

    def step(self, step: Step) -> None:
        """Add the end of a step, and write."""
        self.add(step_line(step, *self._records))
        if os.getpid() == self._pid:
            self.flush()

    def flush(self, *, all_of_it: bool = False) -> None:
        """Write the lines that are complete; at the end all of them."""
        with self._lock:
            lines, count, self._written = self._lines, 0, time.monotonic()
            for line in lines:
                is_pending = isinstance(line, Call) and (line.is_open or line.written)
                if is_pending and not all_of_it:
                    break
                count += 1
            self._lines = lines[count:]
            text = "".join(json.dumps(plain(line)) + "\n" for line in lines[:count])
            self._file.write(text.encode())

    def end(self) -> None:
        """Write what is left."""
        for record in self._records:
            record.entered.remove(self._call)
        if os.getpid() == self._pid:
            self.flush(all_of_it=True)
        self._file.close()


def step_line(step: Step, *records: Record) -> dict[str, Any]:
    """Return the line of a step that has just ended, with the calls of torch's or mpi4py's."""
    newest = [each for record in records for each in record.newest.items()]
    calls = {name: call.number for (name, p2p), call in newest if not p2p}
    return {**vars(step), "kind": "step", "calls": calls}


def plain(line: dict[str, Any] | Call) -> dict[str, Any]:
    """Return a line as it is written."""
    if isinstance(line, dict):
        return line
    return {
        "kind": "call",
        "name": line.kind,
        "group": line.group[0],
        "number": line.number,
        "peer": line.peer,
        "shape": line.shape,
        "dtype": str(line.dtype or ""),
        "place": line.place,
        "inputs": [*map(str, line.inputs)],
        "outputs": [*map(str, line.outputs)],
        "tensors": line.addresses,
    }
