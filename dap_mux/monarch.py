"""For programs of Monarch that `dap-mux run` does not start: `import dap_mux.monarch`.

    procs = this_host().spawn_procs({"gpus": 4}, bootstrap=dap_mux.monarch.bootstrap)

Only what Monarch documents is used to get into the procs. They must have dap-mux.
"""

from __future__ import annotations

from importlib import import_module


def bootstrap() -> None:
    """Let each proc become a rank before its first actor; call it from a bootstrap of your own."""
    import_module("dap_mux.rank.frameworks.monarch_proc").set_up(None, {})
