"""`dap-mux rerun`: a task of a cluster runs again on this machine, as a rank of its own session."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dap_mux.cluster.framework_python import python_with
from dap_mux.config import LaunchOptions, RerunOptions
from dap_mux.errors import NothingToConnect, UsageError
from dap_mux.printable import one_line
from dap_mux.session.launcher_job import run_launcher
from dap_mux.tunnel.children import run_command

SCHEME: Final = "dask:"
CHECK_TIMEOUT_S: Final = 60.0
MAX_TEXT: Final = 1000  # characters of the reason
GROUP: Final = "rerun"
# Not in our own environment: what is there is no news to a rank.
_AS_RANK: Final = ("env", "RANK=0", "WORLD_SIZE=1", f"DAP_MUX_GROUP={GROUP}")


async def rerun_task(options: RerunOptions) -> int:
    """Run the task until it ends; return its process's exit code. Raises `DapMuxError`."""
    if not options.endpoint.startswith(SCHEME):
        raise UsageError(
            f"{options.endpoint}: not a Dask cluster; one looks like dask:tcp://HOST:8786"
        )
    python = await python_with("distributed", options.config.python)
    program = Path(__file__).parents[1] / "frameworks" / "dask_rerun.py"
    address = options.endpoint.removeprefix(SCHEME)
    command = (python, str(program), address, options.key)
    found = await run_command((*command, "check"), within=CHECK_TIMEOUT_S)
    if found.code != 0:
        raise NothingToConnect(one_line(found.err.strip().rpartition("\n")[2])[:MAX_TEXT])
    launched = LaunchOptions(options.config, (*_AS_RANK, *command), name=options.key)
    return await run_launcher(launched)
