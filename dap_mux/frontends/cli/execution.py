"""Load the options of a command, and run it in an event loop."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec

from dap_mux.pure.errors import DapMuxError, UsageError
from dap_mux.system.config import Config
from dap_mux.system.user_files import NoHome, expand_home

P = ParamSpec("P")


def load_config(args: Namespace) -> Config:
    """Load the options from all their sources. Raises UsageError."""
    home = None
    with suppress(NoHome):  # a container may run as a user without a passwd entry
        home = expand_home("~")
    return Config.load(vars(args), os.environ, cwd=Path.cwd(), home=home)


def seconds_of(option: str, text: str) -> float:
    """Parse an interval, such as `60` or `60s`. Raises UsageError."""
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds < float("inf"):
        raise UsageError(f"{option} {text}: must be a number of seconds, 1 or more")
    return seconds


@contextmanager
def needing(what: str, packages: Sequence[str]) -> Iterator[None]:
    """Import in here what an extra brings; where it is not installed, say how that is done."""
    try:
        yield
    except ModuleNotFoundError as error:
        import shlex

        install = shlex.join([sys.executable, "-m", "pip", "install", *packages])
        raise DapMuxError(f"{what} ({error.name} is missing): {install}") from error


def execute(
    function: Callable[P, Coroutine[Any, Any, int]], *args: P.args, **kwargs: P.kwargs
) -> int:
    """Run an async function on the fastest event loop available."""

    async def run() -> int:
        gc.freeze()
        gc.enable()
        return await function(*args, **kwargs)

    gc.disable()  # uvloop is still to be imported; see `start`
    try:
        return _run(run)
    finally:
        gc.freeze()  # the process ends with all of it
        gc.enable()


def _run(function: Callable[[], Coroutine[Any, Any, int]]) -> int:
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    with suppress(ImportError):
        from uvloop import new_event_loop as new_loop
    if sys.version_info >= (3, 11):
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(function())
    import anyio  # has the same for Python 3.10

    backend = {"loop_factory": new_loop}
    return anyio.run(function, backend="asyncio", backend_options=backend)
