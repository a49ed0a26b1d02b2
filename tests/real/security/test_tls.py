"""TLS beyond loopback: our own client, any other, and those who do not speak it."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from dap_mux.client import DapClient, RequestFailed
from tests.support.processes.commands import LIMIT, Command, User
from tests.support.security import NOWHERE, certificate_in, far, list_from_afar, secret_in

pytestmark = [pytest.mark.real, pytest.mark.heavy]


async def test_tls_for_our_own_client(user: User, token: Path, certificate: Path) -> None:
    tls = ("--tls-cert", str(certificate))
    command, address = await far(user, token, *tls)
    show = ("--token-file", str(token))
    done = await list_from_afar(user, address, *show, "--tls-ca", str(certificate))
    assert (done.code, done.err) == (0, "")
    other = certificate_in(user.folder / "other.pem")
    done = await list_from_afar(user, address, *show, "--tls-ca", str(other))
    assert done.code == 4
    assert "certificate verification" in done.err
    done = await user.does("list")
    assert (done.code, done.err) == (0, ""), "on this machine by the unix socket, without TLS"
    await closes_who_does_not_speak_tls(user, command, address)


async def closes_who_does_not_speak_tls(user: User, command: Command, address: str) -> None:
    """Plain words are closed with a line in the log, and silence holds nobody up."""
    host, port = address.split(":")
    _, silent = await asyncio.open_connection(host, int(port))
    done = await list_from_afar(user, address)
    assert done.code == 1
    assert "If the session uses TLS, pass --tls-ca" in done.err
    await command.says("closed a connection: this port speaks TLS (")
    silent.close()
    assert (await user.does("list")).code == 0


async def test_tls_to_a_port_that_does_not(user: User, token: Path, certificate: Path) -> None:
    command, address = await far(user, token, "--insecure")
    done = await list_from_afar(user, address, "--tls-ca", str(certificate))
    assert done.code == 1
    assert "does not use TLS" in done.err
    await command.says("the client speaks TLS, and this port does not")
    assert (await user.does("list")).code == 0


async def test_tls_for_any_client(user: User, token: Path, certificate: Path) -> None:
    """All words in one piece behind the handshake; once it is let in, a message of a megabyte."""
    _, address = await far(user, token, "--tls-cert", str(certificate))
    host, port = address.split(":")
    context = ssl.create_default_context(cafile=certificate)
    client = await DapClient.connect(host, int(port), tls=context)
    asked = [
        client.send("initialize", {"adapterID": "x"}),
        client.send("attach", {"role": "observer", "token": secret_in(token)}),
        client.send("list"),
    ]
    answers = await asyncio.wait_for(asyncio.gather(*asked), LIMIT)
    assert [answer["success"] for answer in answers] == [True] * 3
    with pytest.raises(RequestFailed, match="x" * 100):
        await client.request("list", {"states": ["x" * 1_000_000]}, timeout=LIMIT)
    await client.disconnect()


async def test_tls_hellos_that_have_come_before_the_session_looks(
    user: User, token: Path, certificate: Path
) -> None:
    """A busy session accepts a connection and its first bytes in one turn: none is lost."""
    command, address = await far(user, token, "--tls-cert", str(certificate))
    command.process.send_signal(signal.SIGSTOP)
    waiting = [said_hello(int(address.split(":")[1])) for _ in range(20)]
    command.process.send_signal(signal.SIGCONT)
    loop = asyncio.get_running_loop()
    for sock in waiting:
        with sock:
            answer = await asyncio.wait_for(loop.sock_recv(sock, 2), LIMIT)
            assert answer == b"\x16\x03", "the session's own hello"


def said_hello(port: int) -> socket.socket:
    """A connection on which the client's hello is under way, as loopback is: there already."""
    sock = socket.create_connection(("127.0.0.1", port))
    hello = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(
            ssl.MemoryBIO(), hello, server_hostname="localhost"
        ).do_handshake()
    sock.sendall(hello.read())
    sock.setblocking(False)
    return sock


@pytest.mark.parametrize(
    ("spoil", "code", "sentence"),
    [
        (lambda path: path.chmod(0o644), 4, "other users can read"),
        (lambda path: path.write_text("nonsense"), 2, "are not a certificate and its key"),
        (lambda path: path.unlink(), 2, "cannot read"),
    ],
)
async def test_tls_files_that_will_not_do(
    user: User, certificate: Path, spoil: Callable[[Path], object], code: int, sentence: str
) -> None:
    spoil(certificate)
    done = await user.does("attach", NOWHERE, "--tls-cert", str(certificate))
    assert (done.code, sentence in done.err) == (code, True), done.err
    done = await user.does("attach", NOWHERE, "--tls-key", str(certificate))
    assert (done.code, "requires --tls-cert" in done.err) == (2, True), done.err
