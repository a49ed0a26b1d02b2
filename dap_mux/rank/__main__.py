"""`python -m dap_mux.rank`: the options, then the agent."""

from __future__ import annotations

import os

from dap_mux.rank.options import options_of


def main() -> None:
    options = options_of()
    # debugpy reads it at import. The warning it saves says that breakpoints may be missed
    # in the standard library's frozen modules: not the user's code, and once for each rank.
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    from dap_mux.rank import agent  # noqa: PLC0415  (it imports debugpy: see above)

    agent.run(options)


if __name__ == "__main__":
    main()
