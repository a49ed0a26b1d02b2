"""The in-rank agent: runs one Python program under debugpy and says where it listens.

It is what each rank of a job is started with in place of plain `python`:

    python -m dap_mux.rank [--wait|--no-wait] train.py --epochs 3
    python -m dap_mux.rank -m package.train --epochs 3

It needs the standard library and debugpy, and imports nothing else of this project, so
that a rank pays for nothing but its debugger.

- `options` the command line, and the exit codes of its own.
- `agent`   what it does, in order.
- `api`     the same for programs: `dap_mux.listen()` and its like, and `start` for launchers.
- `environ` which rank am I: pure, from the variables of the launchers.
- `ports`   which port is ours: pure, from the same and from the platform's.
- `pod`     what a rank in a pod of Kubernetes is called from outside.
- `listen`  debugpy on the rank's port, or on the next one that no other rank will want.
- `ready`   the word to whoever waits for us: one record, written when `listen` returned.
- `hold`    wait for a debugger, within a time limit.
- `post_mortem` keep the rank at an uncaught exception until somebody has looked.
- `forked`  let a forked child run on without the debugger that it seems to have.
- `claim`, `hooked`, `hook` which of the processes that a launcher starts are ranks, and how.
- `frameworks` libraries that say which rank a process is, where no launcher has.
- `hide`    keep the agent's own frames out of the user's stacks.
- `runpy`   run the program as `python` itself would.

Exit codes are the program's own, but for: 2 wrong usage or no such script; 124 nobody
attached in time (`--on-timeout exit`); 125 debugpy could not listen.
"""

import os

# debugpy reads it at import. The warning it saves says that breakpoints may be missed
# in the standard library's frozen modules: not the user's code, and once for each rank.
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
