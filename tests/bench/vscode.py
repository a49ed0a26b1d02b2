"""A stop of many ranks in a real VS Code: until its line is highlighted, until all is quiet.

The ranks are simulated and in a process of their own, so is the session. What is timed is what
the page itself sees, by the clock of this machine. Between editor and session everything passes
through a relay, which counts what the editor asks and how often it is told to show another row.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dap_mux.client import DapClient
from tests.bench.figures import Figure, not_measured, within
from tests.bench.relay import relayed
from tests.support.fake_rank.program import FIRST, SCRIPT
from tests.support.processes.proc_net import free_ports
from tests.vscode.code_server import CodeServer, Missing, chromium, entry, serving
from tests.vscode.scene import REPOSITORY
from tests.vscode.workbench import CALL_STACK, Window, browsing, new_window

LINE_WITHIN: Final = 2.0  # s: to the highlighted line, and to quiet
PALETTE_WITHIN: Final = 1.0  # s
COUNTS: Final = (65, 512, 4096)
LARGE: Final = 4096  # as many as are promised
LARGE_LINE_WITHIN: Final = 1.5  # s
REQUESTS_AT_MOST: Final = 10
_STILL: Final = 1.0  # s without a change: quiet began when they did
_SAYS: Final = 30.0
_WATCH: Final = """() => {
    const seen = window.seen = {changed: 0};
    const now = () => Date.now() / 1000;
    const views = '.debug-viewlet, .debug-toolbar, .part.editor, .part.statusbar';
    new MutationObserver((changes) => {
        const line = document.querySelector('.debug-top-stack-frame-line');
        const box = document.querySelector('.quick-input-widget');
        const commands = box?.offsetParent && box.querySelector('.monaco-list-row');
        if (line) seen.line ??= now();
        if (commands) seen.palette ??= now();
        if (changes.some(({target}) => target.closest?.(views))) seen.changed = now();
    }).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


@dataclass(frozen=True)
class Times:
    """Seconds from the stop on; the palette's: from its key on.

    `requests` of the editor from the stop until all is quiet; `focuses`: stops that ask it to
    show their row.
    """

    line: float
    quiet: float
    palette: float
    requests: int
    focuses: int


def run() -> Iterable[Figure]:
    """Yield the figures of each number of ranks."""
    try:
        entry(), chromium()
    except Missing as why:
        yield not_measured("a stop in VS Code", str(why))
        return
    for count, times in asyncio.run(_measured()).items():
        limit = LARGE_LINE_WITHIN if count == LARGE else LINE_WITHIN
        yield within(f"VS Code, {count} ranks stop: line", times.line, limit)
        yield within(f"VS Code, {count} ranks stop: quiet", times.quiet, LINE_WITHIN)
        yield within(f"VS Code, {count} ranks stop: palette", times.palette, PALETTE_WITHIN)
        yield _counted(count, "requests", times.requests, REQUESTS_AT_MOST)
        yield _counted(count, "changes of focus", times.focuses, 1)


def _counted(count: int, what: str, number: int, bound: int) -> Figure:
    name = f"VS Code, {count} ranks stop: {what}"
    return Figure(name, str(number), bound=f"<= {bound}", held=number <= bound)


async def _measured() -> dict[int, Times]:
    with tempfile.TemporaryDirectory(prefix="bench-vscode-") as name:
        folder = Path(name)
        work = folder / "work"
        work.mkdir()
        (work / "train.py").write_text(SCRIPT, "utf-8")
        stand_in = REPOSITORY / "tests/vscode/debugpy-stand-in"
        async with (
            serving(folder / "home", linked=[stand_in]) as server,
            browsing(chromium()) as it,
        ):
            window = await new_window(it, work)
            await window.open(server.port)
            times = {count: await _times(server, window, count) for count in COUNTS}
            await window.close()
        return times


async def _times(server: CodeServer, window: Window, count: int) -> Times:
    """Start a job and a session, attach the window, and stop all ranks."""
    program = window.folder / "train.py"
    async with (
        _job(count, program) as ports,
        _session(server, ports) as port,
        relayed(port) as relay,
    ):
        await window.start(_configuration(window.folder, relay.port))
        other = await DapClient.connect("127.0.0.1", port)
        await other.handshake({"justMyCode": True})
        await _all_run(other, count)
        palette = await _palette(window, other)
        await window.becomes(lambda: window.rows(CALL_STACK), bool, "CALL STACK")
        await window.control("continue")
        await window.page.locator(".debug-top-stack-frame-line").first.wait_for(state="detached")
        relay.forget()
        began = await _stop(window, other)
        seen = await _until_quiet(window)
        requests, focuses = relay.requests, relay.focuses
        await window.leave()
        await other.close()
        line, quiet = seen["line"] - began, seen["changed"] - began
        return Times(line, quiet, palette, requests, focuses)


async def _palette(window: Window, other: DapClient) -> float:
    """How long the palette takes to open while the stops come in."""
    await _stop(window, other)
    began = time.time()
    await window.page.keyboard.press("F1")
    rows = window.page.locator(".quick-input-list .monaco-list-row").first
    await rows.wait_for()
    seen = await _until_quiet(window)
    await window.page.keyboard.press("Escape")
    took: float = seen["palette"] - began
    return took


async def _stop(window: Window, other: DapClient) -> float:
    """Stop all ranks; the time when they were told to."""
    await window.page.evaluate(_WATCH)
    began = time.time()
    await other.request("evaluate", {"expression": "stop", "context": "repl"})
    return began


async def _until_quiet(window: Window) -> dict[str, float]:
    """Wait until the line is highlighted and nothing has changed for a while."""

    async def look() -> dict[str, float]:
        seen: dict[str, float] = await window.page.evaluate("() => window.seen")
        return seen

    def quiet(seen: dict[str, float]) -> bool:
        return "line" in seen and time.time() - seen["changed"] > _STILL

    return await window.becomes(look, quiet, "quiet")


async def _all_run(client: DapClient, count: int) -> None:
    """Wait until every rank is attached."""
    deadline = time.monotonic() + _SAYS
    while (await client.request("list"))["counts"].get("running") != count:
        assert time.monotonic() < deadline, f"not {count} ranks"
        await asyncio.sleep(0.05)


def _configuration(folder: Path, port: int) -> str:
    only: dict[str, Any] = {"name": "bench", "type": "debugpy", "request": "attach"}
    only["connect"] = {"host": "127.0.0.1", "port": port}
    (folder / ".vscode").mkdir(exist_ok=True)
    launch = {"version": "0.2.0", "configurations": [only]}
    (folder / ".vscode/launch.json").write_text(json.dumps(launch), "utf-8")
    return "bench"


@asynccontextmanager
async def _job(count: int, program: Path) -> AsyncIterator[list[int]]:
    """So many ranks, which stand on line FIRST of this program when they stop."""
    words = ["-m", "tests.bench.fake_ranks", str(count)]
    place = {"FAKE_PATH": str(program), "FAKE_LINE": str(FIRST)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, env={**os.environ, **place}, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield json.loads(await asyncio.wait_for(process.stdout.readline(), _SAYS))
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def _session(server: CodeServer, ports: Sequence[int]) -> AsyncIterator[int]:
    """`dap-mux attach` to all of them; the port where it serves."""
    port = free_ports(1)
    words = ["attach", *(f"127.0.0.1:{one}" for one in ports), "--listen", f"127.0.0.1:{port}"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dap_mux", *words, env=server.environ, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        await asyncio.wait_for(process.stderr.readline(), _SAYS)
        yield port
    finally:
        process.kill()
        await process.wait()
