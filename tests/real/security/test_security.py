"""Who may listen where, who may come in, and what is on the disk, by command."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from dap_mux.client import DapClient, RequestFailed
from dap_mux.system.user_files import new_token, token_of
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, User
from tests.support.processes.waiting import until
from tests.support.security import (
    EVERYWHERE,
    INITIALIZE,
    LEAVE,
    NOWHERE,
    as_nobody,
    attach,
    far,
    list_from_afar,
    secret_in,
)

pytestmark = [pytest.mark.real, pytest.mark.heavy]
# Where we listen


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--listen", EVERYWHERE], "refused to listen on 0.0.0.0 without a token"),
        (["--listen", "[::]:0"], "refused to listen on :: without a token"),
        (["--listen", "example.org:0", "--insecure"], "without a token"),
        (["--listen", EVERYWHERE, "--tls-cert", "x.pem"], "without a token"),
        (["--listen", EVERYWHERE, "--token-file", "TOKEN"], "without TLS"),
        (["--listen", EVERYWHERE, "--insecure", "--token-file", "OPEN"], "other users can read"),
        (["--token-file", "OPEN"], "other users can read"),
        (["--token-file", "WEAK"], "holds no valid token"),
    ],
)
@pytest.mark.parametrize(
    ("command", "code"), [("attach", 4), ("adapter", 4), ("run", 125)], ids=str
)
async def test_a_bind_that_is_refused(
    user: User, token: Path, command: str, code: int, words: list[str], sentence: str
) -> None:
    weak, open_to_all = user.folder / "weak", user.folder / "open"
    weak.write_text("hunter2")
    weak.chmod(0o600)
    shutil.copy(token, open_to_all)
    open_to_all.chmod(0o644)
    files = {"TOKEN": token, "OPEN": open_to_all, "WEAK": weak}
    rest = {"attach": [NOWHERE], "adapter": [], "run": [user.script("print('ran')")]}[command]
    done = await user.does(command, *(str(files.get(word, word)) for word in words), *rest)
    assert (done.code, done.out) == (code, ""), done.err
    assert sentence in done.err
    assert len(done.err.splitlines()) == 1
    assert not {secret_in(token), "hunter2"} & set(done.err.split())
    assert not list(user.sessions.glob("*"))


# The token


@pytest.mark.quick
async def test_our_own_client_and_the_token(user: User, token: Path) -> None:
    """Right: 0. Wrong, none, or a file that others may read: 4.

    Beyond loopback the same user needs it, too.
    """
    command, address = await far(user, token, "--insecure")
    wrong, open_to_all = user.folder / "wrong", user.folder / "open"
    token_of(wrong)
    shutil.copy(token, open_to_all)
    open_to_all.chmod(0o640)
    done = await list_from_afar(user, address, "--token-file", str(token))
    assert (done.code, done.err) == (0, "")
    for words, sentence in (
        ((), "this session requires a token"),
        (("--token-file", str(wrong)), "wrong token"),
        (("--token-file", str(open_to_all)), "other users can read"),
    ):
        done = await list_from_afar(user, address, *words)
        assert (done.code, done.out) == (4, ""), done.err
        assert sentence in done.err
        assert len(done.err.splitlines()) == 1
    done = await user.does("list")
    assert (done.code, done.err) == (0, ""), "its own user, by the session file"

    stranger = await command.client("stranger", all_answered=False)
    with pytest.raises(RequestFailed, match="requires a token"):
        await stranger.handshake({"justMyCode": True}, timeout=LIMIT)
    await stranger.wait_for(lambda: not stranger.open, timeout=LIMIT)
    secret = secret_in(token)
    stock = await joined(command, name="stock", attach={"justMyCode": True, "token": secret})
    await stock.disconnect()


async def test_the_token_is_not_sent_in_the_clear(user: User, token: Path) -> None:
    """Our own client asks before it does what we would refuse to listen for."""
    for words in ((), ("--json",)):
        done = await user.does("list", "192.0.2.1:5677", "--token-file", str(token), *words)
        assert done.code == 4
        assert "refused to send the token to 192.0.2.1:5677 unencrypted" in done.err


async def test_another_user_on_loopback(user: User, token: Path) -> None:
    """With the token in; without it, or with another, out. Root's port-forward is such a one."""
    command = await user.start("attach", NOWHERE, "--token-file", str(token))
    port = (await command.session())["port"]
    secret = secret_in(token)
    for shown, welcome in ((secret, True), (new_token(), False), ("", False)):
        answers = await as_nobody(port, INITIALIZE, attach(shown), LEAVE)
        assert '"command":"initialize"' in answers[0]
        assert ('"success":true' in answers[1]) is welcome
        assert "token" in answers[1] or welcome
        assert len(answers) == 2 + welcome, "who is refused is not heard again"


async def test_the_token_of_a_session_without_a_token_file(user: User) -> None:
    """There is always one: in the session file."""
    session = await (await user.start("attach", NOWHERE)).session()
    assert len(session["token"]) >= 43
    answers = await as_nobody(session["port"], INITIALIZE, attach(session["token"]), LEAVE)
    assert '"success":true' in answers[1]


# The session file and the unix socket


async def test_what_a_session_leaves_on_the_disk(user: User) -> None:
    command = await user.start("attach", NOWHERE)
    session = await command.session()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in user.sessions.iterdir()}
    pid = command.process.pid
    assert modes == {f"{pid}.json": 0o600, f"{pid}.sock": 0o600}
    assert (session["version"], session["pid"], session["host"]) == (1, pid, "127.0.0.1")
    assert stat.S_IMODE(user.sessions.stat().st_mode) == 0o700
    client = await DapClient.connect_unix(session["unix"])
    await client.request("initialize", {"adapterID": "x"}, timeout=LIMIT)
    await client.request("attach", {"role": "observer"}, timeout=LIMIT)
    assert "ranks" in await client.request("list", timeout=LIMIT)
    await client.disconnect()

    command.session_path.chmod(0o644)
    for words in ((), (str(command.session_path),)):
        done = await user.does("list", *words)
        assert (done.code, done.out) == (4, "")
        assert "other users can read" in done.err
        assert session["token"] not in done.err
    command.process.terminate()
    assert (await command.ends()).code == 0
    assert not list(user.sessions.iterdir())


async def test_a_folder_too_deep_for_a_unix_socket(user: User) -> None:
    deep = user.folder / ("x" * 100)
    deep.mkdir()
    env = {"XDG_RUNTIME_DIR": str(deep)}
    command = await user.start("attach", NOWHERE, env=env)
    path = deep / "dap-mux" / f"{command.process.pid}.json"
    await until(path.exists, within=LIMIT, what="a session file")
    assert (await user.does("list", env=env)).code == 0
    assert not list(path.parent.glob("*.sock"))
