"""What the skill and the page tell an agent to type works in a shell, without the tools."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.processes.commands import COMMAND, LIMIT, Done, User, listed
from tests.support.processes.proc_net import free_ports
from tests.support.processes.run_command import start
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]
ROOT: Final = Path(__file__).resolve().parents[3]
SKILL: Final = (ROOT / "dap_mux/frontends/mcp/SKILL.md").read_text("utf-8")
PAGE: Final = (ROOT / "docs/agents.md").read_text("utf-8")
BLOCK: Final = re.compile(r"^## (\w[^\n]*)\n.*?^```sh\n(.*?)```", re.MULTILINE | re.DOTALL)
ROW: Final = re.compile(r"^\| `(\w+)` \| (?:yes|no) \|.*?\| (.*) \|$", re.MULTILINE)
LOOP: Final = """\
import os, time
rank = int(os.environ["RANK"])
step = 0
loss = 1.0 + 9 * (rank == 1)

def train():
    time.sleep(0.02)
    return loss

print("begun", flush=True)
while True:
    step += 1
    train()
"""
HANGS: Final = """\
import os, threading, time
rank = int(os.environ["RANK"])
step = 7
lock = threading.Lock()
print("begun", flush=True)
with lock:
    lock.acquire()
"""
CRASHES: Final = """\
import os, time
rank = int(os.environ["RANK"])
shards = [3, 5]
time.sleep(rank)
shards[2 - rank]
time.sleep(5)
"""
PROGRAMS: Final = {
    "It hangs": HANGS, "A value is wrong": LOOP, "It crashed": CRASHES, "It is slow": LOOP,
}  # fmt: skip


async def shell(user: User, line: str) -> Done:
    """Run one line as an agent's shell does."""
    path = f"{COMMAND.parent}{os.pathsep}{user.environ['PATH']}"
    base = str(free_ports(4))
    out, err = user.folder / "shell.out", user.folder / "shell.err"
    with out.open("wb") as out_file, err.open("wb") as err_file:
        process = await asyncio.create_subprocess_shell(
            line,
            cwd=user.folder,
            env={**user.environ, "PATH": path, "DAP_MUX_BASE_PORT": base},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out_file,
            stderr=err_file,
        )
        try:
            await asyncio.wait_for(process.wait(), LIMIT)
        except asyncio.TimeoutError:
            raise AssertionError(f"{line}: {out.read_text()} {err.read_text()}") from None
    assert process.returncode is not None
    return Done(process.returncode, out.read_text("utf-8"), err.read_text("utf-8"))


def answer(done: Done, line: str) -> Any:
    """The JSON that a command has printed; None where it prints none."""
    assert done.code not in (2, 127), done
    assert "Traceback" not in done.err or "train.py" in done.err, done
    try:
        return json.loads(done.out) if "--json" in line else None
    except ValueError:
        raise AssertionError((line, done)) from None


async def following(user: User, text: str) -> None:
    """Start a job of two ranks in a session, which nobody debugs yet."""
    run = await start(user, "--no-wait", user.script(text), n=2)
    await until(lambda: run.out.count("begun") == 2, within=LIMIT, what="the ranks have begun")


@pytest.mark.parametrize(("what", "block"), BLOCK.findall(SKILL), ids=lambda each: str(each)[:12])
async def test_the_skills_commands(user: User, what: str, block: str) -> None:
    lines = block.strip().splitlines()
    assert len(lines) == 3
    if what == "It crashed":
        user.script(PROGRAMS[what])
    else:
        await following(user, PROGRAMS[what])
    found = [(line, answer(await shell(user, line), line)) for line in lines]
    if what == "It crashed":
        end = json.loads((user.folder / "end.json").read_text("utf-8"))
        assert end["first"]["ranks"] == "rank 0"
        assert end["first"]["how"] == "IndexError: list index out of range"
    elif what == "It hangs":
        assert found[0][1]["verdict"] != "healthy", found[0]
    elif what == "A value is wrong":
        assert [one["value"] for one in found[0][1]["values"]] == ["1.0", "10.0"]
    else:
        assert found[2][1]["values"]


async def test_every_tool_has_its_command(user: User) -> None:
    rows = dict(ROW.findall(PAGE))
    assert len(rows) == 12
    commands = {tool: re.search(r"`([^`]*dap-mux[^`]*)`", text) for tool, text in rows.items()}
    lines = {tool: found[1].replace("\\|", "|") for tool, found in commands.items() if found}
    assert lines.keys() == rows.keys()
    user.script(LOOP)
    run = await user.start(
        *lines.pop("start").split()[1:], env={"DAP_MUX_BASE_PORT": str(free_ports(4))}
    )
    human = await run.client("human")
    path = str(user.folder / "train.py")
    await human.handshake({"justMyCode": True}, breakpoints={path: [8]}, client_id="vscode")
    await listed(human, "state", "stopped", "stopped")
    assert lines.pop("output") == "dap-mux run"
    for tool, line in lines.items():
        done = await shell(user, line)
        body = answer(done, line)
        assert body or "--json" not in line, (tool, done)
        if tool == "values":
            assert [one["value"] for one in body["results"]] == ["0", "1"]
        if tool == "go":
            assert "\\n-> " in json.dumps(body), body


async def test_the_skill_is_installed_where_no_extra_is_needed(user: User) -> None:
    done = await user.does("mcp", "--install-skill")
    file = user.folder / ".claude/skills/dap-mux/SKILL.md"
    assert (done.code, done.out) == (0, ".claude/skills/dap-mux/SKILL.md\n")
    assert file.read_text("utf-8") == SKILL
    other = user.folder / "notes"
    other.write_text("mine")
    file.unlink()
    file.symlink_to(other)
    assert (await user.does("mcp", "--install-skill")).code == 0
    assert (other.read_text("utf-8"), file.read_text("utf-8")) == ("mine", SKILL)
    done = await user.does("mcp", "--install-skill", "notes")
    assert done.code == 2
    assert done.err.startswith("dap-mux: --install-skill: notes/dap-mux/SKILL.md cannot be written")
