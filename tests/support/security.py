"""Sessions with tokens and certificates, and those who want in: strangers, and other users."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from dap_mux.pure.protocol.messages import Framer, encode_frame
from dap_mux.system.user_files import token_of
from tests.support.processes.commands import Command, Done, User

NOWHERE: Final = "127.0.0.1:9"  # ranks that nobody ever asks for
EVERYWHERE: Final = "0.0.0.0:0"


@pytest.fixture
async def user() -> AsyncIterator[User]:
    """A user in a folder with a short name: a unix socket's path has about 100 letters."""
    folder = Path(tempfile.mkdtemp(prefix="dm-"))
    somebody = User(folder)
    try:
        yield somebody
    finally:
        await somebody.close()
        await somebody.nothing_is_left()  # who is being killed may write into it still
        shutil.rmtree(folder)


@pytest.fixture
def token(user: User) -> Path:
    """A token file."""
    path = user.folder / "token"
    token_of(path)
    return path


def secret_in(token: Path) -> str:
    """What must not be seen."""
    return token.read_text().strip()


@pytest.fixture
def certificate(user: User) -> Path:
    """A certificate that vouches for itself, and its key in the same file."""
    return certificate_in(user.folder / "certificate.pem")


def certificate_in(path: Path) -> Path:
    """Make one for 127.0.0.1."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here to make a certificate with")
    names = ["-subj", "/CN=dap-mux", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    key = path.with_suffix(".key")
    subprocess.run(
        [openssl, *words, "-keyout", str(key), "-out", str(path)], check=True, capture_output=True
    )
    with path.open("a") as both:
        both.write(key.read_text())
    path.chmod(0o600)
    return path


async def far(user: User, token: Path, *words: str) -> tuple[Command, str]:
    """A session that listens beyond loopback, and its address as somebody far away has it."""
    command = await user.start(
        "attach", NOWHERE, "--listen", EVERYWHERE, "--token-file", str(token), *words
    )
    session = await command.session()
    return command, f"127.0.0.1:{session['port']}"


async def list_from_afar(user: User, address: str, *words: str) -> Done:
    """`dap-mux list` where the session's file is not to be found."""
    return await user.does("list", address, *words, env={"XDG_RUNTIME_DIR": str(user.folder)})


AS_NOBODY: Final = """
import encodings.idna, os, socket, sys
os.setgroups([])
os.setuid(65534)
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as mine:
    try:
        mine.sendall(sys.stdin.buffer.read())
        while heard := mine.recv(100000):
            sys.stdout.buffer.write(heard)
    except ConnectionError:
        pass  # closed with our words unread
"""


async def as_nobody(port: int, *requests: bytes) -> list[str]:
    """Say this as another user, and leave; return the answers."""
    heard = await bytes_as_nobody(port, b"".join(map(encode_frame, requests)))
    return [body.decode() for body in Framer().feed(heard)]


async def bytes_as_nobody(port: int, said: bytes) -> bytes:
    """Say this as another user, whatever listens there; return all that came back."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    words = (sys.executable, "-c", AS_NOBODY, str(port))
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
    heard, _ = await asyncio.wait_for(child.communicate(said), 30)
    assert child.returncode == 0
    return heard


INITIALIZE: Final = (
    b'{"seq":1,"type":"request","command":"initialize","arguments":{"adapterID":"x"}}'
)
LEAVE: Final = b'{"seq":3,"type":"request","command":"disconnect"}'


def attach(secret: str) -> bytes:
    return (
        b'{"seq":2,"type":"request","command":"attach","arguments":{"role":"observer","token":"%s"}}'
        % secret.encode()
    )
