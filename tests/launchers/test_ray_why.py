"""`why` of a job of Ray in which one actor hangs, or is at work, and the driver awaits it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Final

import pytest

from tests.launchers.launching import STARTS, launch
from tests.launchers.ray_scene import SERVICE
from tests.launchers.tools import environment
from tests.support.combinations import rest, those
from tests.support.processes.commands import Command, Json, User
from tests.support.processes.waiting import until

pytestmark = pytest.mark.timeout(300)
SCRIPT: Final = SERVICE.with_name("ray_hung.py")
WAYS: Final = ("run", "dial", "ray", "pid")
CALLS: Final = {"lock": "lock.acquire", "sleep": "time.sleep"}
ASKS: Final = int(os.environ.get("DAP_MUX_WHY_ASKS", "2"))


async def begun(user: User, cluster: dict[str, str], way: str, how: str) -> list[str]:
    """Start a job; return what asks `why` of it in this way."""
    if way in ("run", "dial"):
        dial = ["--dial"] if way == "dial" else []
        words = ["run", *dial, "--no-wait", "--", "python", str(SCRIPT), how]
        environ = {"DAP_MUX_DIAL_LISTEN": "127.0.0.1:0"} if dial else {}
        await launch(user, environment("ray"), words, **cluster, **environ)
        await _runs(user.folder)
        return ["why", "--attach"]
    process = await asyncio.create_subprocess_exec(
        str(environment("ray") / "python"), str(SCRIPT), how,
        cwd=user.folder, env={**user.environ, **cluster},
    )  # fmt: skip
    user.others.append(process)
    await _runs(user.folder)
    if way == "pid":
        return ["why", "pid:" + (user.folder / "pids").read_text("utf-8")]
    return ["why", "ray:" + (user.folder / "address").read_text("utf-8")]


async def _runs(folder: Path) -> None:
    await until((folder / "address").exists, within=STARTS, what="a job that waits")


async def asked(user: User, cluster: dict[str, str], words: list[str]) -> tuple[int, Json]:
    path = f"{environment('ray')}{os.pathsep}{user.environ['PATH']}"
    command: Command = await user.start(*words, "--json", env={**cluster, "PATH": path})
    done = await command.ends(within=STARTS)
    assert done.out, done.err
    return done.code, json.loads(done.out)


@pytest.mark.parametrize(("how", "way"), those({("lock", "run"), ("sleep", "ray")}, [*CALLS], WAYS))
async def test_a_hung_actor_is_never_called_healthy(
    user: User, cluster: dict[str, str], way: str, how: str
) -> None:
    words = await begun(user, cluster, way, how)
    for _ in range(ASKS):
        code, answer = await asked(user, cluster, words)
        assert code, answer
        if way == "ray":  # it listens once its method returns
            assert answer["verdict"] == "undecided", answer
            assert "runs a method" in answer["sentence"], answer
        else:
            assert answer["verdict"] == "not-joined", answer
            assert answer["suspects"][0]["stack"][0]["line"], answer
            assert f"(step) in {CALLS[how]}" in answer["sentence"], answer


@pytest.mark.parametrize("way", ["run", rest("dial"), rest("ray"), rest("pid")])
async def test_an_actor_at_work_is_never_called_hung(
    user: User, cluster: dict[str, str], way: str
) -> None:
    words = await begun(user, cluster, way, "busy")
    for _ in range(ASKS):
        _, answer = await asked(user, cluster, words)
        fine = {"undecided"} if way == "ray" else {"healthy"}
        assert answer["verdict"] in fine, answer
