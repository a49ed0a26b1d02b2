"""Make docs/hang-lines.svg: how much there is to read before a rank that hangs is found.

`python -m tests.bench.hang_chart` starts examples/hang.py on 8, 64 and 512 ranks without dap-mux,
prints every rank's stack with py-spy, one process after the other, and asks `dap-mux why` about the
same job. It counts the lines of both, and the seconds. It needs py-spy, and 6 GB of memory.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent.parent
PICTURE: Final = ROOT / "docs/hang-lines.svg"
SIZES: Final = (8, 64, 512)
LIMIT: Final = 300.0  # s until the ranks hang
BIN: Final = Path(sys.executable).parent
# Starts ranks as any launcher does, and waits for them.
LAUNCHER: Final = """\
import os, subprocess, sys
ranks = [
    subprocess.Popen([sys.executable, sys.argv[2]], env={**os.environ, "RANK": str(rank)})
    for rank in range(int(sys.argv[1]))
]
for rank in ranks:
    rank.wait()
"""
WIDTH: Final = 760
LEFT, RIGHT, TOP, BAR, GAP = 216, 164, 76, 18, 16
# One file for both themes: it follows the reader's.
HEAD: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>{title}</title>
<style>
text {{ font: 14px -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }}
.page {{ fill: #ffffff; stroke: #d1d9e0 }}
.head {{ font-size: 17px; font-weight: 600 }}
.less {{ fill: #59636e }}
.hand {{ fill: #bc4c00 }}
.why {{ fill: #0969da }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #f0f6fc }}
.page {{ fill: #0d1117; stroke: #3d444d }}
.less {{ fill: #9198a1 }}
.hand {{ fill: #f0883e }}
.why {{ fill: #4493f8 }}
}}
</style>
"""
TITLE: Final = "Lines to read until you know which rank hangs"


class Reading(NamedTuple):
    """What `dap-mux why` and py-spy printed about one job: lines, and seconds until the last."""

    ranks: int
    by_hand: int
    by_hand_seconds: float
    why: int
    why_seconds: float


def main() -> int:
    """Measure all sizes, and draw them."""
    readings = [measure(ranks) for ranks in SIZES]
    for each in readings:
        print(each)
    PICTURE.write_text(draw(readings), encoding="utf-8")
    return 0


def measure(ranks: int) -> Reading:
    """Look at a job of so many ranks, one of which hangs, in both ways."""
    with hanging_job(ranks) as launcher:
        children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text("utf-8").split()
        started = time.monotonic()
        stacks = [printed("py-spy", "dump", "--pid", pid) for pid in children]
        looked = time.monotonic()
        verdict = printed("dap-mux", "why", f"pid:{launcher}")
        done = time.monotonic()
    if len(children) != ranks or not verdict.startswith("not-joined: rank 2 "):
        raise SystemExit(f"{len(children)} of {ranks} ranks: {verdict}")
    by_hand = sum(each.count("\n") for each in stacks)
    return Reading(ranks, by_hand, looked - started, verdict.count("\n"), done - looked)


@contextmanager
def hanging_job(ranks: int) -> Iterator[int]:
    """A launcher whose ranks wait for one of them, by its process ID."""
    with tempfile.TemporaryDirectory() as scratch, socket.create_server(("127.0.0.1", 0)) as taken:
        printed_by_ranks = Path(scratch, "output")
        port = str(taken.getsockname()[1])
        taken.close()
        job = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        with printed_by_ranks.open("w") as output:
            launcher = subprocess.Popen(
                [sys.executable, "-c", LAUNCHER, str(ranks), str(ROOT / "examples/hang.py")],
                cwd=scratch,
                env={**os.environ, **job},
                stdout=output,
                start_new_session=True,
            )
        try:
            deadline = time.monotonic() + LIMIT
            while "step  2" not in printed_by_ranks.read_text("utf-8"):
                if launcher.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the job has not come to its third step")
                time.sleep(0.2)
            time.sleep(1)  # the last ranks come to their all-reduce
            yield launcher.pid
        finally:
            os.killpg(launcher.pid, signal.SIGKILL)
            launcher.wait()


def printed(name: str, *words: str) -> str:
    """Return the standard output of a command beside our Python, or in `PATH`."""
    command = shutil.which(name, path=f"{BIN}{os.pathsep}{os.environ['PATH']}")
    if command is None:
        raise SystemExit(f"{name} is not here")
    done = subprocess.run([command, *words], capture_output=True, text=True, check=False)
    return done.stdout


def draw(readings: list[Reading]) -> str:
    """Draw two bars for each size of job, to one scale."""
    most = max(each.by_hand for each in readings)
    height = TOP + len(readings) * (2 * BAR + GAP) + 8
    lines = [
        HEAD.format(width=WIDTH, height=height, title=TITLE),
        f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
        f'<text class="head" x="16" y="30">{TITLE}</text>',
        '<text class="less" x="16" y="52">examples/hang.py on one machine with two cores</text>',
    ]
    y = TOP
    for each in readings:
        lines.append(f'<text x="16" y="{y + 14}">{each.ranks} ranks</text>')
        lines += bar(y, "hand", "py-spy dump", each.by_hand, each.by_hand_seconds, most)
        lines += bar(y + BAR, "why", "dap-mux why", each.why, each.why_seconds, most)
        y += 2 * BAR + GAP
    return "\n".join([*lines, "</svg>", ""])


def bar(y: int, kind: str, label: str, count: int, seconds: float, most: int) -> list[str]:
    """Draw one bar with its label and its numbers; the shortest is still seen."""
    width = max(2, round((WIDTH - LEFT - RIGHT) * count / most))
    return [
        f'<text class="less" text-anchor="end" x="{LEFT - 8}" y="{y + 14}">{label}</text>',
        f'<rect class="{kind}" x="{LEFT}" y="{y + 2}" width="{width}" height="{BAR - 4}"/>',
        f'<text x="{LEFT + width + 8}" y="{y + 14}">{count:,} lines in {seconds:.1f} s</text>',
    ]


if __name__ == "__main__":
    sys.exit(main())
