"""Stacks read from another process's memory, of each Python that is read so."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

import pytest

from dap_mux.rank.outside.python_memory import Memory, PythonProcess, Unreadable, line_at
from tests.support.processes.commands import LIMIT
from tests.support.processes.pythons import NEWEST, python_with
from tests.support.processes.waiting import until

READ: Final = ("3.11", "3.12", "3.13")
PROGRAM: Final = """\
import threading, time
class Thing: pass
def load(step, name="sh\\u00e4rd", ratio=1.5, less=-7, big=1 << 40, huge=1 << 90, flag=True):
    thing, nothing = Thing(), None
    if step:
        return load(step - 1)
    print("waits", flush=True)
    threading.Event().wait(
        1e6)
def steps():
    yield from (load(2) for _ in range(1))
threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()
list(steps())
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")


Stacks = dict[Any, list[dict[str, Any]]]


async def stacks_of(python: Path, folder: Path) -> Stacks:
    """What is read of a process that waits in PROGRAM: the frames of its threads by their names."""
    script = folder / "train.py"
    script.write_text(PROGRAM, "utf-8")
    found: Stacks = {}
    process = await asyncio.create_subprocess_exec(python, script, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout
        assert await process.stdout.readline() == b"waits\n"
        read = PythonProcess(process.pid)

        def waits() -> bool:
            with suppress(Unreadable):  # it still runs
                threads = read.threads()
                found.update((thread["thread_name"], thread["frames"]) for thread in threads)
            return bool(found) and "wait" in [frame["name"] for frame in found["MainThread"]]

        await until(waits, within=LIMIT, what="the process waits")
    finally:
        process.kill()
        await process.wait()
    return found


@pytest.mark.parametrize("version", READ)
async def test_stacks_and_variables_of_each_version(version: str, tmp_path: Path) -> None:
    python = python_with(NEWEST, version)
    if python is None:
        pytest.skip(f"Python {version} is not here: tests/launchers/install pythons")
    threads = await stacks_of(python, tmp_path)
    assert {*threads} == {"MainThread", None}
    own = [frame for frame in threads["MainThread"] if frame["filename"].endswith("/train.py")]
    places = [(frame["name"], frame["line"]) for frame in own]
    assert places == [
        *[("load", 8), ("load", 6), ("load", 6)],
        *[("<genexpr>", 11), ("steps", 11), ("<module>", 13)],
    ]
    shown = {each["name"]: each["repr"] for each in own[0]["locals"]}
    assert shown.pop("thing").startswith("<Thing at 0x")
    assert shown.pop("huge").startswith("<int at 0x")
    assert shown == {
        "step": "0",
        "name": '"sh\u00e4rd"',
        "ratio": "1.5",
        "less": "-7",
        "big": str(1 << 40),
        "flag": "True",
        "nothing": "None",
    }
    assert [frame["name"] for frame in threads[None]][-1] == "_bootstrap"


def test_what_is_no_such_process() -> None:
    with subprocess.Popen(["sleep", "100"]) as process:
        try:
            with pytest.raises(Unreadable, match="read by py-spy only"):
                PythonProcess(process.pid)
            memory = Memory(process.pid)
            for address in (0, 1 << 63, -1, 1 << 200):
                with pytest.raises(Unreadable):
                    memory.word(address)
        finally:
            process.kill()
    with pytest.raises(Unreadable, match="memory cannot be read"):
        PythonProcess(process.pid)


def codes_in(code: CodeType) -> list[CodeType]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return [code, *(each for one in inner for each in codes_in(one))]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="older tables are others")
@pytest.mark.parametrize("module", [subprocess, textwrap, threading])
def test_the_lines_of_all_instructions(module: ModuleType) -> None:
    """As Python itself reads the table."""
    text = Path(str(module.__file__)).read_text("utf-8")
    for code in codes_in(compile(text, "program", "exec")):
        for start, end, line in code.co_lines():
            if line is not None:
                units = range(start // 2, end // 2)
                found = {line_at(code.co_linetable, code.co_firstlineno, each) for each in units}
                assert found == {line}, (code.co_name, start)


def test_a_malformed_table_ends() -> None:
    for table in (b"", b"\xff" * 50, b"\x7f" * 50, bytes(range(256)), b"\xe8"):
        assert isinstance(line_at(table, 1, 1000), int)
