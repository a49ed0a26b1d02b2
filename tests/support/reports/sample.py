"""A report of four ranks at three stops, made by hand."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Final

from dap_mux.frontends.report.report_file import (
    VERSION,
    At,
    Failure,
    Frame,
    Printed,
    Report,
    Stop,
    Thread,
    Variable,
    packed,
)

PATH: Final = "/nowhere/job/train.py"
TEXT: Final = """\
import torch


def step(n, scale):
    loss = n * scale
    print(loss)
    return loss


for n in range(3):
    step(n, 0.5)
"""
WHY: Final = {
    "verdict": "not-joined",
    "sentence": "rank 3 has not joined the all_reduce that ranks 0-2 wait in",
    "suspects": [{"ranks": "3", "stack": [], "waitingFor": ""}],
    "evidence": ["ranks 0-2 wait in all_reduce at train.py:6 (step) for 41 s"],
    "next": "",
    "waits": [{"ranks": "0-2", "for": "3"}],
}


def stack(line: int, loss: str, call: int = 11) -> tuple[Thread, ...]:
    """Return the threads of a rank that is at a line of `step`."""
    config = Variable("config", "{'lr': 0.1}", "dict", (Variable("'lr'", "0.1", "float"),))
    own = (Variable("n", "2", "int"), Variable("loss", loss, "float"), config)
    frames = (Frame("step", PATH, line, own), Frame("<module>", PATH, call))
    return (Thread("MainThread", frames), Thread("loader", (Frame("wait", PATH, 10),)))


def at(ranks: str, line: int, loss: str, reason: str = "breakpoint") -> At:
    """Return where stopped ranks were."""
    values = {"loss * 2": f"2 * {loss}"}
    return At(ranks, "stopped", reason, threads=stack(line, loss), values=values)


RUNNING: Final = (Thread("MainThread", (Frame("step", PATH, 6), Frame("<module>", PATH, 11))),)
STOPS: Final = (
    Stop(1.5, "0-3 stopped at train.py:5 (breakpoint)", (at("0-3", 5, "0.0"),)),
    Stop(
        2.5,
        "0-2 stopped at train.py:6 (breakpoint)",
        (at("0-1", 6, "0.5"), at("2", 6, "nan"), At("3", "running", threads=RUNNING)),
    ),
    Stop(
        44.0,
        "0 stopped at train.py:7 (exception)",
        (
            At(
                "0",
                "stopped",
                "exception",
                "loss is nan",
                stack(7, "nan"),
                Failure("ValueError", "loss is nan", "Traceback ...\nValueError: loss is nan\n"),
            ),
            at("1-2", 7, "1.0"),
            At("3", "ended", "exit code 7"),
        ),
        why=WHY,
    ),
)
REPORT: Final = Report(
    version=VERSION,
    made_by="dap-mux 0.1.0",
    made="2026-01-02T03:04:05Z",
    command=("torchrun", "train.py"),
    ranks=(0, 1, 2, 3),
    end="rank 3 ended with exit code 7",
    job_exit=7,
    why=WHY,
)
OUTPUT: Final = (Printed("step 0\n", ranks="0-3"), Printed("launched\n"))


def sample() -> bytes:
    """Return the file."""
    return packed(REPORT, STOPS, OUTPUT, {PATH: TEXT})


def of_members(members: Mapping[str, bytes]) -> bytes:
    """Return a zip file with these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()
