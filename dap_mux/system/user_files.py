"""Files that a user names or a project brings, and private ones: read without being surprised.

Only regular files are read: a FIFO keeps its reader waiting, and a device may never end. Text that
is nested more deeply than a parser can follow is malformed, like anything else that it refuses.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

from dap_mux.pure.errors import Refused, UsageError

_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class NoHome(ValueError):
    """`~` or `~user` names no folder."""


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; never waits. Raises OSError, which says what it is else."""
    check_regular(path, path.stat())  # opening a device may have an effect
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | _NO_WAIT)
    try:
        check_regular(path, os.fstat(handle))  # it may be another one by now
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def check_regular(path: Path, status: os.stat_result) -> None:
    """Raise OSError unless this is a regular file."""
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))


def read_regular(path: Path) -> str:
    """Return the text of a regular file. Raises OSError, UnicodeDecodeError."""
    with open_regular(path) as file:
        return file.read().decode("utf-8")


def parse_json(text: str) -> Any:
    """Parse JSON. Raises ValueError, also where it is nested too deeply."""
    import json  # noqa: PLC0415  (it takes 2 ms, and an adapter that starts has nothing to parse)

    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def expand_home(path: str) -> Path:
    """Put in the home of `~` and `~user`. Raises NoHome where there is none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise NoHome(f"{Path(path).parts[0]} is not the home folder of a user here") from None


# Private files: the session folder, tokens, keys.
#
# A token is 32 random bytes as text, alone in a file of mode 0600 in a folder where nobody else
# may replace it. What others can read is refused, not mended: it may have been read already.

TOKEN_BYTES: Final = 32
_ONE_WORD: Final = r"[!-~]{43,1024}"  # 43 letters of base64 hold 32 bytes
_POSIX: Final = sys.platform != "win32"


def new_token() -> str:
    """Return a token that nobody can guess, as `secrets` does; importing that takes 4 ms."""
    return base64.urlsafe_b64encode(os.urandom(TOKEN_BYTES)).rstrip(b"=").decode("ascii")


def read_token(path: Path) -> str:
    """Return the token in a file. Raises Refused, which never quotes it; UsageError."""
    try:
        with open_regular(path) as file:
            check_private(path, os.fstat(file.fileno()))
            text = file.read(4096).decode("ascii", "replace").strip()
    except OSError as error:
        raise UsageError(f"the token file {path} cannot be read: {error.strerror}") from None
    _check_folder(path)
    if not re.fullmatch(_ONE_WORD, text):
        raise Refused(
            f"{path} holds no valid token: {TOKEN_BYTES} random bytes as one word of at least 43 "
            "characters. Delete it, and the next session creates a valid one"
        )
    return text


def token_of(path: Path) -> str:
    """Return the token in a file, which is made with a new one where there is none yet."""
    if os.path.lexists(path):
        return read_token(path)
    try:
        # Another session may look at this moment: it sees a whole one.
        write_whole(path, f"{new_token()}\n".encode("ascii"), put=_put)
    except OSError as error:
        raise UsageError(f"the token file {path} cannot be created: {error.strerror}") from None
    return read_token(path)


def write_whole(path: Path, data: bytes, put: Callable[[Path, Path], object] = os.replace) -> None:
    """Write a file of mode 0600 that appears whole or not at all. Raises OSError.

    A link that somebody put in its place is replaced, not followed. `put` gives it its name.
    """
    # As `tempfile.mkstemp` does; importing that takes every start 4 ms.
    new = path.parent / f".{path.name}-{os.urandom(8).hex()}"
    exclusive = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(new, exclusive, 0o600)  # nobody else has had it open
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        put(new, path)
    finally:
        new.unlink(missing_ok=True)


def _put(made: Path, path: Path) -> None:
    """Give the file its name, unless another session was faster: then both have that one."""
    try:
        os.link(made, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        made.replace(path)


def check_private(path: Path, status: os.stat_result) -> None:
    """Raise Refused where others may read or write the file, or it is another user's.

    Root's files may be readable by our group: so does Kubernetes mount a secret.
    """
    if not _POSIX:
        return
    mode, mounted = stat.S_IMODE(status.st_mode), status.st_uid == 0 != os.getuid()
    if status.st_uid != os.getuid() and not mounted:
        raise Refused(f"{path} belongs to another user; use a file of your own")
    if mode & (0o037 if mounted else 0o077):
        raise Refused(
            f"other users can read {path} (mode {mode:04o}): chmod 600 it, and replace it"
        )


def own_folder(folder: Path) -> None:
    """Make the folder ours alone. Raises Refused where another user's stands in its place."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if is_taken(folder):
        raise Refused(f"{folder} is not your own folder; remove it, or set XDG_RUNTIME_DIR")
    if _POSIX and stat.S_IMODE(folder.lstat().st_mode) != 0o700:
        folder.chmod(0o700)


def is_taken(folder: Path) -> bool:
    """Whether something else than a folder of ours is there."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return not stat.S_ISDIR(status.st_mode) or foreign(status)


def foreign(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to somebody else."""
    return _POSIX and status.st_uid != os.getuid()


def startable(program: Path) -> Path | None:
    """Return the program behind all links if it may be started though another process named it.

    That is: it and each folder above it belong to root or to us, and nobody else can write to them
    or, in a sticky folder such as /tmp, replace what is ours there.
    """
    try:
        found = program.resolve(strict=True)
        statuses = [each.lstat() for each in (found, *found.parents)]
    except (OSError, RuntimeError):  # it is gone, or a link leads to itself
        return None
    ours = all(status.st_uid in (0, os.geteuid()) for status in statuses) if _POSIX else True
    open_to_all = any(_others_may_write(status.st_mode) for status in statuses)
    return found if ours and not open_to_all else None


def _others_may_write(mode: int) -> bool:
    return bool(_POSIX and mode & 0o002 and not (stat.S_ISDIR(mode) and mode & stat.S_ISVTX))


def _check_folder(path: Path) -> None:
    """Refuse a folder in which other users can replace the file."""
    mode = path.parent.stat().st_mode
    if _POSIX and mode & 0o022 and not mode & stat.S_ISVTX:
        raise Refused(
            f"other users can write to {path.parent} (mode {stat.S_IMODE(mode):04o}), where the "
            "token is: chmod 700 it"
        )
