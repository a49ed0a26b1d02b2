"""A real terminal: tmux on a socket of its own, typed into and looked at."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.support.processes.waiting import until

LIMIT: Final = 30.0  # s; not a wait
WIDTH, HEIGHT = 112, 40


class Tmux:
    """One terminal."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def start(
        self, words: list[str], folder: Path, env: Mapping[str, str], *, width: int = WIDTH
    ) -> None:
        """Run a command in it; the terminal stays when that has ended, with its exit code."""
        command = f"env -i {shlex.join(f'{key}={text}' for key, text in env.items())} "
        command += (
            f"TERM=tmux-256color {shlex.join(words)}; echo exit code $?; exec tail -f /dev/null"
        )
        size = ["-x", str(width), "-y", str(HEIGHT)]
        self._do("-f", "/dev/null", "new-session", "-d", *size, "-c", str(folder), command)

    def keys(self, *keys: str) -> None:
        """Press keys by their names: `Enter`, `C-c`, `Tab`."""
        self._do("send-keys", *keys)

    def line(self, text: str) -> None:
        """Type a line."""
        self._do("send-keys", "-l", text)
        self.keys("Enter")

    def screen(self) -> str:
        """What stands there now."""
        shown = self._do("capture-pane", "-p")
        return "\n".join(line.rstrip() for line in shown.splitlines()).rstrip()

    def history(self) -> str:
        """Everything that was there."""
        return self._do("capture-pane", "-p", "-S", "-")

    async def shows(self, words: str, times: int = 1) -> str:
        """Wait until words stand there; return the screen."""
        screen = ""

        def shown() -> bool:
            nonlocal screen
            screen = self.screen()
            return screen.count(words) >= times

        await self._until(shown, f"{words!r} (times {times})")
        return screen

    async def shows_folded(self, words: str) -> None:
        """Wait until words stand there, wherever the terminal has broken their line."""
        wanted = "".join(words.split())

        def shown() -> bool:
            return wanted in "".join(self.screen().split())

        await self._until(shown, repr(words))

    async def prompts(self, prompt: str) -> None:
        """Wait until an empty prompt is the last line but the status."""

        def stands() -> bool:
            return prompt in [*filter(None, self.screen().splitlines())][-3:]

        await self._until(stands, f"the prompt {prompt!r}")

    async def _until(self, holds: Callable[[], bool], what: str) -> None:
        try:
            await until(holds, within=LIMIT, what=what)
        except AssertionError:
            raise AssertionError(f"{what} is not in:\n{self.screen()}") from None

    async def clear(self) -> None:
        """Empty the screen, so that what is waited for next is new: prompt and status are left."""

        def is_empty() -> bool:
            if len([*filter(None, self.screen().splitlines())]) <= 2:
                return True
            self.keys("C-l")  # again for what is printed meanwhile
            return False

        await until(is_empty, within=LIMIT, what="an empty screen")

    def end(self) -> None:
        """Close it; what runs in it hears of that."""
        subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], check=False)

    def _do(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), *words], capture_output=True, text=True, check=True
        )
        return done.stdout


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    """A terminal, closed with the test."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    terminal = Tmux(tmp_path / "tmux")
    yield terminal
    terminal.end()
