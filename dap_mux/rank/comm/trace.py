"""Writes down what a rank's watch sees: lines of JSON in a file of its own, each of them whole."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_mux.rank.comm.record import C10D, Call

if TYPE_CHECKING:  # a rank may have Python 3.8
    from dap_mux.rank.comm.record import Record
    from dap_mux.rank.comm.steps import Step

MOST_LINES = 4096
"""Kept in memory between two steps; more are written at once."""


class Trace:
    """The file of one rank, written at the end of each step, when much has come, and at the end.

    Lines are in the order in which things began: `head`, `group`, `call`, `op`, `step`. A call that
    is still open holds back what comes after it, as its outputs are not known.
    """

    def __init__(self, folder: str, rank: int | None, record: Record) -> None:
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        self._file = (path / f"rank-{os.getpid() if rank is None else rank}.jsonl").open("wb", 0)
        self._pid = os.getpid()
        self._lock = threading.RLock()  # a finalizer may make a call while lines are written
        self._lines: list[Any] = []
        self._groups: set[str] = set()
        self._record = record
        torch: Any = sys.modules["torch"]
        self.add({"kind": "head", "rank": rank, "torch": str(torch.__version__), "argv": sys.argv})
        record.entered.append(self._call)

    def add(self, line: dict[str, Any] | Call) -> None:
        """Add a line, or a call that will be one."""
        if os.getpid() != self._pid:  # a forked child has the parent's file
            return
        with self._lock:
            self._lines.append(line)
            if len(self._lines) % MOST_LINES == 0:
                self.flush()

    def _call(self, call: Call) -> None:
        name = call.group[0]
        if name not in self._groups:
            self._groups.add(name)
            self.add({"kind": "group", "name": name, "ranks": _ranks_of(name)})
        self.add(call)

    def step(self, step: Step) -> None:
        """Add the end of a step, and write."""
        said = {name: getattr(step, name) for name in step.__slots__}
        calls = {name: call.number for (name, p2p), call in self._record.newest.items() if not p2p}
        self.add({**said, "kind": "step", "calls": calls})
        if os.getpid() == self._pid:
            self.flush()

    def flush(self, *, all_of_it: bool = False) -> None:
        """Write the lines that are complete; at the end all of them."""
        with self._lock:
            lines, count = self._lines, 0
            for line in lines:
                if isinstance(line, Call) and line.is_open and not all_of_it:
                    break
                count += 1
            self._lines = lines[count:]
            text = "".join(json.dumps(_plain(line)) + "\n" for line in lines[:count])
            self._file.write(text.encode())

    def end(self) -> None:
        """Write what is left."""
        if self._call in self._record.entered:
            self._record.entered.remove(self._call)
        if os.getpid() == self._pid:
            self.flush(all_of_it=True)
        self._file.close()


def _plain(line: dict[str, Any] | Call) -> dict[str, Any]:
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
        "inputs": line.inputs,
        "outputs": line.outputs,
        "tensors": line.addresses,
    }


def _ranks_of(group: str) -> list[int]:
    c10d: Any = sys.modules[C10D]
    for each, name in [*c10d._world.pg_names.items()]:  # noqa: SLF001  (no public way by name)
        if name == group:
            return [*map(int, c10d.get_process_group_ranks(each))]
    return []
