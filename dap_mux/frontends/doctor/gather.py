"""Collects observations about what the user named, or about everything that is found."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Final

from dap_mux.cluster.endpoints import read_endpoint
from dap_mux.cluster.records import RankRecord
from dap_mux.frontends.doctor.machine import (
    LAUNCH,
    Configuration,
    Machine,
    Process,
    inspect_python,
    process,
    read_launch_json,
)
from dap_mux.frontends.doctor.observations import (
    ATTACHED,
    KIND_BY_OUTCOME,
    FilePlace,
    HolderKind,
    Join,
    Json,
    Observations,
    SessionSnapshot,
    Subject,
    id_of,
    looks_well,
    probe,
    take_snapshot,
)
from dap_mux.pure.endpoint import is_loopback
from dap_mux.pure.errors import DapMuxError, UsageError
from dap_mux.system import procfs
from dap_mux.system.session_files import SessionFile, find, running

PID: Final = "pid:"
NUMBER: Final = re.compile(r"[0-9]{1,9}")
RECHECK_DELAY_S: Final = 1.0  # s
EXITED_STATES: Final = ("exited",)
CLOSED_OUTCOMES: Final = ("hung up", "refused")


@asynccontextmanager
async def gathered(
    words: Sequence[str], files: Sequence[str], pythons: Sequence[str], folder: Path, join: Join
) -> AsyncIterator[Observations]:
    """Return all observations; sessions stay joined while the block runs.

    `words`: sessions and endpoints; `files`: with lines; `pythons`: commands of Pythons.

    Raises `DapMuxError` for invalid arguments, and if a named session cannot be joined.
    """
    observed = Observations(Machine.read(), places=[_place(text, folder) for text in files])
    sessions, endpoints = await _sorted(words, observed)
    narrowed = not sessions and (endpoints or observed.processes)
    only = {each.endpoint for each in endpoints} if narrowed else None
    async with AsyncExitStack() as stack:
        for session in sessions or running():
            await _join(stack, observed, session, join, named=bool(sessions), only=only)
        if not words:
            _read_launch(folder, observed)
        observed.subjects += [each for each in endpoints if not _is_attached(each, observed)]
        observed.elsewhere = _elsewhere(observed, folder)
        observed.subjects = await _examined(observed)
        observed.pythons = [await inspect_python(command) for command in pythons]
        observed.looked_at += [f"the Python of `{command}`" for command in pythons]
        observed.looked_at += map(_not_started, _pythons_of(observed.configurations))
        yield observed


async def _sorted(
    words: Iterable[str], observed: Observations
) -> tuple[list[SessionFile], list[Subject]]:
    sessions: list[SessionFile] = []
    endpoints: list[Subject] = []
    known = {each.address: each for each in running()}
    for word in words:
        if word in known or (word.endswith(".json") and not word.startswith("@")):
            sessions.append(known.get(word) or find(word))
        elif word.startswith(PID):
            observed.processes += _pids(word)
            observed.looked_at.append(f"process {word.removeprefix(PID)}")
        else:
            records = await _records(word)
            endpoints += [Subject(each.host, each.port, word) for each in records]
            observed.looked_at.append(word)
    return sessions, endpoints


async def _records(word: str) -> Sequence[RankRecord]:
    """Return the ranks that an endpoint or a ranks file spells out; others need a session."""
    named = read_endpoint(word)
    if named.source is None:
        return named.records
    if not word.rpartition("=")[2].startswith("@"):
        raise UsageError(
            f"{word}: such ranks are examined through a session: run "
            f"`dap-mux attach {word}`, and `dap-mux doctor` beside it"
        )
    return await named.source.discover()


def _pids(word: str) -> list[int]:
    numbers = word.removeprefix(PID).split(",")
    if not all(NUMBER.fullmatch(number) for number in numbers):
        raise UsageError(f"{word!r}: write pid:1234, the id of a running process")
    return [int(number) for number in numbers]


def _place(text: str, folder: Path) -> FilePlace:
    path, _, line = text.rpartition(":")
    if path and NUMBER.fullmatch(line):
        return FilePlace(str((folder / path).absolute()), int(line))
    if not (folder / text).exists():
        raise UsageError(f"--file {text}: there is no such file")
    return FilePlace(str((folder / text).absolute()), None)


# Sessions


async def _join(
    stack: AsyncExitStack,
    observed: Observations,
    session: SessionFile,
    join: Join,
    *,
    named: bool,
    only: set[str] | None,
) -> None:
    """Add what a session shows; with `only`, if it has one of these endpoints."""
    try:
        client = await stack.enter_async_context(join(session))
        snapshot = await take_snapshot(session, client)
    except DapMuxError as error:
        if named:
            raise
        observed.looked_at.append(f"session {session.address}, which could not be joined: {error}")
        return
    if only is not None and not any(entry["endpoint"] in only for entry in snapshot.ranks):
        return
    observed.snapshots.append(snapshot)
    ranks = [entry for entry in snapshot.ranks if entry["worker"] is None]
    observed.looked_at.append(f"session {snapshot.address} with {len(ranks)} ranks")
    # Ranks that dial out have no port to examine.
    listening = [one for one in ranks if one["endpoint"] is not None]
    troubled = [one for one in listening if one["state"] not in (*ATTACHED, *EXITED_STATES)]
    observed.subjects += [_of_session(snapshot, one) for one in troubled]


def _of_session(snapshot: SessionSnapshot, entry: Json) -> Subject:
    host = str(entry["endpoint"]).rpartition(":")[0].strip("[]")
    there = process(entry["pid"]) if entry["pid"] and is_loopback(host) else None
    return Subject(
        host,
        _port_of(str(entry["endpoint"])),
        f"session {snapshot.address}",
        rank=id_of(entry),
        default_group=snapshot.default_group,
        session=snapshot.address,
        session_pid=snapshot.pid,
        state=entry["state"],
        reason=entry["reason"] or "",
        rank_process=there if there and there.debugs else None,
    )


def _is_attached(subject: Subject, observed: Observations) -> bool:
    """Whether a session is attached to this rank, so that it is examined there."""
    entries = [entry for snapshot in observed.snapshots for entry in snapshot.ranks]
    return any(entry["endpoint"] == subject.endpoint for entry in entries)


# The folder


def _read_launch(folder: Path, observed: Observations) -> None:
    observed.configurations, problem = read_launch_json(folder)
    if problem:
        observed.looked_at.append(f"{LAUNCH}, which cannot be read: {problem}")
    elif observed.configurations:
        observed.looked_at.append(str(LAUNCH))
    doors = [session.port for session in running()]
    for one in observed.configurations:
        host, port = one.address or ("", 0)
        if port and not (is_loopback(host) and port in doors):
            observed.subjects.append(Subject(host, port, one.where, for_editors=True))


def _pythons_of(configurations: Iterable[Configuration]) -> list[str]:
    """Return the Pythons of launch configurations."""
    started = [one.values for one in configurations if one.values.get("request") == "launch"]
    found = [values["python"] for values in started if isinstance(values.get("python"), str)]
    return [text for text in dict.fromkeys(found) if "$" not in text]


def _not_started(command: str) -> str:
    """A file that came with a folder starts nothing: the user is shown the command."""
    typed = f"dap-mux doctor --python {quote(command)}"
    return f"not the Python that {LAUNCH} names; to look at it, type `{typed}`"


# This machine


def _elsewhere(observed: Observations, folder: Path) -> dict[int, Process]:
    """Return debugpys that were started in this folder and are otherwise unknown."""
    named = {each.port for each in observed.subjects}
    named |= {
        _port_of(str(entry["endpoint"]))
        for snapshot in observed.snapshots
        for entry in snapshot.ranks
    }
    here = folder.resolve()
    return {
        port: holder
        for port, holder in observed.machine.debugpy_ports()
        if port not in named and holder.folder == here
    }


async def _examined(observed: Observations) -> list[Subject]:
    """Inspect the sockets, twice if something is unusual, then probe all endpoints at once."""
    looked = [_looked(each, observed.machine) for each in observed.subjects]
    if not all(map(looks_well, looked)):
        await asyncio.sleep(RECHECK_DELAY_S)
        observed.machine = Machine.read()
        looked = [_looked(each, observed.machine) for each in observed.subjects]
    return await asyncio.gather(*map(_probed, looked))


def _looked(subject: Subject, machine: Machine) -> Subject:
    """Look up a local address in this machine's tables."""
    if not (subject.here and machine.known):
        return subject
    listener = machine.listener(subject.host, subject.port)
    if listener is None:
        there = subject.rank_process or _started_for(subject.port)
        return replace(subject, who="nobody", rank_process=there)
    holder = machine.holder(listener)
    clients = machine.clients(listener)
    return replace(
        subject,
        who=_who(holder),
        listener=listener,
        holder=holder,
        clients=tuple(each for each in clients if not each or each.pid != subject.session_pid),
        left=machine.left(listener),
    )


def _who(holder: Process | None) -> HolderKind:
    if holder is None:
        return "unknown"
    if holder.is_adapter or holder.debugs:
        return "debugpy"
    if holder.forwards:
        return "forwarder"
    if holder.is_ours:
        return "dap-mux"
    # debugpy may be loaded in a Python without being visible
    return "unknown" if holder.is_python else "stranger"


def _started_for(port: int) -> Process | None:
    """Return the running process that was started with `debugpy --listen` on this port."""
    for pid in procfs.pids():
        found = process(pid)
        words = found.words if found else ()
        wanted = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "--listen"]
        if found and found.debugs and any(_port_of(each) == port for each in wanted):
            return found
    return None


def _port_of(address: str) -> int:
    last = address.rpartition(":")[2]
    return int(last) if NUMBER.fullmatch(last) else 0


async def _probed(subject: Subject) -> Subject:
    """Probe an endpoint if nothing else is conclusive and no session has the rank.

    That includes a local debugpy: whether it responds is not visible otherwise.
    """
    in_vain = subject.who not in ("unknown", "forwarder", "debugpy")
    if subject.session or in_vain or not looks_well(subject):
        return subject
    told = await probe(subject.host, subject.port)
    if subject.who == "debugpy" and told.outcome in CLOSED_OUTCOMES:
        now = _looked(subject, Machine.read())
        if now.who == "nobody":
            return now  # the adapter has ended in the meantime
    return replace(subject, talk=told, who=KIND_BY_OUTCOME.get(told.outcome, subject.who))
