"""`dap-mux why`: what keeps a job from moving on, in one sentence, with evidence."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
from msgspec.structs import replace

from dap_mux.frontends.cli.execution import execute, load_config, seconds_of
from dap_mux.frontends.cli.join import ATTACH_TIMEOUT_S, reached
from dap_mux.frontends.cli.listings import Body, present, session_and_ranks
from dap_mux.frontends.cli.outside import (
    NO_PY_SPY,
    ON_LOOPBACK,
    endpoint_of,
    endpoints_in,
    machines_in,
    pids_here,
    pids_in,
    place_outside,
    undebugged,
    why_on_machines,
    why_outside,
)
from dap_mux.frontends.console.context import SLOW_TIMEOUT_S
from dap_mux.frontends.console.screen import show_verdict
from dap_mux.frontends.console.session_client import SessionClient
from dap_mux.pure.errors import DapMuxError, UsageError
from dap_mux.pure.rank_sets import with_group
from dap_mux.system import procfs
from dap_mux.system.config import AttachOptions, Config
from dap_mux.system.config.options import Address
from dap_mux.system.session_files import SessionFile, find

# `dap-mux why --from DIR`: the verdict on a job that has ended, by the files that it has left.

OURS: Final = "dap-mux "
AGAIN: Final = "start the job by `dap-mux run`, and ask `dap-mux why` while it hangs"
MAX_SKIPPED: Final = 4


def why_from(folder: Path) -> Body:
    """Return the answer of `why`. Raises `DapMuxError` where there is nothing to judge."""
    from dap_mux.pure.insight.why.after_death import evidence_of, more_evidence
    from dap_mux.pure.insight.why.verdict import answer
    from dap_mux.pure.insight.why.verdicts import judge
    from dap_mux.pure.rank_sets import fold
    from dap_mux.session.dump_files import find_remains

    found = find_remains(folder)
    verdict = judge(evidence_of(found.remains))
    body = answer(verdict, fold)
    culprits = [number for _, number in verdict.suspects[0].ranks] if verdict.suspects else []
    failed = found.remains.first_failure
    if failed is not None and verdict.name == "process-gone" and failed in culprits:
        message = found.remains.failures[failed].message
        body["sentence"] = f"rank {failed} has ended with {message}"
    body["evidence"] += more_evidence(found.remains, culprits)
    body["evidence"] += [f"skipped {each}" for each in found.skipped[:MAX_SKIPPED]]
    if len(found.skipped) > MAX_SKIPPED:
        body["evidence"].append(f"skipped {len(found.skipped) - MAX_SKIPPED} more files")
    if OURS in body["next"]:  # there is no rank any more
        body["next"] = AGAIN
    return body


LIST_TIMEOUT_S: Final = 10.0
RESPONSE_TIMEOUT_S: Final = 20.0
STOPPED: Final = "Tt"
NO_DEBUGGER: Final = (
    "no debugger is attached to these ranks: attach an editor or `dap-mux console`; or pass "
    "--attach, by which ranks that wait for a debugger before their first line begin to run"
)


# `why` is asked of a session; or of processes of this machine, which are looked at from outside; or
# of ranks wherever else they run: a session is then opened over them for as long as the answer
# takes; or of the files that a job has left.
def main(args: Namespace) -> int:
    """Show the verdict; the exit code is the verdict's."""
    if args.folder is not None:
        if args.arguments or args.attach or args.slow:
            raise UsageError("--from: takes no session, ranks, endpoints, --attach or --slow")
        return _show(args, why_from(Path(args.folder)))
    endpoints = endpoints_in(args.arguments)
    if args.slow and (args.watch is not None or (endpoints and pids_in(endpoints) is not None)):
        raise UsageError(SLOW_OF)
    if args.watch is not None:
        return _watched(args, endpoints)
    if endpoints:
        if (pids := pids_in(endpoints)) is not None:
            return execute(_of_processes, args, pids)
        return execute(_of_machines, args, endpoints)
    session, ranks = session_and_ranks(args.arguments)
    asked = find(session), load_config(args), ranks, args.attach, args.slow
    return _show(args, anyio.run(of_session, *asked))


SLOW_OF: Final = (
    "--slow: of a session, or of ranks that listen for a debugger; without --watch, and not of "
    "pid:NUMBER: it takes a debugger in the ranks, and `dap-mux run --comm time`"
)


# `--watch`: again and again, until the session or the processes have ended.


WATCH_OF = (
    "--watch: of a session, of pid:NUMBER, or of hosts, jobs and pods whose ranks do not listen "
    "for a debugger; without --attach"
)


def _watched(args: Namespace, endpoints: tuple[str, ...]) -> int:
    """Show each verdict that two looks agree on, when it changes. Raises UsageError."""
    interval = seconds_of("--watch", args.watch)
    pids = pids_in(endpoints) if endpoints else None
    sources = machines_in(endpoints) if endpoints and pids is None else None
    if args.attach or (endpoints and pids is None and sources is None):
        raise UsageError(WATCH_OF)
    if pids is not None:

        async def look() -> Body:
            return (await why_outside(pids)).body

    elif sources is not None:

        async def look() -> Body:
            body = await why_on_machines(sources, args.job)
            if body is None:  # each listens, and would have to be attached
                raise UsageError(WATCH_OF)
            return body

    else:
        name, ranks = session_and_ranks(args.arguments)
        session, config = find(name), load_config(args)

        async def look() -> Body:
            return await of_session(session, config, ranks, attach=False)

    return anyio.run(_watch, args, look, interval)


async def _watch(args: Namespace, look: Callable[[], Awaitable[Body]], interval: float) -> int:
    code, shown, before = 0, "", ""
    while True:
        try:
            body = await look()
        except (OSError, DapMuxError) as error:
            if not before:
                raise
            print(f"dap-mux: no more to look at: {error}", file=sys.stderr)
            return code
        found = f"{body['verdict']} {[each['ranks'] for each in body['suspects'][:1]]}"
        if found == before and found != shown:
            code, shown = _show(args, body), found
            sys.stdout.flush()  # into a file or a pipe, too
        before = found
        await anyio.sleep(interval)


def _show(args: Namespace, body: Body) -> int:
    present(args, body, show_verdict)
    from dap_mux.pure.insight.why.verdicts import EXIT_CODES, UNDECIDED

    return EXIT_CODES.get(body["verdict"], EXIT_CODES[UNDECIDED])  # a recording may know others


async def of_session(
    session: SessionFile, config: Config, ranks: str, attach: bool, slow: bool = False
) -> Body:
    """Ask as an observer; `attach`: be the debugger for as long as it takes, if there is none.

    Ranks that wait for their debugger before the first line would run on with it. Without `attach`
    those of this machine that nobody debugs are looked at from outside. `slow`: who is slow.
    """
    from dap_mux.frontends.cli.join import controller, observer

    async with observer(session, config, "dap-mux why") as client:
        listed = await client.request("list", {"ranks": ranks}, timeout=LIST_TIMEOUT_S)
        if not undebugged(listed["ranks"]):
            asked, limit = _question(ranks, slow)
            body = await client.request("why", asked, timeout=limit)
            return await _with_place(body, listed["ranks"])
    if slow and not attach:
        raise DapMuxError(NO_DEBUGGER)
    if not slow and (not attach or any(map(_is_stopped, listed["ranks"]))):
        try:
            return await _from_outside(listed["ranks"])
        except DapMuxError:
            if not attach:
                raise
    debugger = await controller(session, config, {})
    try:
        return await _once_attached(debugger, ranks, slow)
    finally:
        await debugger.disconnect()


def _is_stopped(row: Body) -> bool:
    """Whether a signal has stopped the process of a rank, which could answer no debugger."""
    here = (row["endpoint"] or "").startswith(ON_LOOPBACK)
    found = procfs.stat(row["pid"]) if here and row["pid"] else None
    return found is not None and found.state in STOPPED


async def _from_outside(rows: list[Body]) -> Body:
    """Raises `DapMuxError` where the ranks cannot be looked at, or have not begun."""
    pids = pids_here(rows)
    if pids is None:
        raise DapMuxError(NO_DEBUGGER)
    seen = await why_outside(pids)
    if seen.lacks_py_spy or not seen.has_begun:
        raise DapMuxError(NO_DEBUGGER)
    return seen.body


async def _once_attached(debugger: SessionClient, ranks: str, slow: bool) -> Body:
    # A rank that is slow is slow to reach, too.
    rows = await (reached(debugger, ATTACH_TIMEOUT_S) if slow else reached(debugger))
    asked, limit = _question(ranks, slow)
    return await _with_place(await debugger.request("why", asked, timeout_s=limit), rows)


def _question(ranks: str, slow: bool) -> tuple[Body, float]:
    """Return the arguments of `why`, and how long the answer may take."""
    return {"ranks": ranks, "slow": slow}, SLOW_TIMEOUT_S if slow else RESPONSE_TIMEOUT_S


async def _with_place(body: Body, rows: Sequence[Mapping[str, Any]]) -> Body:
    """Add where a rank of this machine is that answers nothing, as far as that is seen outside."""
    named = body["suspects"][0]["ranks"] if body["verdict"] == "gil-held" else ""
    here = [row for row in rows if (row["endpoint"] or "").startswith(ON_LOOPBACK)]
    pids = [row["pid"] for row in here if row["pid"] and str(row["rank"]) == named]
    for line in await place_outside(pids[0]) if pids else ():
        body["evidence"].insert(0, line)
    return body


async def _of_processes(args: Namespace, pids: list[int]) -> int:
    """Ask of processes that nobody has prepared; `--attach` brings a debugger into the culprit."""
    from dap_mux.session.terminal_output import say

    seen = await why_outside(pids)
    if args.attach and seen.lacks_py_spy:
        say(f"{NO_PY_SPY}: debugpy is injected into every one of these processes instead")
        return await _of_endpoints(args, (endpoint_of(pids),))
    goes_on = args.attach and bool(seen.culprits)
    code = _show(args, {**seen.body, "next": ""} if goes_on else seen.body)
    if not goes_on:
        return code
    return await _with_debugger(args, endpoint_of(seen.culprits), code)


async def _with_debugger(args: Namespace, endpoint: str, code: int) -> int:
    from dap_mux.session.attach import serve, session_over
    from dap_mux.session.terminal_output import say

    async with session_over(AttachOptions(load_config(args), (endpoint,))) as (session, _):
        say(f"a debugger is in {endpoint} alone: dap-mux console {session.address}")
        await serve(session)
    return code


async def _of_machines(args: Namespace, endpoints: tuple[str, ...]) -> int:
    """Look from outside where that can be, without --attach; else ask the ranks that listen."""
    sources = None if args.attach or args.slow else machines_in(endpoints)
    body = None if sources is None else await why_on_machines(sources, args.job)
    return await _of_endpoints(args, endpoints) if body is None else _show(args, body)


async def _of_endpoints(args: Namespace, endpoints: tuple[str, ...]) -> int:
    from dap_mux.frontends.cli.join import controller
    from dap_mux.session.attach import serve, session_over
    from dap_mux.session.terminal_output import say

    config = load_config(args)
    private = replace(config, listen=Address("127.0.0.1", 0))
    options = AttachOptions(config if args.attach else private, endpoints)
    async with session_over(options) as (session, _):
        debugger = await controller(session.file, config, {})
        body = await _once_attached(debugger, "all", args.slow)
        code = _show(args, body)
        if not args.attach or not body["suspects"]:
            await session.release("the verdict is known")
            return code
        culprit = body["suspects"][0]["ranks"]
        others = {"ranks": f"all - ({with_group(culprit)})"}
        await debugger.request("drop", others, timeout_s=RESPONSE_TIMEOUT_S)
        say(f"a debugger is attached to {culprit} alone: dap-mux console {session.address}")
        await serve(session)
    return code
