"""Whose a connection on this machine is, by the kernel's own lookup and by its tables alike."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from dap_mux.shell import auth
from dap_mux.shell.auth import Guard, tcp_uid

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
FORMS = {
    "IPv4": ("127.0.0.1", "127.0.0.1"),
    "IPv6": ("::1", "::1"),
    "an IPv6 socket to an IPv4 port": ("127.0.0.1", "::ffff:127.0.0.1"),
}
Pair = tuple[socket.socket, socket.socket]
End = auth._End


@pytest.fixture(params=list(FORMS.values()), ids=list(FORMS))
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """An accepted connection, and the end of the one who connected."""
    listens, connects = request.param
    with ExitStack() as stack:
        family = socket.AF_INET6 if ":" in listens else socket.AF_INET
        server = stack.enter_context(socket.create_server((listens, 0), family=family))
        address = (connects, server.getsockname()[1])
        client = stack.enter_context(socket.create_connection(address))
        yield stack.enter_context(server.accept()[0]), client


def _found(pair: Pair, look: Callable[..., End | None]) -> End | None:
    ours, theirs = auth._addresses(pair[0])
    return look(theirs, ours)


def test_both_ways_to_look_find_the_same(pair: Pair) -> None:
    inode = os.fstat(pair[1].fileno()).st_ino
    assert tcp_uid(pair[0]) == os.getuid()
    for look in (auth._by_sock_diag, auth._by_table):
        assert _found(pair, look) == (1, os.getuid(), inode)


def test_whoever_has_hung_up_is_nobody(pair: Pair) -> None:
    pair[1].sendall(b"x")
    pair[1].close()
    assert tcp_uid(pair[0]) is None
    listed = _found(pair, auth._row)
    assert listed is not None
    assert listed.inode == 0
    assert not Guard().trusts(pair[0])


def test_whoever_has_said_all_is_not_believed_either(pair: Pair) -> None:
    """Its process may end at any moment; only a whole connection tells."""
    pair[1].shutdown(socket.SHUT_WR)
    assert tcp_uid(pair[0]) is None


def test_a_connection_that_was_reset_is_nobodys(pair: Pair) -> None:
    pair[1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    pair[1].close()
    assert tcp_uid(pair[0]) is None


def test_a_unix_socket_tells_also_when_it_is_closed() -> None:
    """Our own commands come that way, and may hang up as fast as they like."""
    here, there = socket.socketpair(socket.AF_UNIX)
    there.close()
    with here:
        assert Guard().trusts(here)
        assert not Guard(asks_all=True).trusts(here)


UNKNOWN_USER = """
import socket
from dap_mux.shell.auth import Guard
with socket.create_server(("127.0.0.1", 0)) as server:
    with socket.create_connection(server.getsockname()), server.accept()[0] as accepted:
        print(Guard().trusts(accepted))
"""


def test_an_id_that_stands_for_many_users_is_none_of_them() -> None:
    """A user namespace without a mapping shows everybody by the id that we have there too."""
    unshare = shutil.which("unshare")
    apart = [unshare or "", "--user"]
    if unshare is None or subprocess.run([*apart, "true"], check=False).returncode:
        pytest.skip("no user namespaces here")
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = [*apart, sys.executable, "-c", UNKNOWN_USER]
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=here)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
