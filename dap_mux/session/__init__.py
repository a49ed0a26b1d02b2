"""The composition root: engine, sockets, ranks and session file put together.

- `serving`: what every session has: an engine with its driver, a listener, a session file.
- `access`: who may come in, and how.
- `running`: `dap-mux run`, local ranks and their session. `launching`: the ranks of a launcher.
- `attaching`: ranks that run already.
- `announcing`: telling the editor in whose terminal we run.
- `adapter`: DAP on standard input and output; the client says who the ranks are.
- `voices`: what a person at the terminal reads.
"""

from dap_mux.session.adapter import serve_adapter
from dap_mux.session.attaching import attach_ranks
from dap_mux.session.launching import run_launcher
from dap_mux.session.running import run_job

__all__ = ["attach_ranks", "run_job", "run_launcher", "serve_adapter"]
