"""Python imports this at its start where `dap-mux run -- LAUNCHER` has put its folder in front.

First comes the `sitecustomize` that Python would have taken without us, then ours. It runs in every
Python of the job, launchers and helpers too, so it imports nothing before it is worth it.
"""

import atexit
import os
import sys

TYPE_CHECKING = False  # typing takes its time
if TYPE_CHECKING:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  (pathlib takes its time)
PACKAGE = os.path.dirname(os.path.dirname(HERE))  # noqa: PTH120
MARK = "DAP_MUX_RANK_PID"
OLDEST = (3, 10)
# Those of `environ.LAUNCHERS`, as a test checks: importing that takes 18 ms, in every Python.
RANK_VARIABLES = frozenset(
    "JOB_COMPLETION_INDEX OMPI_COMM_WORLD_RANK PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX PMIX_RANK"
    " PMI_RANK RANK SLURM_PROCID".split()
)
WATCHED = frozenset(
    "distributed.client distributed.deploy.cluster jax.distributed monarch._rust_bindings"
    " monarch._src.actor.proc_mesh mpi4py.MPI ray._private.worker"
    " torch.distributed.distributed_c10d".split()
)
"""The modules by which `libraries` knows a rank."""
SET_BY_WORKERS = (b"RANK", b"WORLD_SIZE")
TO_BE_RANK = "LOCAL_RANK"
SPAWNED = "--multiprocessing-fork"
"""In the command line of every worker that `multiprocessing` spawns."""


def run_the_users_own() -> None:
    """Take our folder from the path, and import what it has hidden."""
    ours = sys.modules.pop("sitecustomize")
    sys.path[:] = [entry for entry in sys.path if entry != HERE]
    try:
        __import__("sitecustomize")  # another one
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        # The import that has brought us here gives out what stands under this name at its end.
        sys.modules.setdefault("sitecustomize", ours)


def take_part() -> None:
    """Be a rank where this process is one, or see whether its workers will be."""
    pid = str(os.getpid())
    if "DAP_MUX_RENDEZVOUS" not in os.environ or sys.version_info < OLDEST:
        return
    if os.environ.get(MARK, pid) != pid:
        return  # a rank's child
    if not RANK_VARIABLES.isdisjoint(os.environ):
        call("take_part")
    if os.environ.get(MARK) == pid:
        return
    note_ends(os.environ["DAP_MUX_RENDEZVOUS"])
    atexit.register(note_own_end, os.environ["DAP_MUX_RENDEZVOUS"], pid)
    sys.meta_path.insert(0, Watcher())
    if SPAWNED in sys.orig_argv:
        heed_variables()
    elif hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=heed_variables)


def note_ends(folder: str) -> None:
    """A launcher in Python writes how its ranks have ended: their parent alone can know.

    `subprocess` and `multiprocessing` both wait by `os.waitpid`, which they import after this.
    """
    usual = os.waitpid

    def waitpid(pid: int, options: int, /) -> "tuple[int, int]":
        found, status = usual(pid, options)
        if found > 0:
            file = f"{folder}/{os.uname().nodename}-{found}"
            try:
                if not any(map(os.path.exists, (f"{file}.json", f"{file}.end"))):
                    return found, status  # no rank, nor to be one
                with open(f"{file}.status", "x", encoding="ascii") as record:  # noqa: PTH123
                    record.write(str(status))
            except OSError:
                pass
        return found, status

    if hasattr(os, "uname"):
        os.waitpid = waitpid


def note_own_end(folder: str, pid: str) -> None:
    """A launcher, or a program that is no rank yet, writes of what exception it ends.

    One that was to be a rank, as Lightning's processes are before they meet, writes of any end.
    """
    error = getattr(sys, "last_value", None)
    ends = error is not None or TO_BE_RANK in os.environ
    if ends and pid == str(os.getpid()) != os.environ.get(MARK):
        call("note_failure", folder, error)


def heed_variables() -> None:
    """A worker is a rank from when it sets RANK and WORLD_SIZE, as scripts that spawn do."""
    # An audit hook would run at every event; and while one runs, up to Python 3.11, `sys.settrace`
    # fails in other threads (https://github.com/python/cpython/issues/98257).
    usual = os.putenv

    def putenv(name: "Any", value: "Any") -> None:
        if name in SET_BY_WORKERS:
            call("worker_sets", name, value)
        usual(name, value)

    os.putenv = putenv


class Watcher:
    """Among the finders of modules: sees the import of one that says which rank a process is."""

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        """Find a module of WATCHED as the others do, and have it watched; find nothing else."""
        if name not in WATCHED:
            return None
        others = [each for each in sys.meta_path if each is not self and hasattr(each, "find_spec")]
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None and MARK not in os.environ:
            call("watch", spec.loader, name, call)
        return spec


def call(name: str, *arguments: "Any") -> "Any":
    """Call a function of `launched` without leaving dap-mux importable for the program."""
    borrowed = "dap_mux" not in sys.modules
    if borrowed:
        package = sys.modules["dap_mux"] = type(sys)("dap_mux")
        package.__path__ = [PACKAGE]
    try:
        from dap_mux.rank.frameworks import launched  # noqa: PLC0415

        return getattr(launched, name)(*arguments)
    finally:
        if borrowed and not hasattr(sys.modules["dap_mux"], "__version__"):
            for each in [each for each in sys.modules if each.split(".")[0] == "dap_mux"]:
                del sys.modules[each]


if __name__ == "sitecustomize":
    try:
        run_the_users_own()
    finally:
        take_part()
