"""What every job that we start has: its command, and the environment that its ranks begin with."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dap_mux.rank.starter import starter_variables

RECORDER_SIZE: Final = "TORCH_FR_BUFFER_SIZE"
OLD_RECORDER_SIZE: Final = "TORCH_NCCL_TRACE_BUFFER_SIZE"
"""Its name up to torch 2.7; newer ones warn where it is set."""
RECORDER_ENTRIES: Final = "2000"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job to start, by a launcher or without one."""

    command: tuple[str, ...]
    base_port: int = 5678
    wait: bool = True
    """Whether each rank waits for a debugger before its program's first line."""
    stop_on_entry: bool = False
    """Whether each rank stops at its program's first line."""
    env: Mapping[str, str | None] = field(default_factory=dict)
    """Added to our own environment; None removes a variable."""
    cwd: Path | None = None
    ends_with_us: bool = False
    """Whether ranks that have never had a debugger end with this process."""

    def inherited(self, without: Container[str] = ()) -> dict[str, str]:
        """Return our own environment but for these variables, with what the job's ranks need."""
        ours = {name: text for name, text in os.environ.items() if name not in without}
        given = {**ours, **self.env}
        return {
            **recorder_variables(given),
            **{name: text for name, text in given.items() if text is not None},
            **starter_variables(ends_with_us=self.ends_with_us),
        }


def recorder_variables(environ: Container[str]) -> dict[str, str]:
    """Return what switches torch's flight recorder on, for `why` to ask; none if the user did."""
    if RECORDER_SIZE in environ or OLD_RECORDER_SIZE in environ:
        return {}
    return {RECORDER_SIZE: RECORDER_ENTRIES}
