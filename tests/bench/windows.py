"""What a user waits for in a real VS Code."""

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
from statistics import median
from typing import Final

from dap_mux.client import DapClient
from dap_mux.engine import Settings
from tests.bench.figures import Figure, counted, not_measured, within
from tests.bench.relay import relayed
from tests.support.fake_rank.program import FIRST, SCRIPT
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until
from tests.support.session import Session, session
from tests.vscode.code_server import CodeServer, Missing, chromium, entry, serving
from tests.vscode.fake_job import fake_job
from tests.vscode.scene import REPOSITORY
from tests.vscode.workbench import (
    CALL_STACK,
    STACKS,
    VARIABLES,
    Window,
    browsing,
    new_window,
)

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
CLICK_COUNTS: Final = (4, 512)
OUTLIER: Final = 3
TURNS: Final = 6
SHOWN_WITHIN: Final = 0.5  # s
_ATTACHED: Final = 60.0  # s
_PACKAGE: Final = REPOSITORY / "vscode-extension/dist/dap-mux.vsix"
# From the click on a row until VARIABLES has this value.
_WATCH_CLICK: Final = """value => {
    const seen = window.clicked = {};
    const now = () => performance.now() / 1000;
    const done = new MutationObserver(() => {
        const rows = [...document.querySelectorAll('.debug-variables .monaco-list-row')];
        const texts = rows.map(row => row.innerText.replace(/\\s+/g, ' ').trim());
        if (seen.began && texts.includes(value)) {
            seen.shown = now();
            done.disconnect();
        }
    });
    done.observe(document.body, {subtree: true, childList: true, characterData: true});
    const once = {capture: true, once: true};
    document.addEventListener('click', () => { seen.began ??= now(); }, once);
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


def vscode() -> Iterable[Figure]:
    """A stop of many ranks in a real VS Code: until its line is highlighted, until all is quiet.

    The ranks are simulated and in a process of their own, so is the session. What is timed is what
    the page itself sees, by the clock of this machine. Between editor and session everything passes
    through a relay, which counts what the editor asks and how often it is told to show another row.
    """
    if why := _lacking():
        yield not_measured("a stop in VS Code", why)
        return
    for count, times in asyncio.run(_measured()).items():
        limit = LARGE_LINE_WITHIN if count == LARGE else LINE_WITHIN
        yield within(f"VS Code, {count} ranks stop: line", times.line, limit)
        yield within(f"VS Code, {count} ranks stop: quiet", times.quiet, LINE_WITHIN)
        yield within(f"VS Code, {count} ranks stop: palette", times.palette, PALETTE_WITHIN)
        name = f"VS Code, {count} ranks stop"
        yield counted(f"{name}: requests", times.requests, REQUESTS_AT_MOST)
        yield counted(f"{name}: changes of focus", times.focuses, 1)


def _lacking() -> str:
    """Why no window can be opened here; nothing where one can."""
    try:
        entry(), chromium()
    except Missing as why:
        return str(why)
    return ""


@asynccontextmanager
async def _opened(**installed: Sequence[Path]) -> AsyncIterator[tuple[CodeServer, Window]]:
    """Open a window on a folder with the program of the ranks."""
    with tempfile.TemporaryDirectory(prefix="bench-vscode-") as name:
        folder = Path(name)
        work = folder / "work"
        work.mkdir()
        (work / "train.py").write_text(SCRIPT, "utf-8")
        async with (
            serving(folder / "home", **installed) as server,
            browsing(chromium()) as browser,
        ):
            window = await new_window(browser, work)
            await window.open(server.port)
            yield server, window
            await window.close()


def _configuration(window: Window, name: str, kind: str, port: int) -> str:
    """Write the window's one configuration; return its name."""
    attach = {"name": name, "type": kind, "request": "attach"}
    one = {**attach, "connect": {"host": "127.0.0.1", "port": port}}
    file = window.folder / ".vscode/launch.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"version": "0.2.0", "configurations": [one]}), "utf-8")
    return name


async def _measured() -> dict[int, Times]:
    stand_in = REPOSITORY / "tests/vscode/debugpy-stand-in"
    async with _opened(linked=[stand_in]) as (server, window):
        return {count: await _times(server, window, count) for count in COUNTS}


async def _times(server: CodeServer, window: Window, count: int) -> Times:
    """Start a job and a session, attach the window, and stop all ranks."""
    program = window.folder / "train.py"
    async with (
        _job(count, program) as ports,
        _session(server, ports) as port,
        relayed(port) as relay,
    ):
        await window.start(_configuration(window, "bench", "debugpy", relay.port))
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


Clicks = tuple[list[float], list[int]]
"""Of each click: seconds to the variables, and how often the editor asked."""


def stacks_view() -> Iterable[Figure]:
    """A click in the Parallel Stacks view of a real VS Code, until that rank's variables are shown.

    All ranks stop at one line but one, which is at another; its row is clicked, and then one of the
    others', in turns. What is timed is what the page itself sees, from the click on. The ranks are
    simulated, and with the session in the benchmark's own process; nothing else passes between them
    and the editor, so what the editor asks is what the session has been asked. VS Code itself waits
    for 400 ms before it shows the variables where the focus has moved by an event, as any stop does
    it.
    """
    if why := _lacking() or ("" if _PACKAGE.exists() else "run make vsix"):
        yield not_measured("a click in Parallel Stacks", why)
        return
    for count, (times, requests) in asyncio.run(_measured_clicks()).items():
        yield within(f"{count} ranks, click to variables", median(times), SHOWN_WITHIN)
        yield counted(f"{count} ranks, requests of a click", max(requests), REQUESTS_AT_MOST)


async def _measured_clicks() -> dict[int, Clicks]:
    async with _opened(packages=[_PACKAGE]) as (_, window):
        return {count: await _clicks(window, count) for count in CLICK_COUNTS}


async def _clicks(window: Window, count: int) -> Clicks:
    async with (
        fake_job(count, window.folder / "train.py") as job,
        session(job.ports, settings=Settings()) as running,
    ):
        await window.start(_configuration(window, f"{count} ranks", "dap-mux", running.port))
        await until(
            lambda: all(rank.configured for rank in job.ranks),
            within=_ATTACHED,
            what="all attached",
        )
        job.stop(FIRST, {OUTLIER: FIRST + 2})
        await window.becomes(lambda: window.rows(CALL_STACK), bool, "CALL STACK")
        await window.stands_at(FIRST)
        await window.see_stacks()
        await window.expand(VARIABLES, "Scope Locals")
        times, requests = [], []
        for turn in range(TURNS):
            line, rank = (FIRST, 0) if turn % 2 else (FIRST + 2, OUTLIER)
            await _quiet(running)
            asked = len(running.engine.asked)
            times.append(await _click(window, line, f"step = {rank}"))
            await _quiet(running)
            requests.append(len(running.engine.asked) - asked)
        await window.leave()
        return times, requests


async def _click(window: Window, line: int, value: str) -> float:
    """Click the row of the ranks that are stopped at this line; how long the value took."""
    row = window.page.locator(
        f'{STACKS} .monaco-list-row[aria-label^="train, train.py:{line}, stopped"]'
    )
    await row.first.wait_for()
    await window.page.evaluate(_WATCH_CLICK, value)
    await row.first.click()

    async def look() -> dict[str, float]:
        seen: dict[str, float] = await window.page.evaluate("() => window.clicked")
        return seen

    seen = await window.becomes(look, lambda seen: "shown" in seen, value)
    return seen["shown"] - seen["began"]


async def _quiet(running: Session) -> None:
    """Wait until the editor has asked nothing for a second."""
    still = 0
    before = len(running.engine.asked)
    while still < 20:
        await asyncio.sleep(0.05)
        now = len(running.engine.asked)
        still = still + 1 if now == before else 0
        before = now
