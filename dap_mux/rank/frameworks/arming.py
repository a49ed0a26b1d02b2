"""Makes a worker process a rank, and ends that again.

Engines ship functions of this module to their workers by value, so it imports nothing of dap-mux
before `arm` has unpacked it there.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import io
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

PREFIX = "dap-mux-rank-"
OLDEST = (3, 10)


def arm(bundle: bytes) -> dict[str, Any]:
    """Let a debugger attach to this process; return `{host, port, pid, python}`.

    `bundle` is a `rank_bundle`. It listens on a free port of 127.0.0.1; a second call finds the
    port open. Raises RuntimeError, with what helps.
    """
    if sys.version_info < OLDEST:
        raise RuntimeError(f"{sys.executable} is older than Python 3.10, which dap-mux needs")
    if "dap_mux.rank" not in sys.modules:
        unpack(bundle)
    environ = importlib.import_module("dap_mux.rank.environ")
    api = importlib.import_module("dap_mux.rank.api")
    setup = api.Setup(place=environ.Place(), port=0, quiet=True, by_engine=True, hold=0)
    try:
        host, port = api.start(setup)
    except (ValueError, importlib.import_module("dap_mux.rank.in_process").CannotListen) as error:
        raise RuntimeError(str(error)) from error
    return {"host": host, "port": port, "pid": os.getpid(), "python": sys.executable}


def disarm() -> None:
    """Let no debugger attach any more; a debugger that is attached loses its connection."""
    api = sys.modules.get("dap_mux.rank.api")
    if api is not None:
        api.stop_listening()


def unpack(bundle: bytes) -> None:
    """Make `dap_mux` importable, for good, and debugpy where this Python has none."""
    _remove_leftovers()
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-{_pid_namespace()}-"))
    atexit.register(_remove_of, os.getpid(), folder)
    with zipfile.ZipFile(io.BytesIO(bundle)) as packed:
        packed.extractall(folder)
    _load_package("dap_mux", folder / "dap_mux")
    spare = folder / "debugpy_of_dap_mux" / "debugpy"
    if importlib.util.find_spec("debugpy") is None:
        if not spare.is_dir():
            raise RuntimeError(f"it has no debugpy: {sys.executable} -m pip install debugpy")
        _load_package("debugpy", spare)


def set_up(bundle: bytes, environ: dict[str, str], module: str, *arguments: Any) -> None:
    """In a process that an engine has started, and that needs nothing of ours: have it set up."""
    os.environ.update(environ)
    unpack(bundle)
    importlib.import_module(f"dap_mux.rank.frameworks.{module}").set_up(*arguments)


def _remove_of(owner: int, folder: Path) -> None:
    """Remove the folder at the end of its own process, not of a forked child."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _load_package(name: str, folder: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def _pid_namespace() -> str:
    """Return the number of the space in which our pid is one; "" where there are none."""
    try:
        return Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        return ""


def _remove_leftovers() -> None:
    """Remove the folders of this user's processes that were killed.

    Containers may share the folder that they are in, and cannot see each other's processes.
    """
    here = _pid_namespace()
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        pid, space, *_ = folder.name.removeprefix(PREFIX).split("-")
        ours = space == here and pid.isascii() and pid.isdigit()
        try:
            if ours and folder.lstat().st_uid == os.getuid():
                os.kill(int(pid), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except (OSError, OverflowError):  # anybody can make a name there: no pid has 20 digits
            continue


# A zip file that makes a worker a rank: workers on other hosts have no files of ours.

PACKAGE = Path(__file__).resolve().parents[2]
TRACERS = "pydevd_attach_to_process/attach_*.[sd][oy]*"  # .so and .dylib


def rank_bundle(debugpy: str = "") -> bytes:
    """Return a zip of `dap_mux.rank`.

    `debugpy`: the folder of a debugpy for workers without one. Of its compiled parts only those are
    taken by which it traces running threads: the others fit one version of Python alone.
    """
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as bundle:
        for file in sorted((PACKAGE / "rank").rglob("*.py")):
            bundle.write(file, f"dap_mux/{file.relative_to(PACKAGE)}")
        bundle.write(PACKAGE / "__init__.py", "dap_mux/__init__.py")
        spare = Path(debugpy)
        for file in sorted([*spare.rglob("*.py"), *spare.rglob(TRACERS)] if debugpy else []):
            bundle.write(file, f"debugpy_of_dap_mux/debugpy/{file.relative_to(debugpy)}")
    return data.getvalue()


# Functions that Ray actors run to start and stop listening; they are shipped by value.


def arm_actor(_actor: Any, bundle: bytes) -> dict[str, Any]:
    """Make this actor's process a rank; return what `arm` returns.

    Ray is told the port, as its own `breakpoint()` would otherwise open another.
    """
    import ray  # noqa: PLC0415

    armed = arm(bundle)
    importlib.import_module(
        "dap_mux.rank.frameworks.ray_worker"
    ).trace_methods()  # which `arm` has brought
    ray._private.worker.global_worker.set_debugger_port(armed["port"])  # noqa: SLF001
    return armed


def disarm_actor(_actor: Any, _armed: Any) -> None:
    """Close this actor's port again, and say so to Ray; `_armed`: what `arm_actor` has returned.

    An actor with several threads would overtake a call of that which still goes on.
    """
    import ray  # noqa: PLC0415

    disarm()
    worker = ray._private.worker.global_worker.core_worker.get_worker_id()  # noqa: SLF001
    accessor = ray._private.state.state._connect_and_get_accessor()  # noqa: SLF001
    accessor.update_worker_debugger_port(worker, 0)  # Ray's function takes no 0
