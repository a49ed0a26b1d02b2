"""Join a session from the command line: connect, authenticate, and attach.

On this machine the Unix socket is preferred: it needs no token, and cannot be overheard. Over TCP
the token is sent, and beyond this machine only inside TLS or with `--insecure`.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress

from dap_mux.client import ConnectionLost, DapClient, RequestFailed
from dap_mux.frontends.console.session_client import BreakpointsByPath, SessionClient
from dap_mux.pure.endpoint import is_loopback
from dap_mux.pure.errors import DapMuxError, NothingToConnect, PeerFault, Refused, UsageError
from dap_mux.pure.protocol.types import UNAUTHORIZED
from dap_mux.pure.rank_sets.rank_rows import Row
from dap_mux.system.config import Config
from dap_mux.system.session_files import SessionFile
from dap_mux.system.user_files import check_regular, read_token

REQUEST_TIMEOUT_S = 10.0
ATTACH_TIMEOUT_S = 10.0
LATE_S = 1.0
"""So long nobody else may have been reached, once one has: the rest cannot answer."""
INITIALIZE_ARGUMENTS = {
    "adapterID": "dap-mux",
    "pathFormat": "path",
    "linesStartAt1": True,
    "columnsStartAt1": True,
}


@asynccontextmanager
async def observer(
    session: SessionFile, config: Config, name: str, *, events: Sequence[str] = ()
) -> AsyncIterator[DapClient]:
    """Join a session as an observer called `name`, which also receives these `events`.

    Raises NothingToConnect, Refused, UsageError, RequestFailed, DapMuxError.
    """
    client = await _observe(session, config, name, events)
    try:
        with _explained(session):
            yield client
    finally:
        await client.close()


async def follower(session: SessionFile, config: Config, name: str) -> SessionClient:
    """Join as an observer that follows ranks and what they print. Raises what `observer` does."""
    dap = await _observe(session, config, name, ("ranks", "output"))
    client = SessionClient(dap, session.address)
    await client.follow()
    return client


async def _observe(
    session: SessionFile, config: Config, name: str, events: Sequence[str]
) -> DapClient:
    async with _joining(session, config) as (client, credentials):
        await client.request(
            "initialize", {"clientID": name, **INITIALIZE_ARGUMENTS}, timeout=REQUEST_TIMEOUT_S
        )
        follows = {"events": list(events), "valuesAcrossRanks": "off"}
        subscriptions = follows if events else {}
        attach = {"role": "observer", **subscriptions, **credentials}
        await client.request("attach", attach, timeout=REQUEST_TIMEOUT_S)
        return client


@asynccontextmanager
async def _joining(
    session: SessionFile, config: Config
) -> AsyncIterator[tuple[DapClient, dict[str, str]]]:
    """Connect, and close the connection if what introduces us fails."""
    token = _token(session, config)
    client = await _connect(session, config)
    try:
        with _explained(session):
            yield client, {"token": token} if token else {}
    except BaseException:
        await client.close()
        raise


async def controller(
    session: SessionFile,
    config: Config,
    breakpoints: BreakpointsByPath,
    name: str = "dap-mux console",
    *,
    exceptions: bool = True,
) -> SessionClient:
    """Join a session as one more debugger. Raises what `observer` does."""
    async with _joining(session, config) as (dap, credentials):
        client = SessionClient(dap, session.address)
        await client.attach(breakpoints, credentials, name, exceptions=exceptions)
        return client


async def reached(debugger: SessionClient, patience: float = LATE_S) -> list[Row]:
    """Wait until the ranks have been reached that can be, and return the rows of all.

    `patience`: seconds without another one, once one has been.
    """
    import anyio

    rows: list[Row] = []
    with anyio.move_on_after(ATTACH_TIMEOUT_S):
        while not debugger.ended.is_set():
            rows = await debugger.list_ranks()
            late = [row for row in rows if row["state"] in ("waiting", "connecting")]
            if not late:
                break
            with anyio.move_on_after(
                patience if len(late) < len(rows) else ATTACH_TIMEOUT_S
            ) as wait:
                await debugger.wait_for_change()
            if wait.cancelled_caught:
                break
    return rows


@contextmanager
def _explained(session: SessionFile) -> Iterator[None]:
    """Turn a client's failures into errors that say what to do."""
    try:
        yield
    except TimeoutError as error:
        raise DapMuxError(f"{session.address} did not respond: {error}") from error
    except (ConnectionLost, PeerFault) as error:
        raise DapMuxError(
            f"{session.address} closed the connection: {error}. If the session uses TLS, "
            "pass --tls-ca"
        ) from error
    except RequestFailed as error:
        if not _unauthorized(error):
            raise
        raise Refused(
            f"{session.address}: {error.message} (pass a copy of that file with --token-file)"
        ) from error


def _unauthorized(failed: RequestFailed) -> bool:
    error = failed.body.get("error")
    return isinstance(error, dict) and error.get("id") == UNAUTHORIZED


def _token(session: SessionFile, config: Config) -> str | None:
    """Return the token from the session file, or else from `--token-file`."""
    given = read_token(config.token_file) if config.token_file else None
    token = session.token or given
    remote = session.pid == 0 and not is_loopback(session.host)
    if token and remote and not (config.tls_ca or config.insecure):
        raise Refused(
            f"refused to send the token to {session.address} unencrypted: pass --tls-ca with the "
            "certificate that verifies the session's, or --insecure on a trusted network"
        )
    return token


async def _connect(session: SessionFile, config: Config) -> DapClient:
    if session.unix:
        with suppress(OSError):
            return await DapClient.connect_unix(session.unix)
    tls = _tls(config)
    try:
        return await DapClient.connect(session.host, session.port, tls=tls)
    except ssl.SSLCertVerificationError as error:
        raise Refused(
            f"{session.address}: certificate verification with {config.tls_ca} failed: "
            f"{error.verify_message}"
        ) from error
    except (ssl.SSLError, ConnectionResetError, ConnectionAbortedError) as error:
        why = "does not use TLS; omit --tls-ca" if tls else "closed the connection"
        raise DapMuxError(f"{session.address} {why} ({error})") from error
    except OSError as error:
        raise NothingToConnect(
            f"cannot connect to {session.address} ({error.strerror or error}); "
            "`dap-mux sessions` lists the sessions on this machine"
        ) from error


def _tls(config: Config) -> ssl.SSLContext | None:
    if config.tls_ca is None:
        return None
    try:
        check_regular(config.tls_ca, config.tls_ca.stat())
        return ssl.create_default_context(cafile=config.tls_ca)
    except OSError as error:
        raise UsageError(f"{config.tls_ca}: no certificate in it: {error.strerror}") from None
