"""The composition root: engine, sockets, ranks and session file put together.

- `session`: what every session has: an engine with its driver, a listener, a session file; the
  token, TLS, and which addresses may be listened on.
- `job`: a job that the session started: signals, restarts, its end, failures that ranks report.
- `local_job`: `dap-mux run -n N`. `launcher_job`: `dap-mux run -- LAUNCHER`.
- `attach`: `dap-mux attach`, over ranks that already run; `rank_sources` finds and follows them.
- `adapter`: DAP on standard input and output; an editor's `attach` or `launch` names the ranks.
- `dial_out`: ranks that connect to the session (reverse connections).
- `terminal_output`: the log, and what ranks print.

A command imports the one that it needs: an adapter that an editor waits for starts no ranks yet.
"""
