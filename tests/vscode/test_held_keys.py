"""A user holds F10 down: the arrow moves, and nothing turns red."""

from __future__ import annotations

from typing import Final

from tests.real.driving import observing
from tests.support.processes.commands import User, line_of, listed
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import IN_A_WINDOW, OpenWindow, configuration
from tests.vscode.workbench import VARIABLES

pytestmark = IN_A_WINDOW
REPETITIONS: Final = 90  # three seconds
STEPS: Final = 5  # seen at least; on a busy machine a person holds it longer
LOOP: Final = """\
import pathlib

model, step, loss = {"weights": [0.0, 1.0]}, 0, 0.0
while not pathlib.Path("go").exists():
    step += 1  # loop
    model["weights"][0] += step
    loss = sum(model["weights"]) / step
    name = f"step {step}"
"""


async def test_nothing_turns_red_while_f10_is_held(
    user: User, stock_server: CodeServer, open_window: OpenWindow
) -> None:
    script = user.script(LOOP, "loop.py")
    run = await start(user, script, n=2)
    name = configuration(user, (await run.session())["port"], type="debugpy")
    window = await open_window(stock_server)
    line = line_of(script, "loop")
    await window.toggle_breakpoint("loop.py", line)
    await window.start(name)
    await window.shows("paused", "paused")
    await window.toggle_breakpoint("loop.py", line)
    await window.stands_at(line)
    await window.watch("loss", "step * 2")
    await window.expand(VARIABLES, "Scope Locals")
    await window.expand(VARIABLES, "model")

    await window.watch_errors()
    await window.watch_stop_line()

    async def hold() -> list[int]:
        await window.hold("F10", REPETITIONS)
        return await window.stop_lines()

    await window.becomes(hold, lambda seen: len(seen) >= STEPS, "the arrow moves")
    await window.shows("paused", "paused")
    assert await window.errors() == []

    client = await observing(run, "onlooker")
    await listed(client, "state", "stopped", "stopped")
    await client.disconnect()
    (user.folder / "go").touch()
    await window.leave()
    assert (await run.ends()).code == 0
