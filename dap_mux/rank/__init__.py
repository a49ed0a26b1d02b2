"""The in-rank agent: runs one Python program under debugpy and says where it listens.

It is what each rank of a job is started with in place of plain `python`:

    python -m dap_mux.rank [--wait|--no-wait] train.py --epochs 3
    python -m dap_mux.rank -m package.train --epochs 3

It needs the standard library and debugpy, and imports nothing else of this project, so
that a rank pays for nothing but its debugger.

- `options` the command line, and the agent's own exit codes.
- `agent`   runs the steps in order.
- `api`     the same for programs (`dap_mux.listen()` and others), and `start` for launchers; the
  name of a rank in a Kubernetes pod; what a forked child, which has no debugger threads, lacks.
- `environ` finds in the launchers' variables whether this process is a rank, which, and its port.
- `listen`  starts debugpy on the rank's port, or on the next one that no other rank uses.
- `own_port` accepts connections there, and serves sessions in this process; `in_process`
  is debugpy's side of that, `dap_message` the first request.
  For other clients it starts debugpy's adapter; `handed_clients` runs in its process.
- `dial`    connects to the session instead, after both have proved that they know its token.
- `ready`   the record of where this rank listens, written once `listen` has returned.
- `debugger_wait` waits for a debugger, within a time limit.
- `post_mortem` holds the rank at an uncaught exception so that it can be inspected.
- `breakpoint_hook` keeps other hooks of `breakpoint()`.
- `hook`, `frameworks.launched` find the ranks among a launcher's processes.
- `libraries` those that reveal the rank of a process where no launcher does.
- `hidden_frames` keeps the agent's own frames out of the user's stacks.
- `runpy`   runs the program as `python` itself would.

The exit code is the program's own, except 2: wrong usage or no such script; 124: no debugger
attached in time (`--on-timeout exit`); 125: debugpy could not listen.
"""

import os

# debugpy reads it at import. The warning it saves says that breakpoints may be missed
# in the standard library's frozen modules: not the user's code, and once for each rank.
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
