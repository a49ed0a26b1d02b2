"""`dap-mux console --serve`: plain consoles for `nc`, and who is not let in."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress

import pytest

from dap_mux.frontends.console.console import BANNER
from tests.support.clients.jobs import held, serving
from tests.support.hosts.private_network import possible, private_network
from tests.support.processes.commands import LIMIT, User, line_of, listed
from tests.support.processes.netcat import PROMPT, Netcat, served
from tests.support.processes.run_command import COUNT
from tests.support.security import bytes_as_nobody

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


@pytest.mark.heavy
async def test_two_people_with_nc(user: User) -> None:
    path = user.script(COUNT)
    loss = line_of(path, "loss")
    run, editor = await held(user, path, "loss", n=2)
    command, port = await served(user)

    one, two = await Netcat.connect(port), await Netcat.connect(port)
    assert "DAP-MUX" in await one.until(PROMPT)
    await two.until(PROMPT)
    assert "| job          |      1 |" in await one.does("list\r")
    attached = await two.does("attach 1", b"(Pdb 1) ")
    assert f"{path}({loss})step()" in attached
    assert "\n10\n" in "\n" + await two.does("10 * rank", b"(Pdb 1) ")
    assert "return loss" in await two.does("n", b"(Pdb 1) ")
    said = await one.until(f"rank 1 stopped at train.py:{loss + 1} (step)\n".encode())
    assert said.startswith("\n"), "not behind the prompt"
    assert await one.until(PROMPT) == "dap-mux> ", "which is shown again"

    await two.close()
    assert "disconnected; other debuggers" in await one.does("quit", b"resumed\n")
    assert await one.rest() == ""
    await one.close()
    await listed(editor, "state", "stopped", "stopped")
    await editor.disconnect()
    assert (await run.ends()).code == 0
    assert (await command.ends()).code == 0, "no session, nothing to serve"


NO_PERSONS = {
    "a browser that posts": b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\ncontinue\r\n",
    "a browser": b"GET / HTTP/1.0\r\n\r\n",
    "an editor": b"Content-Length: 119\r\n\r\n{",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\n",
    "TLS whose hello holds no line": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    "STUN": b"\x00\x01\x00\x00\x21\x12\xa4\x42" + bytes(range(12)),
    "noise behind a line": b"list\nlist\n" + bytes(range(256)),
    "a line that does not end": b"x" * 200_000,
}


async def test_whatever_is_no_person_is_closed_before_it_joins(user: User) -> None:
    """All of them many times over, and gone as fast as they have come: nothing is said of it."""
    await serving(user, user.script(COUNT), n=1)
    command, port = await served(user)
    for name, hello in NO_PERSONS.items():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(hello)
        with suppress(ConnectionError):  # it has not read all that we wrote
            heard = await asyncio.wait_for(reader.read(), LIMIT)
            assert heard in (b"", f"{BANNER}\n{PROMPT.decode()}".encode()), name
        writer.close()
    for hello in [*NO_PERSONS.values()] * 8:
        with socket.create_connection(("127.0.0.1", port)) as hasty:
            hasty.sendall(hello)
            hasty.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert await bytes_as_nobody(port, b"list\n") == b"", "another user: not a word"
    await command.says("refused a console to another user")
    shown = await user.does("list")
    assert "waiting" in shown.out, "nobody has joined: the rank still waits"
    assert "Traceback" not in command.err


async def test_a_person_has_a_prompt_at_once_and_joins_with_a_command(user: User) -> None:
    """Looking at the prompt, a slip, and leaving again mean nothing to the ranks."""
    run = await serving(user, user.script(COUNT), n=1)
    command, port = await served(user)
    idle, person = await Netcat.connect(port), await Netcat.connect(port)
    for console in (idle, person):
        assert "DAP-MUX" in await console.until(PROMPT)
    assert await person.does("") == PROMPT.decode()
    assert "unknown command 'lsit'" in await person.does("lsit")
    assert "waiting" in (await user.does("list")).out, "nobody has joined"
    leaver = await Netcat.connect(port)
    await leaver.until(PROMPT)
    leaver.types("quit")
    assert await leaver.rest() == ""
    await leaver.close()
    assert "waiting" in (await user.does("list")).out, "nobody has joined"
    person.types("continue")
    assert (await run.ends()).code == 0, "somebody has joined, and the rank has run"
    await person.close()
    assert (await command.ends()).code == 0, "who has typed nothing does not hold it up"
    await idle.close()


@pytest.mark.heavy
@pytest.mark.skipif(not possible(), reason="only root may have a network of its own")
@pytest.mark.parametrize("hears", [False, True], ids=["idle", "in the middle of a word"])
async def test_a_person_whose_line_is_down_holds_no_rank(user: User, *, hears: bool) -> None:
    """It was the only debugger, and its ranks stand."""
    far = "127.0.0.9"
    with private_network() as network:
        run = await serving(user, user.script(COUNT), n=1)
        _, port = await served(user)
        person = await Netcat.connect(port, local=far)
        await person.until(PROMPT)
        await person.does("break train.py:1")
        await until_stopped(user)
        if hears:
            person.types("list")
        network.lose(far)
        if hears:
            await user.does("cast", "all", "p 1")
        assert (await run.ends(within=4 * LIMIT)).code == 0, "released"
        await person.close()


async def until_stopped(user: User) -> None:
    """The rank stands, as a command of its own sees it: it asks again until it does."""
    for _ in range(100):
        if "stopped" in (await user.does("list")).out:
            return
    raise AssertionError("the rank does not stand")


async def test_a_line_longer_than_any_command_ends_only_its_own_connection(user: User) -> None:
    run, editor = await held(user, user.script(COUNT), "loss", n=1)
    command, port = await served(user)
    long, other = await Netcat.connect(port), await Netcat.connect(port)
    await other.until(PROMPT)
    await long.until(PROMPT)
    assert "1 stopped" in await long.does("list")
    assert "disconnected;" in await long.does("x" * 200_000, b"resumed\n")
    assert "1 stopped" in await other.does("list")
    await other.close()
    await long.close()
    await editor.disconnect()
    assert (await run.ends()).code == 0
    assert (await command.ends()).code == 0
