"""`dap-mux stacks`: where all ranks are, as one tree of their stacks."""

from __future__ import annotations

import json
from argparse import Namespace

from dap_mux.cli.cast import send
from dap_mux.cli.execution import load_config
from dap_mux.cli.list_ranks import split_session

RANK_TIMEOUT_S = 5.0


def main(args: Namespace) -> int:
    """Show the stacks of ranks; 1 if a rank did not tell."""
    from dap_mux.rank_sets import parse, with_group

    session, arguments = split_session(args.arguments)
    ranks = with_group(" ".join(arguments) or "all")
    parse(ranks)  # report a mistake before connecting
    request = {"ranks": ranks, "threads": args.which_threads}
    body = send(session, load_config(args), "stacks", request, RANK_TIMEOUT_S)
    if args.json:
        print(json.dumps(body, indent=1))
    else:
        from dap_mux.console.screen import screen_for_stdout
        from dap_mux.console.stack_tree import show_stacks

        show_stacks(screen_for_stdout(), body, library=args.library)
    return 1 if body["missing"] else 0
