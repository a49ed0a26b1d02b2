"""Load the options of a command, and run it in an event loop."""

from __future__ import annotations

import gc
import importlib.util
import os
from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from dap_mux.config import Config
from dap_mux.user_files import NoHome, expand_home

T = TypeVar("T")


def load_config(args: Namespace) -> Config:
    """Load the options from all their sources. Raises UsageError."""
    home = None
    with suppress(NoHome):  # a container may run as a user without a passwd entry
        home = expand_home("~")
    return Config.load(vars(args), os.environ, cwd=Path.cwd(), home=home)


def execute(function: Callable[[T], Awaitable[int]], options: T) -> int:
    """Run an async function on the fastest event loop available."""
    import anyio

    async def run(options: T) -> int:
        gc.freeze()
        gc.enable()
        return await function(options)

    gc.disable()  # anyio has more to import; see `start`
    backend = {"use_uvloop": importlib.util.find_spec("uvloop") is not None}
    try:
        return anyio.run(run, options, backend="asyncio", backend_options=backend)
    finally:
        gc.freeze()  # the process ends with all of it
        gc.enable()
