"""Which ranks a Dask cluster has: from its workers, and from where each of them listens."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

RESTART_TIMEOUT_S = 30.0  # for a Nanny to start its worker again
GROUP = "dask"
SCHEDULER = "scheduler"
DRIVER = "client"
TASK_THREADS = "*Dask-*-Threads*"
"""Threads of other workers in the same process, whose own executors are not asked."""
MAX_PATTERN, MAX_PATTERNS = 128, 16  # as a session takes them
LOOPBACK = "127.0.0.1"
RESTARTS = "its worker process has ended; its Nanny starts another"

Report = Mapping[str, Any]
"""Where a process listens (`host`, `port`, `pid`, `machine`), or why it does not (`problem`)."""


class DaskRanks:
    """The ranks of a cluster over time: a worker that is started again keeps its number.

    `machine`: which one this process runs on, as workers report theirs. `driver`: the pid of the
    driver there, where that is a rank already.
    """

    def __init__(self, machine: str, driver: int | None = None) -> None:
        self._machine = machine
        self._driver = {"group": DRIVER, "rank": 0, "machine": machine, "pid": driver}
        self._numbers: dict[str, int] = {}
        self._records: dict[str, dict[str, Any]] = {}
        self._lost: dict[str, float] = {}
        self.notices: dict[str, None] = {}
        """Messages for the user, in order."""

    def scheduler(self, address: str, report: Report) -> list[dict[str, Any]]:
        """Return the rank of the scheduler; none where it cannot be debugged."""
        if report.get("problem"):
            self.notices[f"the scheduler cannot be debugged: {report['problem']}"] = None
        return [self._record(SCHEDULER, 0, address, report)] if report.get("port") else []

    def workers(
        self,
        workers: Mapping[str, Mapping[str, Any]],
        reports: Mapping[str, Report],
        others: list[dict[str, Any]],
        now: float,
    ) -> list[dict[str, Any]]:
        """Return the ranks of the workers, and `others` (the scheduler) where they are apart.

        `workers` are those that the scheduler knows, by address; `now` is in seconds.
        """
        self._number(workers)
        present = {_slot(address, workers[address]): address for address in workers}
        for slot in self._records.keys() - present.keys():
            self._lose(slot, now)
        for slot, address in present.items():
            self._lost.pop(slot, None)
            if address in reports:
                self._take(slot, address, workers[address], reports[address])
        ranks = sorted(self._records.values(), key=lambda each: int(each["rank"]))
        return [*self._of_own_process([*ranks, *others])]

    def _number(self, workers: Mapping[str, Mapping[str, Any]]) -> None:
        for address in sorted(workers, key=lambda each: _by_name(workers[each].get("name", each))):
            slot = _slot(address, workers[address])
            if slot not in self._numbers:
                self._numbers[slot] = self._free(workers[address].get("name"))

    def _free(self, name: object) -> int:
        """Return a worker's number: its name, where that is one, else the lowest free one."""
        used = {*self._numbers.values()}
        if isinstance(name, int) and name >= 0 and name not in used:
            return name
        return next(number for number in count() if number not in used)

    def _take(self, slot: str, address: str, worker: Mapping[str, Any], report: Report) -> None:
        if report.get("problem"):
            name = worker.get("name", address)
            self.notices[f"worker {name} cannot be debugged: {report['problem']}"] = None
            self._records.pop(slot, None)
        else:
            self._records[slot] = self._record(GROUP, self._numbers[slot], address, report)

    def _lose(self, slot: str, now: float) -> None:
        """A worker has gone: for good, unless its Nanny starts it again in time."""
        since = self._lost.setdefault(slot, now)
        if slot.startswith(_NANNY) and now - since < RESTART_TIMEOUT_S:
            self._records[slot] = {**self._records[slot], "waits": RESTARTS}
        else:
            del self._records[slot], self._lost[slot]

    def _record(self, group: str, rank: int, address: str, report: Report) -> dict[str, Any]:
        near = report["machine"] == self._machine
        return {
            "group": group,
            "rank": rank,
            "host": LOOPBACK if near else _host(address),
            "port": report["port"],
            "pid": report["pid"],
            "userThreads": [TASK_THREADS, *_patterns(report.get("threads", []))],
            "swallowsExceptions": True,
            "awaitsDebugger": True,
            "incarnation": f"{address} {report['pid']}",
            "machine": report["machine"],
        }

    def _of_own_process(self, ranks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the first rank of each process: a process has one debugger."""
        first = {(self._machine, self._driver["pid"]): self._driver}
        for one in ranks:
            process = first.setdefault((one["machine"], one["pid"]), one)
            if process is one:
                yield {key: text for key, text in one.items() if key != "machine"}
            elif "waits" not in one:
                text = (
                    f"{_name(one)} runs in the process of {_name(process)}, and is debugged there"
                )
                self.notices[text] = None


_NANNY = "nanny "


def _patterns(prefixes: list[str]) -> Iterator[str]:
    for prefix in prefixes[:MAX_PATTERNS]:
        pattern = f"{glob.escape(prefix)}*"
        if len(pattern) <= MAX_PATTERN:
            yield pattern


def _slot(address: str, worker: Mapping[str, Any]) -> str:
    """Return the key under which a restarted worker is the same one: its Nanny, if it has one."""
    nanny = worker.get("nanny")
    return f"{_NANNY}{nanny}" if nanny else address


def _by_name(name: object) -> tuple[bool, list[tuple[bool, int, str]]]:
    """The order of workers: numbers first, and worker-9 before worker-10."""
    parts = re.findall(r"\d+|\D+", str(name))
    return not isinstance(name, int), [
        (not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts
    ]


def _host(address: str) -> str:
    """The host of `tcp://HOST:PORT`, without the brackets of an IPv6 address."""
    return address.partition("://")[2].rpartition(":")[0].strip("[]")


def _name(record: Mapping[str, Any]) -> str:
    return f"{record['group']}:{record['rank']}"
