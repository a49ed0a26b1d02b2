"""Keep the agent's own frames out of stacks, steps and tracebacks."""

from __future__ import annotations

import os
import runpy
import sys
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType, TracebackType
from typing import Any

HERE = Path(__file__).parent


def _hidden_files() -> tuple[str, ...]:
    run = runpy.run_path
    assert isinstance(run, FunctionType)
    code: CodeType = run.__code__  # its file is "<frozen runpy>" in some versions
    ours = {f"{one}{os.sep}" for one in (HERE.absolute(), HERE.resolve())}
    return (*ours, code.co_filename)


HIDDEN = _hidden_files()


# debugpy hides itself by a list of path prefixes whose frames are neither traced nor shown. The
# agent joins that list, with the `runpy` that `python -m` brings in below it. This works whatever
# `justMyCode` says, and for a checkout as for an installed package.
def hide_our_frames() -> None:
    """Tell debugpy, which must be listening already; quietly do without where it has changed.

    Its own list is kept. Private interface of debugpy: without it the user sees our frames,
    and nothing worse.
    """
    with suppress(Exception):
        _neither_trace_nor_show()
    if sys.version_info >= (3, 12):
        with suppress(Exception):
            _do_not_step_out_into_us()


def _neither_trace_nor_show() -> None:
    api = sys.modules["_pydevd_bundle.pydevd_api"].PyDevdAPI()
    debugger = sys.modules["pydevd"].get_global_debugger()
    present = debugger.dont_trace_external_files
    api.set_dont_trace_start_end_patterns(
        debugger,
        (*getattr(present, "start_patterns", ()), *HIDDEN),
        getattr(present, "end_patterns", ()),
    )


def _do_not_step_out_into_us() -> None:
    """Under `sys.monitoring`, a step out of the program's last frame heeds only this hook.

    Without it the step stops in a frame that is not shown (measured with debugpy 1.8.22).
    """
    filters: Any = sys.modules["_pydevd_bundle.pydevd_dont_trace"]
    if filters.should_trace_hook is None:
        filters.should_trace_hook = lambda code, _path: not _is_ours(code.co_filename)


def users_part(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame that is the user's; None where there is none."""
    while traceback is not None and _is_ours(traceback.tb_frame.f_code.co_filename):
        traceback = traceback.tb_next
    return traceback


def _is_ours(path: str) -> bool:
    return path.startswith(HIDDEN)
