"""Session files: how other processes of this user find a running session."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from dap_mux.pure.errors import NothingToConnect, UsageError
from dap_mux.system import procfs
from dap_mux.system.user_files import (
    check_private,
    foreign,
    is_taken,
    open_regular,
    own_folder,
    parse_json,
    write_whole,
)

VERSION = 1
_ALWAYS_THERE = ("host", "port", "pid", "unix", "token", "groups", "started")
# A process's start is known to a clock tick, the boot time it is counted from to a second.
START_TOLERANCE = 2.0
HOST_PORT = r"(?:\[([0-9a-fA-F:.]+)\]|([^:\s\[\]/]+)):([0-9]{1,5})"
LAST_PORT = 65535
LOCALHOST = "localhost"
_AT_LOCALHOST = ("127.0.0.1", "::1", "0.0.0.0", "::")  # noqa: S104  # compared, not listened on
NO_SESSION_FILE = (OSError, ValueError, KeyError, TypeError)
HOW_TO_START = "start one with `dap-mux run` or `dap-mux attach`"


def _pid_namespace() -> str:
    """Containers may share a folder, and still not see each other's processes."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


# One file for each session, `<pid>.json` of mode 0600 in a folder of mode 0700, the user's own:
# `$XDG_RUNTIME_DIR/dap-mux`, or `dap-mux-<uid>` in the temporary directory, or where another user
# has taken that name `~/.cache/dap-mux/sessions`. Keys: version, pid, host, port, unix (a socket's
# path or null), token (or null), groups (their names), started (seconds since the epoch, when the
# process started), namespace (of its pid; "" where there are none), entry (the first line of the
# program by its path, where ranks wait before it). It appears whole, and is removed when the
# session ends; one left behind by a killed process is removed when the next session starts, or when
# somebody looks for sessions.
class SessionFile(Struct, frozen=True):
    """One running session. `pid` 0: known by its address only."""

    host: str
    port: int
    pid: int = field(default_factory=os.getpid)
    unix: str | None = None
    token: str | None = None
    groups: tuple[str, ...] = ("job",)
    started: float = 0.0
    namespace: str = field(default_factory=_pid_namespace)
    entry: Mapping[str, int] = field(default_factory=dict)
    version: int = VERSION

    def __repr__(self) -> str:
        """Return what tells it from others; the token shows itself nowhere."""
        return f"SessionFile({self.address!r}, pid={self.pid})"

    @property
    def address(self) -> str:
        """`host:port`, as `--listen` and SESSION arguments take it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def with_token(self, token: str | None) -> SessionFile:
        """Return it with this token if its file has told none."""
        return replace(self, token=self.token or token)

    def public(self) -> dict[str, object]:
        """Return what others of this user may be told, ready for JSON; never the token."""
        return {
            "session": self.address,
            "host": self.host,
            "port": self.port,
            "unix": self.unix,
            "pid": self.pid,
            "groups": list(self.groups),
        }

    def write(self, folder: Path | None = None) -> Path:
        """Put this session's file in its folder, whole or not at all. Raises Refused, OSError."""
        folder = folder or session_folder()
        own_folder(folder)
        _remove_left_behind(folder)
        started = self.started or procfs.start_time(self.pid) or time.time()
        whole = msgspec.json.encode(asdict(replace(self, started=started)))
        path = self.path(folder)
        write_whole(path, msgspec.json.format(whole, indent=1))
        return path

    def remove(self, folder: Path | None = None) -> None:
        """Take the file away; it may be gone already."""
        with contextlib.suppress(OSError):
            self.path(folder).unlink()

    def path(self, folder: Path | None = None) -> Path:
        """Return where this session's file is, in its folder."""
        return (folder or session_folder()) / f"{self.pid}.json"

    @property
    def alive(self) -> bool:
        """Whether the process that wrote this file still runs; its number may be another's now."""
        if not _exists(self.pid):
            return False
        started = procfs.start_time(self.pid)
        return started is None or abs(started - self.started) <= START_TOLERANCE


def session_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where this user's session files are. It need not exist yet."""
    runtime = Path((os.environ if environ is None else environ).get("XDG_RUNTIME_DIR", ""))
    if runtime.is_absolute():
        return runtime / "dap-mux"
    import tempfile  # noqa: PLC0415  (it takes 4 ms, and most have the other folder)

    shared = Path(tempfile.gettempdir()) / f"dap-mux-{_user()}"
    # Anybody can take that name: then it is in the home of each user, for all of their commands.
    home = Path.home()
    if is_taken(shared) and home.is_dir() and not foreign(home.stat()):
        return home / ".cache" / "dap-mux" / "sessions"
    return shared


def running(folder: Path | None = None) -> list[SessionFile]:
    """Every live session of this user, oldest first. Raises Refused when the folder is not ours."""
    folder = folder or session_folder()
    if not folder.is_dir():
        return []
    own_folder(folder)
    _remove_left_behind(folder)
    found = (_read(path) for path in folder.glob("[0-9]*.json"))
    return sorted(
        (session for session in found if session and session.alive),
        key=lambda session: (session.started, session.pid),
    )


def _remove_left_behind(folder: Path) -> None:
    """Remove the files of processes that are gone, but for those that cannot be seen from here."""
    for path in folder.glob("[0-9]*.json"):
        with contextlib.suppress(*NO_SESSION_FILE):
            session, _ = _read_any(path)
            if session and session.namespace == _pid_namespace() and not session.alive:
                path.unlink()


def own_session() -> SessionFile:
    """Return the session of this process. Raises NothingToConnect."""
    return find(str(session_folder() / f"{os.getpid()}.json"))


def find(text: str | None = None, folder: Path | None = None) -> SessionFile:
    """Find the session meant by `HOST:PORT`, a session file's path, or nothing: the only one.

    Raises NothingToConnect where there is none, or several and no word; UsageError for any other
    text.
    """
    if text is None:
        return _only(running(folder))
    match = re.fullmatch(HOST_PORT, text)
    if match is None:
        return _from_path(Path(text))
    if int(match[3]) > LAST_PORT:  # the system would take its last 16 bits, another session's port
        raise UsageError(f"{text}: {match[3]} is no port; the last one is {LAST_PORT}")
    wanted = SessionFile(host=match[1] or match[2], port=int(match[3]), pid=0)
    # The file, where there is one, brings the token along.
    known = [each for each in running(folder) if each.port == wanted.port]
    exact = (each for each in known if each.host == wanted.host)
    local = (each for each in known if wanted.host == LOCALHOST and each.host in _AT_LOCALHOST)
    return next(exact, None) or next(local, wanted)


def _only(sessions: list[SessionFile]) -> SessionFile:
    if len(sessions) == 1:
        return sessions[0]
    if not sessions:
        raise NothingToConnect(f"you have no running session on this machine; {HOW_TO_START}")
    named = ", ".join(session.address for session in sessions)
    raise NothingToConnect(f"{len(sessions)} sessions are running; say which one: {named}")


def _from_path(path: Path) -> SessionFile:
    if path.suffix != ".json" and not path.exists():
        raise UsageError(f"{str(path)!r} is neither HOST:PORT nor a session file")
    if not path.exists():  # that of a killed session is removed when somebody looks
        raise NothingToConnect(
            f"there is no session file {path}: its session has ended, or the name is wrong; "
            f"{HOW_TO_START}"
        )
    session = _read(path)
    if session is None:
        raise NothingToConnect(f"{path} is not one of your session files; try `dap-mux sessions`")
    if not session.alive:
        raise NothingToConnect(f"the session of {path} has ended; {HOW_TO_START}")
    return session


def _read(path: Path) -> SessionFile | None:
    """Read one file; None when it is not ours, not whole or of another version.

    Raises Refused where others could read the token of a session that still runs.
    """
    try:
        session, status = _read_any(path)
    except NO_SESSION_FILE:
        return None
    if session is not None and session.alive:
        check_private(path, status)
    return session


def _read_any(path: Path) -> tuple[SessionFile | None, os.stat_result]:
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
        whole = None if foreign(status) else parse_json(file.read().decode("utf-8"))
    return None if whole is None else _decode(whole), status


def _decode(raw: dict[str, object]) -> SessionFile | None:
    if raw["version"] != VERSION:
        return None
    given = {key: raw[key] for key in _ALWAYS_THERE}
    others = {"namespace": str(raw.get("namespace")), "entry": raw.get("entry") or {}}
    return msgspec.convert({**given, **others}, SessionFile)


def _exists(pid: int) -> bool:
    if pid <= 0:
        return False
    if sys.platform == "win32":
        return True  # signal 0 is no harmless question there
    found = procfs.stat(pid)
    return procfs.exists(pid) and not (found and found.ended)  # killed, and not yet waited for


def _user() -> str:
    return os.environ.get("USERNAME", "user") if sys.platform == "win32" else str(os.getuid())
