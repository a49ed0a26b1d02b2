"""Make docs/console.svg: a real visit of the console in a real terminal, as rich draws it.

`python tools/console_picture.py` runs examples/data_parallel.py on four ranks in tmux, types what
docs/console.md begins with, and draws the screen. It needs tmux.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/console.svg"
WIDTH, HEIGHT = 104, 66
TITLE = "dap-mux run -n 4 --console data_parallel.py"
# Without the fonts that rich would have a reader fetch from elsewhere.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
PROMPT = re.compile(r"\[[0-3-]+\]>")
LIMIT = 60.0  # s for each screen
VISIT = (  # what is typed, and what is seen then
    ("", "stopped at data_parallel.py:"),
    ("break 146, step == 5", "breakpoint 2: "),
    ("c", "0-3 stopped at data_parallel.py:146 train (breakpoint)"),
    ("list", "│ stopped │ breakpoint │"),
    ("compare loss", "⚠ {2}"),
    ("batch.unit", "⚠ {2}: 'mm'"),
    ("on 2", "2 at data_parallel.py:146 train"),
    ("batch.unit, grad_norm", "('mm', "),
    ("on -", "0-3 at data_parallel.py:146 train"),
    ("n", "147 ->  model.step(mean_grad)"),
)


def main() -> int:
    """Draw the picture."""
    with tempfile.TemporaryDirectory() as scratch:
        tmux = ["tmux", "-S", f"{scratch}/tmux"]
        folder = Path("/tmp/demo")  # noqa: S108  (it is read in the picture)
        folder.mkdir(exist_ok=True)
        shutil.copy(ROOT / "examples/data_parallel.py", folder)
        command = f"XDG_RUNTIME_DIR={scratch} XDG_STATE_HOME={scratch} {sys.executable} -m dap_mux"
        command += " run -n 4 --log-dir logs --console data_parallel.py --seconds 0"
        size = ["-x", str(WIDTH), "-y", str(HEIGHT)]
        subprocess.run([*tmux, "new-session", "-d", *size, "-c", str(folder), command], check=True)
        try:
            PICTURE.write_text(draw(visit(tmux)), encoding="utf-8")
        finally:
            subprocess.run([*tmux, "kill-server"], check=False)
            shutil.rmtree(folder)
    return 0


def visit(tmux: list[str]) -> str:
    """Type everything; return the last screen, colours and all."""
    for typed, (line, seen) in enumerate(VISIT):
        if line:
            subprocess.run([*tmux, "send-keys", "-l", line], check=True)
            subprocess.run([*tmux, "send-keys", "Enter"], check=True)
        deadline = time.monotonic() + LIMIT
        while not _done(screen(tmux), seen, typed + 1):
            if time.monotonic() > deadline:
                raise SystemExit(f"after {line!r} there is no {seen!r}:\n{screen(tmux)}")
            time.sleep(0.2)
    return screen(tmux, "-e")


def _done(shown: str, seen: str, prompts: int) -> bool:
    """Whether all ranks stand, these words do too, and a new prompt waits below them."""
    *_, prompt, status = ["", "", *filter(None, shown.splitlines())]
    lines = [line for line in shown.splitlines() if PROMPT.match(line)]
    ready = bool(PROMPT.fullmatch(prompt.rstrip())) and status.endswith(": 4 stopped")
    return ready and seen in shown and len(lines) == prompts


def screen(tmux: list[str], *options: str) -> str:
    """What stands in the terminal now."""
    words = [*tmux, "capture-pane", "-p", *options]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def draw(shown: str) -> str:
    """Draw a screen as SVG, without the empty lines above the one at the bottom."""
    *lines, status = shown.rstrip().splitlines()
    while not Text.from_ansi(lines[-1]).plain.strip():
        lines.pop()
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text.from_ansi("\n".join([*lines, "", status])), soft_wrap=True)
    picture = console.export_svg(title=TITLE, code_format=FORMAT, unique_id="c")
    return "\n".join(line.rstrip() for line in picture.splitlines()) + "\n"


if __name__ == "__main__":
    sys.exit(main())
