"""No token in any log, no raw control character on a terminal, and warnings of open ports."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import RequestFailed
from dap_mux.pure.protocol.messages import encode_frame
from dap_mux.system.user_files import new_token
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, User
from tests.support.processes.run_command import start
from tests.support.security import INITIALIZE, attach, secret_in

pytestmark = [pytest.mark.real, pytest.mark.heavy]
TELL: Final = """\
import os, sys
print(sys.argv, dict(os.environ))
print("end")  # end
"""


async def test_no_secret_in_any_log_at_any_level(user: User, token: Path) -> None:
    """What we log, what the ranks log, what any of our processes was started with."""
    secret = secret_in(token)
    words = ["-vvv", "--token-file", str(token), user.script(TELL)]
    debugpy_logs = user.folder / "debugpy"
    run = await start(user, *words, n=2, DEBUGPY_LOG_DIR=str(debugpy_logs), PYDEVD_DEBUG="1")
    wrong = new_token()
    stranger = await run.client("wrong")
    with pytest.raises(RequestFailed, match="wrong token"):
        await stranger.handshake({"token": wrong}, timeout=LIMIT)
    await breaks_off(await run.session(), broken_frames(secret))
    stop_at = {str(user.folder / "train.py"): [{"line": 3, "condition": "ranks(0):"}]}
    arguments = {"token": secret, "logToFile": True, "justMyCode": True}
    client = await joined(run, stop_at, attach=arguments)
    stop = await client.wait_event("stopped", timeout=LIMIT)
    started_with = words_of(user.processes())
    assert len(started_with) >= 6, "the command and its ranks"
    shown = await user.does("config", "show", env={"DAP_MUX_TOKEN_FILE": str(token)})
    sessions = await user.does("sessions", "--json")
    listed = await user.does("list", "--json")
    await client.request("continue", {"threadId": stop["threadId"]}, timeout=LIMIT)
    done = await run.ends()
    assert done.code == 0, done.err
    told = [one.out + one.err for one in (done, shown, sessions, listed)]
    written = [
        path.read_bytes() for path in user.folder.rglob("*") if path.is_file() and path != token
    ]
    assert any(b"configurationDone" in text for text in written), "debugpy's own logs are there"
    for text in [*started_with, *written, *(one.encode() for one in told)]:
        for hidden in (secret, wrong):
            assert hidden.encode() not in text
            assert hidden[:20].encode() not in text
    assert "refused client" in done.err


def words_of(pids: Iterable[int]) -> list[bytes]:
    """What these processes were started with; one that ends meanwhile tells no more."""
    found = []
    for pid in pids:
        for name in ("cmdline", "environ"):
            with suppress(FileNotFoundError, ProcessLookupError):
                found.append(Path(f"/proc/{pid}/{name}").read_bytes())
    return found


async def breaks_off(session: dict[str, Any], said: bytes) -> None:
    """Say this, until the session hangs up."""
    reader, writer = await asyncio.open_connection(session["host"], session["port"])
    writer.write(said)
    with suppress(ConnectionError):  # reset, or a broken pipe where its farewell came just before
        await asyncio.wait_for(reader.read(), LIMIT)
    writer.close()


def broken_frames(secret: str) -> bytes:
    """A client that counts its bytes wrongly: the token stands where a header should."""
    body = attach(secret)
    cut = body.index(secret.encode())
    return (
        encode_frame(INITIALIZE)
        + encode_frame(body)[: -len(body)].replace(str(len(body)).encode(), str(cut).encode())
        + body
    )


# Ranks beyond loopback, and what ranks print


async def test_ranks_beyond_loopback_are_warned_about(user: User) -> None:
    """On standard error and in the log; nobody connects to them before an editor attaches."""
    words = ("attach", "192.0.2.1:5678-5681", "127.0.0.1:9", "--log-dir", "logs")
    command = await user.start(*words)
    await command.session()
    command.process.terminate()
    err = (await command.ends()).err
    log = (user.folder / "logs" / "dap-mux.log").read_text()
    for text in (err, log):
        assert text.count("ranks listen on 192.0.2.1, not on loopback") == 1


async def test_ranks_on_loopback_are_not(user: User) -> None:
    command = await user.start("attach", "127.0.0.1:9", "[::1]:9", "localhost:10", "-vv")
    await command.session()
    command.process.terminate()
    assert "loopback" not in (await command.ends()).err


async def test_what_ranks_say_reaches_no_terminal_raw(user: User) -> None:
    """What they print, what they raise, and their last words before they listened."""
    evil = "\\x1b]0;pwned\\x07\\x9b2J\\r\\u202e"
    program = f"print('{evil}said'); raise SystemExit('{evil}raised')"
    done = await (await start(user, "--no-wait", user.script(program), n=2)).ends()
    assert done.code == 1
    early = (
        f"import sys; sys.stderr.write('{evil}early'); sys.stderr.flush(); import os; os._exit(3)"
    )
    (user.folder / "sitecustomize.py").write_text(
        f"import os, sys\nif 'RANK' in os.environ and 'dap_mux.rank' in sys.orig_argv: {early}\n"
    )
    path = {"PYTHONPATH": str(user.folder)}
    last = await (await start(user, user.script("pass"), n=1, **path)).ends()
    assert "early" in last.err
    assert "raised" in done.out
    assert "said" in done.out
    for text in (done.out, done.err, last.out, last.err):
        assert not set(text) & set("\x1b\x07\x9b\r\u202e")
