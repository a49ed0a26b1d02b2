"""`python -m dap_mux.rank`: the options, then the agent."""

from __future__ import annotations

from dap_mux.rank.starter import dying_of_ctrl_c


def main() -> None:
    with dying_of_ctrl_c():  # without a traceback of our own imports
        from dap_mux.rank.options import options_of  # noqa: PLC0415

        options = options_of()
        from dap_mux.rank import agent  # noqa: PLC0415  (it imports debugpy: not for a wrong usage)
    agent.run(options)


if __name__ == "__main__":
    main()
