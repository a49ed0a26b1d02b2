"""Python imports this at its start where `dap-mux run -- LAUNCHER` has put its folder in front.

First comes the `sitecustomize` that Python would have taken without us, then ours. This runs in
every Python of the job, the launcher itself and its helpers too: it must cost them nothing.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  (pathlib costs time)
PACKAGE = os.path.dirname(os.path.dirname(HERE))  # noqa: PTH120
OLDEST = (3, 10)


def run_the_users_own() -> None:
    """Take our folder from the path, and import what it has hidden."""
    sys.path[:] = [entry for entry in sys.path if entry != HERE]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    # The import that has brought us here gives out what stands under the name at its end.
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def take_part() -> None:
    """Be a rank where this process is one."""
    if "DAP_MUX_RENDEZVOUS" not in os.environ or sys.version_info < OLDEST:
        return
    borrow("dap_mux", PACKAGE)
    from dap_mux.rank import hooked  # noqa: PLC0415  (found by `borrow`)

    hooked.take_part()


def borrow(name: str, folder: str) -> None:
    """Make one package of dap-mux's Python importable here, and nothing that lies beside it."""
    if name in sys.modules:
        return
    spec = spec_from_file_location(
        name,
        os.path.join(folder, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[folder],
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    try:
        run_the_users_own()
    finally:
        take_part()
