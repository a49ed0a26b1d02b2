"""Files beside the clients: their digests, worked out again only when they change."""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from pathlib import Path

import pytest

from dap_mux.pure.remote import MAX_COMPARED_BYTES, found, look_at
from dap_mux.rank.injected import source_of
from dap_mux.shell.local_machine import LocalFiles, Threads
from dap_mux.shell.sockets import is_from_here


async def digests(files: LocalFiles, *paths: str | Path) -> dict[str, str]:
    answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
    Threads().start(partial(files.digests, [*map(str, paths)]), answer.set_result)
    return await asyncio.wait_for(answer, 20)


async def test_the_same_as_in_a_rank(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.py", "large.py", "none.py")]
    paths[0].write_text("x = 1\n")
    with paths[1].open("wb") as file:
        file.truncate(MAX_COMPARED_BYTES + 1)
    told = await digests(LocalFiles(), *paths, tmp_path)
    for path in (*paths, tmp_path):
        assert (
            told[str(path)] == found(eval(look_at(source_of("file_probe"), str(path), ""))).digest
        )


async def test_a_change_is_seen(tmp_path: Path) -> None:
    files, path = LocalFiles(), tmp_path / "a.py"
    path.write_text("x = 1\n")
    before = await digests(files, path)
    assert await digests(files, path) == before
    path.write_text("x = 2\n")
    os.utime(path, ns=(1, 1))
    assert await digests(files, path) != before


async def test_a_change_that_its_time_does_not_show_is_seen(tmp_path: Path) -> None:
    """Twice saved within one tick of the file system's clock: so may every recent file be."""
    files, path = LocalFiles(), tmp_path / "a.py"
    now = time.time_ns() + 10**12  # a clock that is ahead: no pause of ours makes it old
    seen = []
    for text in ("x = 1\n", "x = 2\n"):
        path.write_text(text)
        os.utime(path, ns=(now, now))
        seen.append(await digests(files, path))
    assert seen[0] != seen[1]


async def test_a_relative_path_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").touch()
    assert await digests(LocalFiles(), "a.py") == {"a.py": ""}


async def test_nothing_asked_is_answered_too() -> None:
    assert await digests(LocalFiles()) == {}


class Transport(asyncio.Transport):
    """What the event loop tells of a connection."""

    def __init__(self, family: int | None, peer: object = None) -> None:
        class Socket:
            pass

        sock = Socket()
        sock.family = family  # type: ignore[attr-defined]
        super().__init__({"socket": sock if family is not None else None, "peername": peer})


@pytest.mark.parametrize(
    ("family", "peer", "near"),
    [
        (None, None, True),
        (1, "", True),
        (2, ("127.0.0.1", 5), True),
        (2, ("127.0.0.9", 5), True),
        (10, ("::1", 5, 0, 0), True),
        (2, ("10.0.0.1", 5), False),
        (10, ("fe80::1%eth0", 5, 0, 0), False),
    ],
    ids=["pipe", "unix", "loopback", "loopback too", "v6", "lan", "link-local"],
)
def test_who_connects_from_here(family: int | None, peer: object, *, near: bool) -> None:
    assert is_from_here(Transport(family, peer)) is near
