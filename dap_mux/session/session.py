"""The common part of all sessions: an engine with its driver, listeners and a session file."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dap_mux.engine import Engine, Settings, inputs
from dap_mux.engine.admission import Token
from dap_mux.pure.endpoint import Endpoint, is_loopback
from dap_mux.pure.errors import Refused, UsageError
from dap_mux.pure.rank_sets import Mesh, RankId
from dap_mux.pure.remote import InjectedSources
from dap_mux.rank.injected import folders
from dap_mux.session.terminal_output import alert, say
from dap_mux.shell.auth import Guard
from dap_mux.shell.driver import Driver
from dap_mux.shell.listeners import connection_factory, listen
from dap_mux.shell.sockets import listen_unix
from dap_mux.shell.timers import GarbageCollection
from dap_mux.system.config import Config
from dap_mux.system.programs import raise_limit, shortage
from dap_mux.system.session_files import SessionFile, session_folder
from dap_mux.system.user_files import check_private, check_regular, new_token, own_folder, token_of

if TYPE_CHECKING:
    from dap_mux.cluster.records import RankRecord
    from dap_mux.pure.insight.numerics.diverge_against import RecordedRun


logger = logging.getLogger("dap_mux.session")
RELEASE_TIMEOUT_S = 3.0  # by then every rank must be running without us
NO_MESHES: Mapping[str, Mesh] = MappingProxyType({})
CLOCK_CHECK_DELAY_S = 5.0  # that ranks are stopped before we look at their job's time-outs
LEAVE_TIMEOUT_S = 2.0  # for clients to disconnect after `terminated`
TORCH_CHECK_DELAY_S = 2.0  # that a rank is attached or stopped before we query its torch
LEAVE_TIMEOUT_ON_RELEASE_S = 2.0  # for the same, within RELEASE_TIMEOUT_S


class Session:
    """A running session: its driver, and the address that clients connect to."""

    def __init__(
        self, driver: Driver, file: SessionFile, signals: asyncio.Queue[signal.Signals]
    ) -> None:
        self.driver = driver
        self.file = file
        self._signals = signals
        self._warned: set[str] = set()
        self.launcher = 0  # the pid of the command that `run` has started
        self._launcher_rank: RankId | None = None

    @property
    def address(self) -> str:
        """`host:port`."""
        return self.file.address

    def known(self, records: Iterable[RankRecord], *, down: str = "", host_name: str = "") -> None:
        """Tell the engine where ranks listen, and warn where that is unsafe.

        `down`: why no connection can succeed now. `host_name`: the name of the ranks' host where
        they are reached by another address.
        """
        records = list(records)
        self._warn("" if down else beyond_loopback(record.host for record in records))
        for record in records:
            assert record.rank is not None
            endpoint = replace(endpoint_of(record), way_down=down, host_name=host_name)
            if record.pid and record.pid == self.launcher and is_loopback(record.host):
                endpoint = replace(endpoint, watched=True)
                self._launcher_rank = record.group, record.rank
            self.rank_known(record.group, record.rank, endpoint)

    def launcher_ended(self, code: int) -> None:
        """The launcher has ended: with it that rank which is the same process, if any."""
        if self._launcher_rank is not None:
            self.driver.feed(inputs.RankExited(self._launcher_rank, code))
        self._launcher_rank = None

    def expect(self, ranks: int, *, files: int = 1) -> None:
        """Expect this many ranks; warn if they need more open files than the limit allows.

        `files`: how many each rank needs.
        """
        self._warn(shortage(ranks, files))

    def tell(self, text: str, *, lasting: bool = False) -> None:
        """Tell the user at the terminal and those at the editors; `lasting`: those to come, too."""
        say(text)
        self.driver.feed(inputs.Notice(text, lasting))

    def _warn(self, warning: str) -> None:
        """Tell all users, once."""
        if warning and warning not in self._warned:
            self._warned.add(warning)
            logger.warning("%s", warning)
            self.driver.feed(inputs.Notice(warning, lasting=True))

    def rank_known(self, group: str, rank: int, endpoint: Endpoint) -> None:
        """Tell the engine of one rank."""
        self.driver.feed(inputs.RankKnown((group, rank), endpoint))

    async def over(self) -> None:
        """Wait until every rank is gone and clients have been told; let them disconnect."""
        await self.driver.finished.wait()
        await self._take_leave(LEAVE_TIMEOUT_S)

    async def _take_leave(self, limit: float) -> None:
        """Answer the last requests of clients that know of the end."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.driver.no_clients(), limit)

    async def interrupted(self) -> signal.Signals:
        """Wait for Ctrl-C or SIGTERM, including one that has arrived since the last call."""
        return await self._signals.get()

    async def release(self, reason: str) -> None:
        """Detach from every rank so that it continues, within `RELEASE_TIMEOUT_S`."""
        self.driver.feed(inputs.Shutdown(reason))
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._released(), RELEASE_TIMEOUT_S)

    async def _released(self) -> None:
        await self.driver.no_links()
        await self._take_leave(LEAVE_TIMEOUT_ON_RELEASE_S)


_SAME = {*Settings.__struct_fields__} & {*Config.__struct_fields__} - {"catch_unequal"}
"""The options that the engine has under the same name."""


def settings_of(
    config: Config,
    *,
    owns_job: bool = False,
    ranks_from_client: bool = False,
    group: str = "job",
    meshes: Mapping[str, Mesh] = NO_MESHES,
) -> Settings:
    """Return the engine's settings; a configured mesh overrides what `group`'s ranks report."""
    if config.mesh:
        meshes = {**meshes, group: config.mesh}
    same: dict[str, Any] = {name: getattr(config, name) for name in _SAME}
    return Settings(
        **same,
        catch_unequal=config.catch_unequal or "",
        recorded=_recorded_run(config.against),
        owns_job=owns_job,
        ranks_from_client=ranks_from_client,
        redirect_output=owns_job,
        clock_patience=CLOCK_CHECK_DELAY_S,
        library_patience=TORCH_CHECK_DELAY_S,
        meshes=meshes,
        default_group=group,
        folder=str(Path.cwd()),
        key=new_token(),
    )


def _recorded_run(folder: Path | None) -> RecordedRun | None:
    if folder is None:
        return None
    # Here, because few ask for one.
    from dap_mux.pure.insight.numerics.diverge_against import RecordedRun  # noqa: PLC0415
    from dap_mux.session.traces import read_trace  # noqa: PLC0415

    return RecordedRun(folder.name, read_trace(folder))


def endpoint_of(record: RankRecord) -> Endpoint:
    """Return a rank's record as an endpoint of the engine."""
    return Endpoint(
        record.host,
        record.port,
        pid=record.pid,
        coords=record.coords or {},
        remote_root=record.remote_root or "",
        ready=record.ready,
        incarnation=record.incarnation,
        traits=record.traits,
    )


@contextmanager
def _ending_signals() -> Iterator[asyncio.Queue[signal.Signals]]:
    """Queue SIGINT, SIGTERM, and SIGHUP unless it is ignored (`nohup`), until the block is left.

    As anyio's receiver does, which an adapter's start has not imported yet.
    """
    signals = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    loop, arrived = asyncio.get_running_loop(), asyncio.Queue[signal.Signals]()
    for number in signals:
        loop.add_signal_handler(number, arrived.put_nowait, number)
    try:
        yield arrived
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def open_session(
    config: Config,
    settings: Settings,
    *,
    avoid: range = range(0),
    groups: Sequence[str] = (),
    entry: Mapping[str, int] | None = None,
) -> AsyncIterator[Session]:
    """Listen for clients until the block is left; `avoid`: ports that ranks will use.

    `entry`: the first line of what the ranks run, by its file, where they wait before it.
    """
    raise_limit()
    host, wanted = config.listen
    check_bind(config)
    secret = token_of(config.token_file) if config.token_file else new_token()
    guard = Guard(Token(secret), asks_all=not is_loopback(host))
    tls = _tls_of(config)
    driver = Driver(Engine(injected_sources(), settings), config.max_message, alert)
    server, port = await listen(driver, host, wanted, avoid=avoid, guard=guard, tls=tls)
    if wanted not in (0, port):
        say(f"port {wanted} is in use; listening on {port} instead")
    path = session_folder() / f"{os.getpid()}.sock"
    own_folder(path.parent)
    unix = await listen_unix(connection_factory(driver, Guard(guard.token)), path)
    file = SessionFile(
        host,
        port,
        unix=str(path) if unix else None,
        token=secret,
        groups=tuple(groups) or (settings.default_group,),
        entry=entry or {},
    )
    driver.feed(inputs.Listening(file.address))
    garbage = GarbageCollection(driver)
    garbage.start()
    # From here on signals are queued: there is something to clean up.
    with _ending_signals() as signals:
        file.write()
        try:
            yield Session(driver, file, signals)
        finally:
            garbage.stop()
            file.remove()
            if unix:
                unix.close()
                path.unlink(missing_ok=True)
            server.close()
            await driver.close()


# Access control: TLS, and which addresses may be listened on.

MAX_HOSTS_SHOWN = 4  # in a warning
SAFER_ALTERNATIVE = (
    "Or listen on 127.0.0.1 and forward the port with ssh -L or kubectl port-forward"
)


def check_bind(config: Config) -> None:
    """Raise Refused for an address beyond loopback without a token, or with a token but no TLS."""
    host = config.listen.host
    if is_loopback(host):
        return
    if not config.token_file:
        raise Refused(
            f"refused to listen on {host} without a token: anyone who reaches this port can run "
            "code in every rank. Give a token file (--token-file) and TLS (--tls-cert, --tls-key). "
            f"{SAFER_ALTERNATIVE}"
        )
    if not (config.tls_cert or config.insecure):
        raise Refused(
            f"refused to listen on {host} without TLS: anyone who sees the traffic learns the "
            "token. Give a certificate (--tls-cert, --tls-key), or --insecure on a network that "
            f"you trust. {SAFER_ALTERNATIVE}"
        )


def _tls_of(config: Config) -> ssl.SSLContext | None:
    if config.tls_cert is None:
        if config.tls_key is not None:
            raise UsageError(f"--tls-key {config.tls_key} requires --tls-cert")
        return None
    key = config.tls_key or config.tls_cert
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        for file in (config.tls_cert, key):
            check_regular(file, file.stat())
        check_private(key, key.stat())
        context.load_cert_chain(config.tls_cert, key, password=lambda: _no_password(key))
    except ssl.SSLError as error:
        raise UsageError(
            f"{config.tls_cert} and {key} are not a certificate and its key: {error.reason}"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read {error.filename or key}: {error.strerror}") from None
    return context


def _no_password(key: Path) -> str:
    raise UsageError(f"{key} is protected by a password, which dap-mux cannot ask for")


def beyond_loopback(hosts: Iterable[str]) -> str:
    """Return a warning about ranks that other machines can reach, '' where there are none."""
    open_to_all = sorted({host for host in hosts if not is_loopback(host)})
    if not open_to_all:
        return ""
    named = ", ".join(open_to_all[:MAX_HOSTS_SHOWN])
    if len(open_to_all) > MAX_HOSTS_SHOWN:
        named += f" and {len(open_to_all) - MAX_HOSTS_SHOWN} more hosts"
    return (
        f"ranks listen on {named}, not on loopback: debugpy has no authentication, so anyone "
        "who reaches these ports can run code there, and the traffic is not encrypted. Safer: let "
        "ranks listen on 127.0.0.1 and forward the ports (ssh -L, kubectl port-forward)"
    )


@cache
def injected_sources() -> InjectedSources:
    """Return the sources of all modules."""
    return InjectedSources(folders())
