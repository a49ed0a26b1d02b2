"""Reverse connections: ranks connect to the session, where they cannot be connected to.

The endpoint `dial:4` of `attach` stands for ranks 0 to 3 of a group; they may connect in any order,
at any time and repeatedly. Other ranks that connect are accepted as well. See docs/dial-out.md.
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
from typing import Any, Final

from dap_mux.cluster.records import DEFAULT_GROUP, is_natural
from dap_mux.engine import inputs
from dap_mux.engine.outputs import Connect
from dap_mux.pure.endpoint import NO_TRAITS, Endpoint, Traits, is_loopback, read_traits
from dap_mux.pure.errors import Refused, UsageError
from dap_mux.pure.rank_sets import RankId
from dap_mux.session.session import Session
from dap_mux.session.terminal_output import say
from dap_mux.shell.reverse_connections import Refusal, ReverseConnection, listen_reverse
from dap_mux.system import procfs
from dap_mux.system.config import Config
from dap_mux.system.config.options import Address
from dap_mux.system.session_files import session_folder
from dap_mux.system.user_files import write_whole

# A rank's description of itself when it connects to a session.

MAX_RANKS: Final = 65536  # of a group


@dataclass(frozen=True)
class Registration:
    """How a rank describes itself. `rank` None: it has no number. `size`: of its group, or 0."""

    group: str
    rank: int | None
    host: str
    pid: int
    coords: dict[str, int]
    size: int
    traits: Traits = NO_TRAITS

    @property
    def place(self) -> str:
        """Where it runs, for messages."""
        return f"process {self.pid} on {self.host}"


def read_registration(said: Mapping[str, Any]) -> Registration:
    """Validate a rank's description, which is untrusted. Raises ValueError."""
    group, rank, host = said.get("group"), said.get("rank"), said.get("host")
    pid, coords = said.get("pid"), said.get("coords") or {}
    size = said.get("world_size") or 0
    if not (isinstance(group, str) and re.fullmatch(r"[A-Za-z_][\w.-]{0,63}", group)):
        raise ValueError(f"invalid group {str(group)[:80]!r}")
    if not (isinstance(host, str) and 0 < len(host) <= 255 and host.isprintable()):
        raise ValueError("invalid host")
    if not (rank is None or is_natural(rank, MAX_RANKS)) or not is_natural(pid, 2**32):
        raise ValueError("invalid rank or pid")
    if not is_natural(size, MAX_RANKS + 1):
        raise ValueError("invalid world_size")
    if not isinstance(coords, dict) or not all(
        is_natural(one, MAX_RANKS) for one in coords.values()
    ):
        raise ValueError("invalid coords")
    places = {str(dim): place for dim, place in coords.items()}
    return Registration(group, rank, host, pid, places, size, read_traits(said))


DIAL_ENDPOINT: Final = re.compile(r"(?:(?P<group>[A-Za-z_][\w.-]*)=)?dial:(?P<count>[^:]*)")
ADDRESS, TOKEN, TOKEN_FILE = "DAP_MUX_DIAL", "DAP_MUX_DIAL_TOKEN", "DAP_MUX_DIAL_TOKEN_FILE"
ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104  (not addresses to connect to)
EXIT_CHECK_DELAYS_S: Final = (0.3, 1.0, 3.0)  # after a disconnect: a process takes a while to end


def split_dial_endpoints(words: Sequence[str]) -> tuple[dict[str, int], list[str]]:
    """Split off the endpoints `dial:N`: the number of ranks of each group, and the rest.

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
            raise UsageError(f"{word}: give the number of ranks that will connect, as in dial:4")
        group = match["group"] or DEFAULT_GROUP
        if group in groups:
            raise UsageError(f"{word}: group {group} is given twice")
        groups[group] = int(number)
    return groups, rest


class ReverseRanks:
    """The reverse connections of a session by rank, held until the engine asks for them.

    `expected`: the number of ranks of each group; None: the first rank of each group reports it.
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
        self._ours = ours  # started by us: `LocalRanks` reports their exits
        self._now: dict[RankId, ReverseConnection] = {}
        self._held: set[RankId] = set()
        self._processes: dict[RankId, Registration] = {}
        self._here: set[RankId] = set()  # ranks whose processes are visible to us
        self._numbers = count(1)

    def announce_ranks(self) -> None:
        """Tell the engine which ranks to expect."""
        self._introduce(self._expected)

    def _introduce(self, ranks: set[RankId]) -> None:
        self._session.expect(len(ranks))
        for group, rank in sorted(ranks):
            waiting = Endpoint("", 0, announces=True, dials=True)
            self._session.rank_known(group, rank, waiting)

    def _expect_all_of(self, process: Registration) -> None:
        """Show all ranks of a group as waiting once the first has reported their number."""
        group = {(process.group, rank) for rank in range(process.size)}
        if self._ask_them and not group & self._expected:
            self._expected |= group
            self._introduce(group - set(self._processes))

    def accept(self, connection: ReverseConnection) -> Refusal | None:
        """A rank has proved that it knows the token: identify it (`ReverseRankOwner`)."""
        try:
            process = read_registration(connection.rank)
        except ValueError as error:
            return Refusal(f"the session cannot identify this rank: {error}", final=True)
        self._expect_all_of(process)
        id = self._place(process)
        other = self._now.get(id)
        if other is not None and self._processes[id] != process:
            there = self._processes[id].place
            return Refusal(f"rank {id[1]} of group {id[0]} is connected already: {there}")
        if other is not None:
            other.abort()  # the rank would not connect again if this connection still worked
        self._now[id] = connection
        self._held.add(id)
        self._processes[id] = process
        # A container can share our address and host name, and still have other pids.
        near = is_loopback(connection.peer[0]) and process.host == socket.gethostname()
        self._here.discard(id)
        if near and not self._ours and procfs.runs(process.pid):
            self._here.add(id)
        self._tell(id, connection, ready=True)
        self._count(id)
        return None

    def _place(self, process: Registration) -> RankId:
        """A rank without a number keeps its previous one, or gets the lowest that is free."""
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
                say(f"all {len(self._expected)} ranks have connected")

    def disconnected(self, connection: ReverseConnection) -> None:
        """The connection has ended (`ReverseRankOwner`)."""
        id = next((id for id, one in self._now.items() if one is connection), None)
        if id is None:
            return
        del self._now[id]
        if connection.said_goodbye and not self._ours:
            self._held.discard(id)
            self._session.driver.feed(inputs.RankExited(id, None))
            return
        if id in self._held:  # otherwise the engine learns of it from its link
            self._held.discard(id)
            self._tell(id, connection, ready=False)
        if id in self._here:
            for seconds in EXIT_CHECK_DELAYS_S:
                asyncio.get_running_loop().call_later(seconds, self._look, id, self._processes[id])

    def _look(self, id: RankId, process: Registration) -> None:
        """Check whether a rank of this machine has disconnected because its process ended."""
        again = id in self._now or self._processes.get(id) != process
        if not again and id in self._here and not procfs.runs(process.pid):
            self._here.discard(id)
            self._session.driver.feed(inputs.RankExited(id, None))

    def take_up(self, wanted: Connect) -> None:
        """Hand this rank's connection to the engine (`ReverseConnections`)."""
        if wanted.rank in self._held:
            self._held.discard(wanted.rank)
            self._now[wanted.rank].take_up(wanted.link)
        else:
            self._session.driver.link_down(
                wanted.link, "the rank disconnected before the session used its connection"
            )

    def _tell(self, id: RankId, connection: ReverseConnection, *, ready: bool) -> None:
        process, (host, port) = self._processes[id], connection.peer
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
                traits=process.traits,
            ),
        )

    def close(self) -> None:
        """Close the connections that the engine has not asked for."""
        for id in self._held:
            self._now[id].close()


@dataclass(frozen=True)
class DialListener:
    """The listening address, and what ranks need to connect to it."""

    ranks: ReverseRanks
    address: str
    token_file: Path | None
    secret: str

    @property
    def environment(self) -> dict[str, str]:
        """Variables for ranks that we start ourselves, which include the token."""
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
    """Accept reverse connections until the block is left. `ours`: we start the ranks.

    `expected` None: a launcher that we start does, so they get the token from us, too. Raises
    Refused, UsageError, DapMuxError.
    """
    token_from_us = ours or expected is None
    check_dial_bind(config, at.host, token_from_us=token_from_us)
    secret = session.file.token
    assert secret is not None
    ranks = ReverseRanks(session, expected, ours=ours)
    session.driver.accept_reverse(ranks)
    server, port = await listen_reverse(session.driver, ranks, secret, at.host, at.port)
    host = socket.gethostname() if at.host in ANY_ADDRESS else at.host
    host = f"[{host}]" if ":" in host else host
    made = None if token_from_us or config.token_file else _write_token(secret)
    try:
        yield DialListener(ranks, f"{host}:{port}", made or config.token_file, secret)
    finally:
        server.close()
        ranks.close()
        if made:
            made.unlink(missing_ok=True)


@asynccontextmanager
async def dial_variables(
    session: Session,
    config: Config,
    at: Address | None,
    expected: Mapping[str, int] | None = None,
    *,
    ours: bool = False,
) -> AsyncIterator[dict[str, str]]:
    """Accept the ranks of a job that we start, unless `at` is None; yield what tells them so."""
    if at is None:
        yield {}
        return
    async with accept_reverse(session, config, at, expected, ours=ours) as listener:
        yield listener.environment


def check_dial_bind(config: Config, host: str, *, token_from_us: bool) -> None:
    """Raise Refused for an address beyond loopback without explicit consent."""
    if is_loopback(host):
        return
    if not (config.token_file or token_from_us):
        raise Refused(
            f"refused to accept ranks on {host} without a token file: the ranks need the same one "
            "(--token-file here, DAP_MUX_DIAL_TOKEN_FILE there)"
        )
    if not config.insecure:
        raise Refused(
            f"refused to accept ranks on {host}: ranks prove that they know the token without "
            "sending it, but all other traffic is not encrypted. Use --insecure on a network that "
            "you trust, or listen on 127.0.0.1 and forward the port (ssh -R)"
        )


def _write_token(secret: str) -> Path:
    """Write the session's token to a file of this user; it is removed at the end."""
    path = session_folder() / f"{os.getpid()}.token"
    write_whole(path, f"{secret}\n".encode("ascii"))
    return path
