"""The moving picture of README's first screen: eight ranks, one of which is wrong.

A frame a step, each with a line of text, as an animated PNG: what browsers and GitHub show without
a player, and sharp.
"""

from __future__ import annotations

from io import BytesIO
from typing import Final

from PIL import Image

from tests.support.processes.commands import User
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.pictures.camera import Camera
from tests.vscode.scene import EXAMPLE, REDUCE, REPOSITORY, OpenWindow, configuration, stand
from tests.vscode.workbench import VARIABLES, Row

RANKS: Final = 8
WRONG: Final = 2
FILE: Final = REPOSITORY / "docs" / "one-session.png"
COLOURS: Final = 255
WIDTH: Final = 1000  # px
MOST_BYTES: Final = 2 << 20
MOST_SECONDS: Final = 15.0
_CAPTION: Final = """text => {
    document.querySelector("#caption")?.remove();
    const line = document.createElement("div");
    line.id = "caption";
    line.textContent = text;
    line.style.cssText = "position:fixed;left:0;right:0;bottom:0;z-index:99999;padding:10px 24px;"
        + "font:600 22px sans-serif;color:#fff;background:#1a5fb4";
    document.body.append(line);
}"""


class Film:
    """The frames so far, and how long each of them stays."""

    def __init__(self, camera: Camera) -> None:
        self.camera = camera
        self.frames: list[Image.Image] = []
        self.seconds: list[float] = []

    async def take(self, text: str, seconds: float) -> None:
        """Take the whole window, with a line of text under it."""
        await self.camera.point_at_nothing()
        page = self.camera.window.page
        await page.evaluate(_CAPTION, text)
        whole = Image.open(BytesIO(await page.screenshot()))
        await page.evaluate("document.querySelector('#caption').remove()")
        size = (WIDTH, whole.height * WIDTH // whole.width)
        small = whole.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        self.frames.append(small)
        self.seconds.append(seconds)

    def save(self) -> None:
        """Write the file. Raises AssertionError if it is too large or too long."""
        width, height = self.frames[0].size
        whole = Image.new("RGB", (width, height * len(self.frames)))
        for number, frame in enumerate(self.frames):
            whole.paste(frame, (0, height * number))
        colours = whole.quantize(COLOURS)
        drawn = [frame.quantize(palette=colours, dither=Image.Dither.NONE) for frame in self.frames]
        drawn[0].save(
            FILE,
            save_all=True,
            append_images=drawn[1:],
            duration=[round(1000 * each) for each in self.seconds],
            loop=0,
            optimize=True,
        )
        assert sum(self.seconds) <= MOST_SECONDS
        assert FILE.stat().st_size <= MOST_BYTES


async def moving(user: User, server: CodeServer, opened: OpenWindow) -> None:
    """A breakpoint, eight ranks at it, the loss of each, and the way to the one that is wrong."""
    run = await start(user, EXAMPLE, n=RANKS)
    name = configuration(user, (await run.session())["port"], type="dap-mux")
    window = await opened(server)
    server.knows(run.session_path)
    await window.page.emulate_media(color_scheme="dark")
    film = Film(Camera(window))
    await window.conditional_breakpoint(EXAMPLE, REDUCE, "step == 5")
    await film.take(f"dap-mux run -n {RANKS} data_parallel.py, a breakpoint, and F5", 2.5)
    await window.start(name)
    await stand(run, *["stopped"] * RANKS)
    await window.stands_at(REDUCE)
    await film.camera.side_bar()
    await film.take("Eight processes are one debug session: every rank is a thread", 3.0)
    row = window.page.locator(f'{VARIABLES} .monaco-list-row[aria-label^="loss, value"]')
    await window.context_menu(row, "Compare Across Ranks")
    page = await window.webview("#groups tbody tr")
    await film.take(f"Compare a value across ranks: rank {WRONG} is not like the others", 3.0)
    await page.locator("#groups .go").first.click()
    await window.becomes(lambda: window.rows(VARIABLES), _is_wrong_rank, "the variables of rank 2")
    await film.take("One click, and you are there", 2.0)
    await window.expand(VARIABLES, "batch")
    await window.has(VARIABLES, "unit = 'mm'")
    await film.take("Its batch is in millimetres: found", 3.5)
    film.save()
    await window.leave()
    await window.close()


def _is_wrong_rank(rows: list[Row]) -> bool:
    return any("unit='mm'" in row.text for row in rows)
