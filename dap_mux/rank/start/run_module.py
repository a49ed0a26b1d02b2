"""`run_module.py MODULE ARGUMENTS`: `python -m MODULE ARGUMENTS`, but for the working directory.

`-m` puts that first on the module search path. In a folder of somebody else's, a `debugpy` or a
`types.py` of theirs would run instead, with the rights of whoever typed a command there. So the
first entry is this folder, which has nothing else in it, until a program's own takes its place.
"""

import os
import runpy
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location

LENT = "DAP_MUX_LENT"
"""The folders of the packages that dap-mux lends to a Python that lacks them."""
OLDEST = (3, 10)


def lend(name: str, folder: str) -> None:
    """Make one package of another Python importable here, and nothing that lies beside it."""
    present = sys.modules.get(name)
    if present is not None and getattr(present, "__file__", None):
        return
    spec = spec_from_file_location(
        name, f"{folder}/__init__.py", submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "__main__":
    del sys.argv[0]
    if sys.version_info < OLDEST:
        version = ".".join(map(str, sys.version_info[:2]))
        sys.exit(f"dap-mux: {sys.executable} is Python {version}; ranks need 3.10 or newer")
    for lent in filter(None, os.environ.pop(LENT, "").split(os.pathsep)):
        package = lent.rpartition(os.sep)[2]
        # The job's own debugpy is taken; a dap_mux of the job's may not fit this one.
        if package == "dap_mux" or find_spec(package) is None:
            lend(package, lent)
    # Not public, but the very function behind `-m`, with its sentence about a missing module.
    vars(runpy)["_run_module_as_main"](sys.argv[0])
