"""`dap-mux stacks`: where all ranks are, as one tree of their stacks."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from dap_mux.cli.cast import send
from dap_mux.cli.execution import load_config
from dap_mux.cli.list_ranks import split_session
from dap_mux.cli.outside import endpoints_in, pids_in, stacks_outside
from dap_mux.errors import UsageError

RANK_TIMEOUT_S = 5.0
Body = dict[str, Any]


def main(args: Namespace) -> int:
    """Show the stacks of ranks; 1 if a rank did not tell."""
    endpoints = endpoints_in(args.arguments)
    if endpoints:
        return _show(args, _of_processes(args, endpoints))
    from dap_mux.rank_sets import parse, with_group

    session, arguments = split_session(args.arguments)
    ranks = with_group(" ".join(arguments) or "all")
    parse(ranks)  # report a mistake before connecting
    request = {"ranks": ranks, "threads": args.which_threads}
    return _show(args, send(session, load_config(args), "stacks", request, RANK_TIMEOUT_S))


def _of_processes(args: Namespace, endpoints: tuple[str, ...]) -> Body:
    import anyio

    pids = pids_in(endpoints)
    if pids is None:
        raise UsageError(f"{' '.join(endpoints)}: name a session, or processes as in pid:4711,4712")

    async def seen() -> Body:
        return await stacks_outside(pids, every_thread=args.which_threads == "all")

    return anyio.run(seen)


def _show(args: Namespace, body: Body) -> int:
    if args.json:
        print(json.dumps(body, indent=1))
    else:
        from dap_mux.console.screen import screen_for_stdout
        from dap_mux.console.stack_tree import show_stacks

        show_stacks(screen_for_stdout(), body, library=args.library)
    return 1 if body["missing"] else 0
