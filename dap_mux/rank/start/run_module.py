"""`run_module.py MODULE ARGUMENTS`: `python -m MODULE ARGUMENTS`, but for the working directory.

`-m` puts that first on the module search path. In a folder of somebody else's, a `debugpy` or a
`types.py` of theirs would run instead, with the rights of whoever typed a command there. So the
first entry is this folder, which has nothing else in it, until a program's own takes its place.
"""

import runpy
import sys

if __name__ == "__main__":
    del sys.argv[0]
    # Not public, but the very function behind `-m`, with its sentence about a missing module.
    vars(runpy)["_run_module_as_main"](sys.argv[0])
