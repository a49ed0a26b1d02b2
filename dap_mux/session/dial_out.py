"""Ranks that call the session, for places where nothing may call in: the words, and the door.

`dial:4` on the command line of `attach` stands for ranks 0 to 3 of a group; they may call in any
order, at any time and again. Others that call are taken as well. See docs/dial-out.md.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from dap_mux import procfs
from dap_mux.addresses import is_loopback
from dap_mux.cluster.records import DEFAULT_GROUP
from dap_mux.config import Config
from dap_mux.config.values import Address
from dap_mux.engine import inputs
from dap_mux.engine.endpoint import Endpoint
from dap_mux.errors import Refused, UsageError
from dap_mux.rank_sets import RankId
from dap_mux.session.registration import MAX_RANKS, Registration, read_registration
from dap_mux.session.session import Session
from dap_mux.session.terminal_output import say
from dap_mux.session_files import session_folder
from dap_mux.shell.reverse_connections import Refusal, ReverseConnection, connector, listen_reverse

DIAL_ENDPOINT: Final = re.compile(r"(?:(?P<group>[A-Za-z_][\w.-]*)=)?dial:(?P<count>[^:]*)")
ADDRESS, TOKEN, TOKEN_FILE = "DAP_MUX_DIAL", "DAP_MUX_DIAL_TOKEN", "DAP_MUX_DIAL_TOKEN_FILE"
ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104  (addresses that nobody can call)
EXIT_CHECK_DELAYS_S: Final = (
    0.3,
    1.0,
    3.0,
)  # s after the end of a call: it takes a process a moment to end


def split_dial_endpoints(words: Sequence[str]) -> tuple[dict[str, int], list[str]]:
    """Split off the words that stand for ranks which call: how many of each group.

    Raises UsageError.
    """
    groups: dict[str, int] = {}
    rest = []
    for word in words:
        match = DIAL_ENDPOINT.fullmatch(word)
        if match is None:
            rest.append(word)
            continue
        number = match["count"]
        if not (number.isascii() and number.isdigit() and 1 <= int(number) <= MAX_RANKS):
            raise UsageError(f"{word}: say how many ranks will call, as in dial:4")
        group = match["group"] or DEFAULT_GROUP
        if group in groups:
            raise UsageError(f"{word}: the ranks of group {group} are there twice")
        groups[group] = int(number)
    return groups, rest


class ReverseRanks:
    """The calls of one session: which rank each is, held until the engine wants it.

    `expected`: how many of each group will call; None: the first of each group says so.
    """

    def __init__(
        self, session: Session, expected: Mapping[str, int] | None, *, ours: bool = False
    ) -> None:
        self._session = session
        self._ask_them = expected is None
        self._expected = {
            (group, rank) for group, n in (expected or {}).items() for rank in range(n)
        }
        self._missing = set(self._expected)
        self._ours = ours  # started by us, who see their ends ourselves
        self._now: dict[RankId, ReverseConnection] = {}
        self._held: set[RankId] = set()
        self._processes: dict[RankId, Registration] = {}
        self._here: set[RankId] = set()  # their processes can be seen from here
        self._numbers = count(1)

    def announce_ranks(self) -> None:
        """Tell the engine who will call."""
        self._introduce(self._expected)

    def _introduce(self, ranks: set[RankId]) -> None:
        self._session.expect(len(ranks))
        for group, rank in sorted(ranks):
            waiting = Endpoint("", 0, announces=True, dials=True)
            self._session.rank_known(group, rank, waiting)

    def _expect_all_of(self, process: Registration) -> None:
        """The first of a group says how many there are: the others are shown as waiting."""
        group = {(process.group, rank) for rank in range(process.size)}
        if self._ask_them and not group & self._expected:
            self._expected |= group
            self._introduce(group - set(self._processes))

    def called(self, call: ReverseConnection) -> Refusal | None:
        """A rank has shown the token: find its place (`shell.dial_in.Desk`)."""
        try:
            process = read_registration(call.rank)
        except ValueError as error:
            return Refusal(f"the session does not understand who calls: {error}", final=True)
        self._expect_all_of(process)
        id = self._place(process)
        other = self._now.get(id)
        if other is not None and self._processes[id] != process:
            there = self._processes[id].place
            return Refusal(f"rank {id[1]} of group {id[0]} is here already: {there}")
        if other is not None:
            other.abort()  # the rank knows best that this connection has ended
        self._now[id] = call
        self._held.add(id)
        self._processes[id] = process
        # A container beside us has our address and name, and numbers its processes anew.
        near = is_loopback(call.peer[0]) and process.host == socket.gethostname()
        self._here.discard(id)
        if near and not self._ours and procfs.runs(process.pid):
            self._here.add(id)
        self._tell(id, call, ready=True)
        self._count(id)
        return None

    def _place(self, process: Registration) -> RankId:
        """A rank without a number has the one it had, or the lowest that nobody has."""
        if process.rank is not None:
            return process.group, process.rank
        for id, known in self._processes.items():
            if known == process:
                return id
        taken = {id for id in self._processes if id in self._now or id not in self._expected}
        return next((process.group, n) for n in count() if (process.group, n) not in taken)

    def _count(self, id: RankId) -> None:
        if id in self._missing:
            self._missing.discard(id)
            if not self._missing and not self._ours:
                say(f"all {len(self._expected)} ranks have called")

    def hung_up(self, call: ReverseConnection) -> None:
        """The call has ended (`shell.dial_in.Desk`)."""
        id = next((id for id, one in self._now.items() if one is call), None)
        if id is None:
            return
        del self._now[id]
        if call.said_goodbye and not self._ours:
            self._held.discard(id)
            self._session.driver.feed(inputs.RankExited(id, None))
            return
        if id in self._held:  # else the engine hears of it by its link
            self._held.discard(id)
            self._tell(id, call, ready=False)
        if id in self._here:
            for seconds in EXIT_CHECK_DELAYS_S:
                asyncio.get_running_loop().call_later(seconds, self._look, id, self._processes[id])

    def _look(self, id: RankId, process: Registration) -> None:
        """A rank of this machine has hung up: because its process has ended?"""
        again = id in self._now or self._processes.get(id) != process
        if not again and id in self._here and not procfs.runs(process.pid):
            self._here.discard(id)
            self._session.driver.feed(inputs.RankExited(id, None))

    def take(self, id: RankId) -> ReverseConnection | None:
        """The engine wants this rank's call."""
        if id not in self._held:
            return None
        self._held.discard(id)
        return self._now[id]

    def _tell(self, id: RankId, call: ReverseConnection, *, ready: bool) -> None:
        process, (host, port) = self._processes[id], call.peer
        self._session.rank_known(
            *id,
            Endpoint(
                host,
                port,
                pid=process.pid,
                coords=process.coords,
                host_name="" if is_loopback(host) else process.host,
                announces=True,
                ready=ready,
                dials=True,
                incarnation=f"call {next(self._numbers)}" if ready else "",
            ),
        )

    def close(self) -> None:
        """Hang up on those that nobody has taken."""
        for id in self._held:
            self._now[id].close()


@dataclass(frozen=True)
class DialListener:
    """Where ranks call, and what they are told of it."""

    calls: ReverseRanks
    address: str
    token_file: Path | None
    secret: str

    @property
    def environment(self) -> dict[str, str]:
        """The variables of ranks that we start ourselves: the token is in nobody else's."""
        return {ADDRESS: self.address, TOKEN: self.secret, TOKEN_FILE: ""}


@asynccontextmanager
async def accept_reverse(
    session: Session,
    config: Config,
    at: Address,
    expected: Mapping[str, int] | None,
    *,
    ours: bool = False,
) -> AsyncIterator[DialListener]:
    """Take ranks' calls until the block is left. `ours`: the ranks are started by us.

    `expected` None: by a launcher of ours, so that they get the token from us, too. Raises
    Refused, UsageError, DapMuxError.
    """
    told_by_us = ours or expected is None
    check_dial_bind(config, at.host, told_by_us=told_by_us)
    secret = session.file.token
    assert secret is not None
    calls = ReverseRanks(session, expected, ours=ours)
    session.driver.accept_reverse_connection = connector(session.driver, calls.take)
    server, port = await listen_reverse(session.driver, calls, secret, at.host, at.port)
    host = socket.gethostname() if at.host in ANY_ADDRESS else at.host
    host = f"[{host}]" if ":" in host else host
    made = None if told_by_us or config.token_file else _write_token(secret)
    try:
        yield DialListener(calls, f"{host}:{port}", made or config.token_file, secret)
    finally:
        server.close()
        calls.close()
        if made:
            made.unlink(missing_ok=True)


def check_dial_bind(config: Config, host: str, *, told_by_us: bool) -> None:
    """Raise Refused for an address beyond loopback that has not been asked for in so many words."""
    if is_loopback(host):
        return
    if not (config.token_file or told_by_us):
        raise Refused(
            f"refused to take ranks' calls on {host} without a token of yours: the ranks need it "
            "in a file (--token-file here, DAP_MUX_DIAL_TOKEN_FILE there)"
        )
    if not config.insecure:
        raise Refused(
            f"refused to take ranks' calls on {host}: ranks show that they know the token without "
            "sending it, but what follows is in the clear. Say --insecure where nobody can listen "
            "in, or take calls on 127.0.0.1 and forward the port (ssh -R)"
        )


def _write_token(secret: str) -> Path:
    """Write the session's token where ranks of this user find it; removed at the end."""
    path = session_folder() / f"{os.getpid()}.token"
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secret + "\n")
    return path
