"""Joining a session from the command line: the way to it, and what is shown at its door.

On this machine the unix socket is the way: there nothing has to be shown, and nothing can be
overheard. By TCP the token goes along, beyond this machine only inside TLS or by `--insecure`.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress

from dap_mux.addresses import is_loopback
from dap_mux.client import ConnectionLost, DapClient, RequestFailed
from dap_mux.config import Config
from dap_mux.console.link import Breakpoints, Link
from dap_mux.errors import DapMuxError, NothingToConnect, PeerFault, Refused, UsageError
from dap_mux.private_files import read_token
from dap_mux.protocol.types import UNAUTHORIZED
from dap_mux.session_files import SessionFile
from dap_mux.user_files import check_regular

PATIENCE = 10.0  # seconds for each answer
ABOUT_US = {
    "adapterID": "dap-mux",
    "pathFormat": "path",
    "linesStartAt1": True,
    "columnsStartAt1": True,
}


@asynccontextmanager
async def joined(
    session: SessionFile, config: Config, name: str, *, events: Sequence[str] = ()
) -> AsyncIterator[DapClient]:
    """Be an observer of a session; `name` says to it who we are, `events` what else to tell.

    Raises NothingToConnect, Refused, UsageError, RequestFailed, DapMuxError.
    """
    token = _token(session, config)
    client = await _connect(session, config)
    try:
        with _explained(session):
            await client.request("initialize", {"clientID": name, **ABOUT_US}, timeout=PATIENCE)
            shown = {"token": token} if token else {}
            wishes = {"events": list(events)} if events else {}
            attach = {"role": "observer", **wishes, **shown}
            await client.request("attach", attach, timeout=PATIENCE)
            yield client
    finally:
        await client.close()


async def driving(session: SessionFile, config: Config, breakpoints: Breakpoints) -> Link:
    """Be a debugger of a session, beside whoever is there. Raises what `joined` does."""
    token = _token(session, config)
    client = await _connect(session, config)
    link = Link(client, session.address)
    try:
        with _explained(session):
            await link.begin(breakpoints, {"token": token} if token else {})
    except BaseException:
        await client.close()
        raise
    return link


@contextmanager
def _explained(session: SessionFile) -> Iterator[None]:
    """Failures of a session's client in words that say what helps."""
    try:
        yield
    except TimeoutError as error:
        raise DapMuxError(f"{session.address} did not answer: {error}") from error
    except (ConnectionLost, PeerFault) as error:
        raise DapMuxError(
            f"{session.address} hung up: {error}. Where the session speaks TLS, say --tls-ca"
        ) from error
    except RequestFailed as error:
        if not _unauthorized(error):
            raise
        raise Refused(
            f"{session.address}: {error.message} (here: --token-file, a copy of that file)"
        ) from error


def _unauthorized(failed: RequestFailed) -> bool:
    error = failed.body.get("error")
    return isinstance(error, dict) and error.get("id") == UNAUTHORIZED


def _token(session: SessionFile, config: Config) -> str | None:
    """Return what to show: what the session's own file says, else the file that was given."""
    given = read_token(config.token_file) if config.token_file else None
    token = session.token or given
    far = session.pid == 0 and not is_loopback(session.host)
    if token and far and not (config.tls_ca or config.insecure):
        raise Refused(
            f"refused to send the token to {session.address} in the clear: say --tls-ca with the "
            "certificate that vouches for the session's, or --insecure where nobody can listen in"
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
            f"{session.address}: its certificate is not vouched for by {config.tls_ca}: "
            f"{error.verify_message}"
        ) from error
    except (ssl.SSLError, ConnectionResetError, ConnectionAbortedError) as error:
        why = "does not speak TLS; leave out --tls-ca" if tls else "hung up"
        raise DapMuxError(f"{session.address} {why} ({error})") from error
    except OSError as error:
        raise NothingToConnect(
            f"nobody answers at {session.address} ({error.strerror or error}); "
            "`dap-mux sessions` shows what runs here"
        ) from error


def _tls(config: Config) -> ssl.SSLContext | None:
    if config.tls_ca is None:
        return None
    try:
        check_regular(config.tls_ca, config.tls_ca.stat())
        return ssl.create_default_context(cafile=config.tls_ca)
    except OSError as error:
        raise UsageError(f"{config.tls_ca} holds no certificate: {error.strerror}") from None
