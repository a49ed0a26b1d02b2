"""In the driver of a Ray job: the driver becomes a rank, and so will its workers.

Ray calls `adapt_runtime_env` in `ray.init()`, by RAY_RUNTIME_ENV_HOOK. Workers then run our setup
hook, which is shipped to them by value, before their first task.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import ray
from ray import cloudpickle
from ray._common.utils import load_class

from dap_mux.rank.environ import MARK, Place
from dap_mux.rank.frameworks import arming, ray_copies, ray_numbers
from dap_mux.rank.frameworks.launched import HookOptions, become, for_workers

DRIVER = "driver"
TRAITS = {"swallowsExceptions": True}
"""Those of its workers: an editor reads the default filters before any worker is there."""
SETUP = "worker_process_setup_hook"


def adapt_runtime_env(runtime_env: Any, users_hook: str, options: HookOptions) -> Any:
    """Return the job's runtime environment, with our setup hook before the user's own.

    `users_hook` is what RAY_RUNTIME_ENV_HOOK is without us, and called first. The driver waits
    for its debugger here, if it is to.
    """
    env = load_class(users_hook)(runtime_env) if users_hook else runtime_env
    env = {} if env is None else env
    _become_driver(options)
    variables = {**for_workers(), **ray_copies.variables(env.get("working_dir"))}
    env[SETUP] = setup_hook(_bundle(options), variables, env.get(SETUP))
    ray_numbers.number_created_actors()
    return env


def setup_hook(
    bundle: bytes, environ: dict[str, str], users: str | Callable[[], object] | None
) -> Callable[[], None]:
    """Return what workers run at their start; it needs nothing of ours there."""
    cloudpickle.register_pickle_by_value(arming)
    set_up = arming.set_up

    def dap_mux_setup() -> None:
        set_up(bundle, environ, "ray_worker")
        if users is not None:
            from ray._common.utils import load_class  # noqa: PLC0415

            (load_class(users) if isinstance(users, str) else users)()

    return dap_mux_setup


def _become_driver(options: HookOptions) -> None:
    if MARK in os.environ:
        return  # a second ray.init(), or a driver that is a rank already
    become(Place(rank=0, launcher="Ray", group=DRIVER), options, TRAITS)
    atexit.register(_forget_numbers)


def _forget_numbers() -> None:
    if ray.is_initialized():
        ray_numbers.forget()


def _bundle(options: HookOptions) -> bytes:
    """Workers have the packages of the driver, as a rule."""
    return arming.rank_bundle("" if find_spec("debugpy") else options.debugpy)
