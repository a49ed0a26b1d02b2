"""A click in the Parallel Stacks view of a real VS Code, until that rank's variables are shown.

All ranks stop at one line but one, which is at another; its row is clicked, and then one of the
others', in turns. What is timed is what the page itself sees, from the click on. The ranks are
simulated, and with the session in the benchmark's own process; nothing else passes between them
and the editor, so what the editor asks is what the session has been asked. VS Code itself waits for
400 ms before it shows the variables where the focus has moved by an event, as any stop does it.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Final

from dap_mux.engine import Settings
from tests.bench.figures import Figure, not_measured, within
from tests.support.fake_rank.program import FIRST, SCRIPT
from tests.support.processes.waiting import until
from tests.support.session import Session, session
from tests.vscode.code_server import Missing, chromium, entry, serving
from tests.vscode.fake_job import fake_job
from tests.vscode.scene import REPOSITORY
from tests.vscode.workbench import CALL_STACK, STACKS, VARIABLES, Window, browsing, new_window

COUNTS: Final = (4, 512)
OUTLIER: Final = 3
TURNS: Final = 6
SHOWN_WITHIN: Final = 0.5  # s
REQUESTS_AT_MOST: Final = 10
_PACKAGE: Final = REPOSITORY / "vscode-extension/dist/dap-mux.vsix"
_SAYS: Final = 60.0
# From the click on a row until VARIABLES has this value.
_WATCH: Final = """value => {
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


Clicks = tuple[list[float], list[int]]
"""Of each click: seconds to the variables, and how often the editor asked."""


def run() -> Iterable[Figure]:
    """Yield the figures of each number of ranks."""
    try:
        entry(), chromium()
    except Missing as why:
        yield not_measured("a click in Parallel Stacks", str(why))
        return
    if not _PACKAGE.exists():
        yield not_measured("a click in Parallel Stacks", "run make vsix")
        return
    for count, (times, requests) in asyncio.run(_measured()).items():
        yield within(f"{count} ranks, click to variables", median(times), SHOWN_WITHIN)
        most = max(requests)
        held = most <= REQUESTS_AT_MOST
        bound = f"<= {REQUESTS_AT_MOST}"
        yield Figure(f"{count} ranks, requests of a click", str(most), bound=bound, held=held)


async def _measured() -> dict[int, Clicks]:
    with tempfile.TemporaryDirectory(prefix="bench-stacks-") as name:
        folder = Path(name)
        work = folder / "work"
        work.mkdir()
        (work / "train.py").write_text(SCRIPT, "utf-8")
        async with (
            serving(folder / "home", packages=[_PACKAGE]) as server,
            browsing(chromium()) as browser,
        ):
            window = await new_window(browser, work)
            await window.open(server.port)
            found = {count: await _clicks(window, count) for count in COUNTS}
            await window.close()
        return found


async def _clicks(window: Window, count: int) -> Clicks:
    async with (
        fake_job(count, window.folder / "train.py") as job,
        session(job.ports, settings=Settings()) as running,
    ):
        await window.start(_configuration(window.folder, running.port, count))
        await until(
            lambda: all(rank.configured for rank in job.ranks), within=_SAYS, what="all attached"
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
    await window.page.evaluate(_WATCH, value)
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


def _configuration(folder: Path, port: int, count: int) -> str:
    name = f"{count} ranks"
    one = {"name": name, "type": "dap-mux", "request": "attach"}
    connect = {"connect": {"host": "127.0.0.1", "port": port}}
    (folder / ".vscode").mkdir(exist_ok=True)
    launch = {"version": "0.2.0", "configurations": [{**one, **connect}]}
    (folder / ".vscode/launch.json").write_text(json.dumps(launch), "utf-8")
    return name
