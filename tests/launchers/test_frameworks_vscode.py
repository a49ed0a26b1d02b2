"""Jobs of engines in a real VS Code: one command, a click beside a line, and ranks stop there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.launchers.launching import EXAMPLES, STARTS, launch, line
from tests.launchers.pages import ours, typed
from tests.launchers.tools import environment
from tests.support.processes.commands import Command, User
from tests.vscode.code_server import CodeServer
from tests.vscode.conftest import browser, own_server, user
from tests.vscode.scene import OpenWindow, configuration
from tests.vscode.workbench import CONSOLE, RANKS, VARIABLES, Row, Window

__all__ = ["browser", "own_server", "user"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(480),
    pytest.mark.asyncio(loop_scope="session"),
]


DASHBOARD: Final = re.compile(r"dashboard(?:: | at )(http://[\w.:/]+)")
COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True)
class Job:
    """A page's command, and what is seen where a click beside a line of its program stops it."""

    engine: str
    file: str
    mark: str
    function: str
    group: str
    value: str
    result: str
    dashboard: str = ""
    """In the title of the engine's own page, whose address is told; none: it has no page."""
    options: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        """The words of the command, without ours."""
        return [*ours(typed(f"{self.engine}.md", 0)[0]), *self.options]

    @property
    def line(self) -> int:
        """The number of the line."""
        return line(EXAMPLES.parent / self.file, self.mark)


JOBS: Final = (
    Job(
        engine="dask",
        file="examples/dask/readings.py",
        mark="mean = sum(present)",
        function="clean",
        group="dask",
        value=r"day = Day\(number=\d+, readings=.*",
        result="mean spread of 40 days: 76.1733",
        dashboard="Dask: Status",
    ),
    Job(
        engine="ray",
        file="examples/ray/train.py",
        mark="return samples",
        function="generate",
        group="Rollout",
        value=r"prompts = \[\d\.0, .*",
        result="step 2: policy 1.9865",
        dashboard="Ray Dashboard",
        options=("--dashboard",),
    ),
    Job(
        engine="monarch",
        file="examples/monarch/train.py",
        mark="gradient = -sum(",
        function="learn",
        group="procs",
        value=r"errors = \[.*",
        result="step 2: weight 1.4612, good enough: False",
    ),
)


@pytest.mark.parametrize(
    "job",
    JOBS,
    ids=[job.engine for job in JOBS],
)
@pytest.mark.rest
async def test_a_click_stops_the_ranks_of_a_job(
    user: User,
    cluster: dict[str, str],
    own_server: CodeServer,
    open_window: OpenWindow,
    job: Job,
) -> None:
    run = await launch(user, environment(job.engine), job.command, **cluster)
    name = configuration(user, (await run.session())["port"], type="dap-mux")
    window = await open_window(own_server)
    await window.click_gutter(job.file, job.line)
    await window.start(name)
    await window.stands_at(job.line)
    await window.see_ranks()
    place = f"{Path(job.file).name}:{job.line} in {job.function}"
    await window.has(RANKS, f"4 ranks stopped at {place}: 0-3 @{job.group}")
    stopped = {f"rank {rank} @{job.group}" for rank in range(4)}
    await window.becomes(
        window.threads,
        lambda seen: stopped <= {bare(name) for name, it in seen.items() if it == "paused"},
        f"CALL STACK shows {stopped}",
    )
    await window.expand(VARIABLES, "Scope Locals")

    def has_value(rows: list[Row]) -> bool:
        return any(re.fullmatch(job.value, row.text) for row in rows)

    await window.becomes(lambda: window.rows(VARIABLES), has_value, job.value)
    if job.dashboard:
        await look_at_dashboard(window, job.dashboard, run)
    await window.click_gutter(job.file, job.line)
    await window.control("continue")
    done = await run.ends(within=STARTS)
    assert done.code == 0, done.err
    assert job.result in done.out.splitlines()


def bare(name: str) -> str:
    """A row's name without the coordinates of its rank."""
    return name.partition(" · ")[0]


async def look_at_dashboard(window: Window, title: str, run: Command) -> None:
    """Open the address that the debug console shows, or the terminal, beside the window."""
    await window.command("Debug Console: Focus on Debug Console View")

    async def look() -> list[str]:
        texts = [*(row.text for row in await window.rows(CONSOLE)), COLOUR.sub("", run.err)]
        return [address[1] for address in map(DASHBOARD.search, texts) if address]

    address, *_ = await window.becomes(look, bool, "the address of the dashboard")
    page = await window.page.context.new_page()
    await page.goto(address)
    await page.wait_for_function(f"document.title.includes({title!r})")
    await page.close()
