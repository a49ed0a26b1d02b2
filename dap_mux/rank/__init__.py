"""The in-rank agent: runs one Python program under debugpy and says where it listens.

It is what each rank of a job is started with in place of plain `python`:

    python -m dap_mux.rank [--wait|--no-wait] train.py --epochs 3
    python -m dap_mux.rank -m package.train --epochs 3

It needs the standard library and debugpy, and imports nothing else of this project, so
that a rank pays for nothing but its debugger.

The exit code is the program's own, except 2: wrong usage or no such script; 124: no debugger
attached in time (`--on-timeout exit`); 125: debugpy could not listen.
"""

import os

# debugpy reads it at import. The warning it saves says that breakpoints may be missed
# in the standard library's frozen modules: not the user's code, and once for each rank.
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
