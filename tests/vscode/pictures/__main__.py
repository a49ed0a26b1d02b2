"""`python -m tests.vscode.pictures [PART …]`: all parts, or those named."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support.processes.commands import User
from tests.vscode.code_server import chromium, serving
from tests.vscode.pictures.camera import PACKAGE, Camera
from tests.vscode.pictures.hanging import hanging
from tests.vscode.pictures.many import COUNTS, many_ranks
from tests.vscode.pictures.moving import moving
from tests.vscode.pictures.newcomer import first_minutes
from tests.vscode.pictures.opening import opener
from tests.vscode.pictures.pods import cluster_pickers
from tests.vscode.pictures.training import four_ranks
from tests.vscode.scene import copied_example
from tests.vscode.workbench import browsing

PARTS: Final = ("moving", "newcomer", "training", "hanging", "many", "pods")


async def main(parts: Sequence[str]) -> None:
    """Each part has a window and a folder of its own; the last one needs another network."""
    with tempfile.TemporaryDirectory(prefix="pictures-") as name:
        folder = Path(name)
        for part in parts:
            (folder / part).mkdir()
            if part != "pods":
                await _local(folder / part, part)
        if "pods" in parts:
            await cluster_pickers(folder / "pods")


async def _local(folder: Path, part: str) -> None:
    user = User(folder)
    copied_example(user)
    home = folder / "home"
    async with serving(home, packages=[PACKAGE]) as server, browsing(chromium()) as browser:
        opened = opener(browser, user)
        try:
            if part == "moving":
                await moving(user, server, opened)
            elif part == "newcomer":
                await first_minutes(user, server, opened)
            elif part == "training":
                await four_ranks(user, server, opened)
            elif part == "hanging":
                await hanging(user, server, opened)
            else:
                for count in COUNTS:
                    await many_ranks(user, Camera(await opened(server)), count)
        finally:
            await user.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or PARTS))
