"""In the driver of a Monarch job: the driver becomes a rank, and so do the procs that it spawns.

Monarch runs registered startup functions in each new proc, before anything of the user's. Ours is
shipped by value, as hosts of the job need not have dap-mux; what it sets up there does the rest
(`monarch_proc`), also for the procs that actors spawn.
"""

from __future__ import annotations

import os
from functools import partial
from importlib.util import find_spec
from typing import Any

import cloudpickle

from dap_mux.rank.environ import MARK, Place
from dap_mux.rank.frameworks import arming
from dap_mux.rank.frameworks.launched import HookOptions, become, for_workers
from dap_mux.rank.pickled_code import keep_file_names
from dap_mux.rank.ready import say

DRIVER = Place(rank=0, launcher="Monarch", group="client")
NO_STARTUP_FUNCTIONS = (
    "cannot have its procs debugged: this release of Monarch has no "
    "SetupActor.register_startup_function; pass spawn_procs(bootstrap=dap_mux.monarch.bootstrap) "
    "in the program (docs/monarch.md)"
)


def debug_driver_and_procs(proc_mesh: Any, options: HookOptions) -> None:
    """Make the driver a rank, and all procs that it spawns from now on."""
    keep_file_names()
    if MARK not in os.environ:
        become(DRIVER, options)
    bundle = arming.rank_bundle("" if find_spec("debugpy") else options.debugpy)
    if not arm_spawned(proc_mesh, bundle, for_workers()):
        say(DRIVER, NO_STARTUP_FUNCTIONS)


def arm_spawned(proc_mesh: Any, bundle: bytes, environ: dict[str, str]) -> bool:
    """Have the procs that this process spawns set up; False where Monarch has changed."""
    register = getattr(getattr(proc_mesh, "SetupActor", None), "register_startup_function", None)
    if register is None:
        return False
    cloudpickle.register_pickle_by_value(arming)
    startup = partial(arming.set_up, bundle, environ, "monarch_proc", bundle, environ)
    register(lambda: startup)
    return True
