"""Who may listen, who may come in, and what nobody gets to see: S1 to S5, S9, S10, by command."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import DapClient, RequestFailed
from dap_mux.private_files import new_token, token_of
from dap_mux.protocol.framing import Framer, encode_frame
from tests.support.commands import LIMIT, Command, Done, User
from tests.support.run_command import start
from tests.support.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(90)]
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


# S1: where we listen


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--listen", EVERYWHERE], "refused to listen on 0.0.0.0 without a token"),
        (["--listen", "[::]:0"], "refused to listen on :: without a token"),
        (["--listen", "example.org:0", "--insecure"], "without a token"),
        (["--listen", EVERYWHERE, "--tls-cert", "x.pem"], "without a token"),
        (["--listen", EVERYWHERE, "--token-file", "TOKEN"], "without TLS"),
        (["--listen", EVERYWHERE, "--insecure", "--token-file", "OPEN"], "others may read"),
        (["--token-file", "OPEN"], "others may read"),
        (["--token-file", "WEAK"], "holds no token"),
    ],
)
@pytest.mark.parametrize(
    ("command", "code"), [("attach", 4), ("adapter", 4), ("run", 125)], ids=str
)
async def test_s1_s4_a_bind_that_is_refused(
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


# S2, S3: the token


@pytest.mark.quick
async def test_s2_our_own_client_and_the_token(user: User, token: Path) -> None:
    """Right: 0. Wrong, none, or a file that others may read: 4."""
    _, address = await far(user, token, "--insecure")
    wrong, open_to_all = user.folder / "wrong", user.folder / "open"
    token_of(wrong)
    shutil.copy(token, open_to_all)
    open_to_all.chmod(0o640)
    done = await list_from_afar(user, address, "--token-file", str(token))
    assert (done.code, done.err) == (0, "")
    for words, sentence in (
        ((), "this session wants its token"),
        (("--token-file", str(wrong)), "wrong token"),
        (("--token-file", str(open_to_all)), "others may read"),
    ):
        done = await list_from_afar(user, address, *words)
        assert (done.code, done.out) == (4, ""), done.err
        assert sentence in done.err
        assert len(done.err.splitlines()) == 1
    done = await user.does("list")
    assert (done.code, done.err) == (0, ""), "its own user, by the session file"


async def test_s2_beyond_loopback_the_same_user_needs_the_token_too(
    user: User, token: Path
) -> None:
    command, _ = await far(user, token, "--insecure")
    stranger = await command.client("stranger", all_answered=False)
    with pytest.raises(RequestFailed, match="wants its token"):
        await stranger.handshake({"justMyCode": True}, timeout=LIMIT)
    await stranger.wait_for(lambda: not stranger.open, timeout=LIMIT)
    stock = await command.client("stock")
    secret = secret_in(token)
    await stock.handshake({"justMyCode": True, "token": secret}, timeout=LIMIT)
    await stock.disconnect()


async def test_s2_the_token_is_not_sent_in_the_clear(user: User, token: Path) -> None:
    """Our own client asks before it does what we would refuse to listen for."""
    for words in ((), ("--json",)):
        done = await user.does("list", "192.0.2.1:5677", "--token-file", str(token), *words)
        assert done.code == 4
        assert "refused to send the token to 192.0.2.1:5677 in the clear" in done.err


AS_NOBODY: Final = """
import encodings.idna, os, socket, sys
os.setgroups([])
os.setuid(65534)
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as mine:
    mine.sendall(sys.stdin.buffer.read())
    while heard := mine.recv(100000):
        sys.stdout.buffer.write(heard)
"""


async def as_nobody(port: int, *requests: bytes) -> list[str]:
    """Say this as another user, and leave; return the answers."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    words = (sys.executable, "-c", AS_NOBODY, str(port))
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
    heard, _ = await asyncio.wait_for(child.communicate(b"".join(map(encode_frame, requests))), 30)
    assert child.returncode == 0
    return [body.decode() for body in Framer().feed(heard)]


INITIALIZE: Final = (
    b'{"seq":1,"type":"request","command":"initialize","arguments":{"adapterID":"x"}}'
)
LEAVE: Final = b'{"seq":3,"type":"request","command":"disconnect"}'


def attach(secret: str) -> bytes:
    return (
        b'{"seq":2,"type":"request","command":"attach","arguments":{"role":"observer","token":"%s"}}'
        % secret.encode()
    )


async def test_s5_another_user_on_loopback(user: User, token: Path) -> None:
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


async def test_s5_the_token_of_a_session_without_a_token_file(user: User) -> None:
    """There is always one: in the session file."""
    session = await (await user.start("attach", NOWHERE)).session()
    assert len(session["token"]) >= 43
    answers = await as_nobody(session["port"], INITIALIZE, attach(session["token"]), LEAVE)
    assert '"success":true' in answers[1]


# S4, S5: the session file and the unix socket


async def test_s4_s5_what_a_session_leaves_on_the_disk(user: User) -> None:
    command = await user.start("attach", NOWHERE)
    session = await command.session()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in user.sessions.iterdir()}
    pid = command.process.pid
    assert modes == {f"{pid}.json": 0o600, f"{pid}.sock": 0o600}
    assert stat.S_IMODE(user.sessions.stat().st_mode) == 0o700
    client = await DapClient.connect_unix(session["unix"])
    await client.request("initialize", {"adapterID": "x"}, timeout=LIMIT)
    await client.request("attach", {"role": "observer"}, timeout=LIMIT)
    assert "ranks" in await client.request("list", timeout=LIMIT)
    await client.disconnect()
    command.process.terminate()
    assert (await command.ends()).code == 0
    assert not list(user.sessions.iterdir())


async def test_s4_a_session_file_that_others_may_read(user: User) -> None:
    command = await user.start("attach", NOWHERE)
    token = (await command.session())["token"]
    command.session_path.chmod(0o644)
    for words in ((), (str(command.session_path),)):
        done = await user.does("list", *words)
        assert (done.code, done.out) == (4, "")
        assert "others may read" in done.err
        assert token not in done.err


async def test_a_folder_too_deep_for_a_unix_socket(user: User) -> None:
    deep = user.folder / ("x" * 100)
    deep.mkdir()
    env = {"XDG_RUNTIME_DIR": str(deep)}
    command = await user.start("attach", NOWHERE, env=env)
    path = deep / "dap-mux" / f"{command.process.pid}.json"
    await until(path.exists, within=LIMIT, what="a session file")
    assert (await user.does("list", env=env)).code == 0
    assert not list(path.parent.glob("*.sock"))


# TLS


async def test_tls_for_our_own_client(user: User, token: Path, certificate: Path) -> None:
    tls = ("--tls-cert", str(certificate))
    command, address = await far(user, token, *tls)
    show = ("--token-file", str(token))
    done = await list_from_afar(user, address, *show, "--tls-ca", str(certificate))
    assert (done.code, done.err) == (0, "")
    other = certificate_in(user.folder / "other.pem")
    done = await list_from_afar(user, address, *show, "--tls-ca", str(other))
    assert done.code == 4
    assert "is not vouched for" in done.err
    done = await user.does("list")
    assert (done.code, done.err) == (0, ""), "on this machine by the unix socket, without TLS"
    await closes_who_does_not_speak_tls(user, command, address)


async def closes_who_does_not_speak_tls(user: User, command: Command, address: str) -> None:
    """Plain words are closed with a line in the log, and silence holds nobody up."""
    host, port = address.split(":")
    _, silent = await asyncio.open_connection(host, int(port))
    done = await list_from_afar(user, address)
    assert done.code == 1
    assert "Where the session speaks TLS, say --tls-ca" in done.err
    await command.says("closed a connection: this port speaks TLS, and it does not")
    silent.close()
    assert (await user.does("list")).code == 0


async def test_tls_to_a_port_that_does_not(user: User, token: Path, certificate: Path) -> None:
    command, address = await far(user, token, "--insecure")
    done = await list_from_afar(user, address, "--tls-ca", str(certificate))
    assert done.code == 1
    assert "does not speak TLS" in done.err
    await command.says("it speaks TLS, and this port does not")
    assert (await user.does("list")).code == 0


async def test_tls_for_any_client(user: User, token: Path, certificate: Path) -> None:
    """All words in one piece behind the handshake, and a message of a megabyte."""
    _, address = await far(user, token, "--tls-cert", str(certificate))
    host, port = address.split(":")
    context = ssl.create_default_context(cafile=certificate)
    client = await DapClient.connect(host, int(port), tls=context)
    asked = [
        client.send("initialize", {"adapterID": "x"}),
        client.send("attach", {"role": "observer", "token": secret_in(token)}),
        client.send("list"),
        client.send("list", {"states": ["x" * 1_000_000]}),
    ]
    answers = await asyncio.wait_for(asyncio.gather(*asked), LIMIT)
    assert [answer["success"] for answer in answers[:3]] == [True] * 3
    await client.disconnect()


@pytest.mark.parametrize(
    ("spoil", "code", "sentence"),
    [
        (lambda path: path.chmod(0o644), 4, "others may read"),
        (lambda path: path.write_text("nonsense"), 2, "are no certificate and its key"),
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
    assert (done.code, "needs the certificate" in done.err) == (2, True), done.err


# S2 again: no secret anywhere


TELL: Final = """\
import os, sys
print(sys.argv, dict(os.environ))
print("end")  # end
"""


async def test_s2_no_secret_in_any_log_at_any_level(user: User, token: Path) -> None:
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
    client = await run.client()
    stop_at = {str(user.folder / "train.py"): [{"line": 3, "condition": "ranks(0):"}]}
    arguments = {"token": secret, "logToFile": True, "justMyCode": True}
    await client.handshake(arguments, breakpoints=stop_at, timeout=LIMIT)
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
    """What these processes were started with."""
    names = ("cmdline", "environ")
    return [Path(f"/proc/{pid}/{name}").read_bytes() for pid in pids for name in names]


async def breaks_off(session: dict[str, Any], said: bytes) -> None:
    """Say this, until the session hangs up."""
    reader, writer = await asyncio.open_connection(session["host"], session["port"])
    writer.write(said)
    with suppress(ConnectionResetError):
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


# S9, S10


async def test_s9_ranks_beyond_loopback_are_warned_about(user: User) -> None:
    """On standard error and in the log; nobody connects to them before an editor attaches."""
    words = ("attach", "192.0.2.1:5678-5681", "127.0.0.1:9", "--log-dir", "logs")
    command = await user.start(*words)
    await command.session()
    command.process.terminate()
    err = (await command.ends()).err
    log = (user.folder / "logs" / "dap-mux.log").read_text()
    for text in (err, log):
        assert text.count("ranks listen on 192.0.2.1, not on loopback") == 1


async def test_s9_ranks_on_loopback_are_not(user: User) -> None:
    command = await user.start("attach", "127.0.0.1:9", "[::1]:9", "localhost:10", "-vv")
    await command.session()
    command.process.terminate()
    assert "loopback" not in (await command.ends()).err


async def test_s10_what_ranks_say_reaches_no_terminal_raw(user: User) -> None:
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
