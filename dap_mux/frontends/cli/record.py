"""`dap-mux record` and `save`: a job or a session in a file."""

from __future__ import annotations

import shutil
import sys
import tempfile
from argparse import Namespace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from dap_mux import __version__
from dap_mux.frontends.cli.execution import execute, load_config, seconds_of
from dap_mux.pure.errors import DapMuxError, UsageError
from dap_mux.pure.rank_sets import RankId
from dap_mux.system.config import Config, LaunchOptions
from dap_mux.system.session_files import SessionFile, find, own_session

if TYPE_CHECKING:
    from dap_mux.frontends.console.session_client import SessionClient
    from dap_mux.frontends.report.plan import Plan
    from dap_mux.frontends.report.recorder import Outside, Recorder
    from dap_mux.frontends.report.report_file import Contents, Report

NAME: Final = "dap-mux record"
HOLD_S: Final = "30"
"""That a failed rank waits for the recorder, which comes at once where it can see the rank."""
EXAMPLE: Final = "dap-mux record -- torchrun --nproc-per-node 4 train.py"


def record(args: Namespace) -> int:
    """Run the job, write the report; return the job's exit code, or the verdict's on a hang."""
    from dap_mux.frontends.report.plan import breakpoints_of
    from dap_mux.frontends.report.recorder import Recorder
    from dap_mux.frontends.report.writer import destination
    from dap_mux.session.job import launched_program
    from dap_mux.session.launcher_job import run_launcher

    if not args.launcher:
        raise UsageError(f"record needs a launcher behind --, for example: {EXAMPLE}")
    plan = _plan(args)
    path, launcher = destination(plan.to), tuple(args.launcher)
    hang = seconds_of("--on-hang", plan.on_hang) if plan.on_hang else None
    folders = tuple(str(Path(each).absolute().parent) for each in launched_program(launcher)[:1])
    breakpoints = breakpoints_of(plan, folders)
    # Ranks wait until the breakpoints are set; without any they run without a debugger.
    debugged = bool(breakpoints) or args.dial
    config = replace(load_config(args), wait=debugged)

    async def join() -> SessionClient:
        from dap_mux.frontends.cli.join import controller

        exceptions = plan.on_exception
        return await controller(own_session(), config, breakpoints, NAME, exceptions=exceptions)

    recorder = Recorder(join, plan.compare, hang, None if debugged else _outside(config))
    folder = Path(tempfile.mkdtemp(prefix="dap-mux-record-"))
    try:
        end, output = folder / "end.json", None if debugged else folder / "output.json"
        hold = "off" if not plan.on_exception else None if debugged else HOLD_S
        options = LaunchOptions(
            config, launcher, args.dial, hold, end, comm=args.comm, output_json=output
        )
        code = execute(run_launcher, options, console=recorder)
        if output and output.exists():
            kept = msgspec.json.decode(output.read_bytes(), type=list[tuple[RankId, str]])
            recorder.replace_output(kept)
        return _finish(recorder, launcher, path, code, end)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _outside(config: Config) -> Outside:
    from dap_mux.frontends.cli.join import follower
    from dap_mux.frontends.cli.why import of_session
    from dap_mux.frontends.report.recorder import Outside

    return Outside(
        lambda: follower(own_session(), config, NAME),
        lambda: of_session(own_session(), config, "all", attach=False),
    )


def _plan(args: Namespace) -> Plan:
    """Return what the file says and the flags add. Raises UsageError."""
    from dap_mux.frontends.report.plan import plan_of
    from dap_mux.system.config.config import read_toml

    plan = plan_of(read_toml(args.plan) if args.plan else {}, str(args.plan))
    return replace(
        plan,
        breaks=plan.breaks + args.breaks,
        traces=[*plan.traces, *map(tuple, args.traces)],
        compare=plan.compare + args.compare,
        on_exception=plan.on_exception or args.on_exception,
        on_hang=args.on_hang or plan.on_hang,
        to=args.to or plan.to,
    )


def _finish(recorder: Recorder, launcher: tuple[str, ...], path: Path, code: int, end: Path) -> int:
    from dap_mux.frontends.report.report_file import Contents
    from dap_mux.pure.insight.end_of_job import EndOfJob
    from dap_mux.pure.insight.end_of_job_block import lines_of
    from dap_mux.pure.insight.why.verdicts import EXIT_CODES

    why = recorder.why
    verdict = EXIT_CODES[why["verdict"]] if why else None
    block = ""
    if end.exists():
        block = "\n".join(lines_of(msgspec.json.decode(end.read_bytes(), type=EndOfJob)))
    said = block.partition("\n")[0] or f"the job ended with exit code {code}"
    report = replace(
        _header(recorder.rows, f"{NAME} ended the job, which hung" if why else said),
        command=launcher,
        job_exit=None if why else code,
        verdict_exit=verdict,
        why=why,
        end_block=block,
        stops_before=recorder.count - len(recorder.stops),
    )
    stops, printed = tuple(recorder.stops), tuple(recorder.printed)
    if recorder.problem:
        print(f"dap-mux: recorded only a part: {recorder.problem}", file=sys.stderr)
    try:
        _write(path, Contents(report, stops, printed, recorder.texts))
    except OSError as error:  # the exit code is the job's
        print(f"dap-mux: no report: {path}: {error.strerror or error}", file=sys.stderr)
    return code if verdict is None else verdict


def _header(rows: Any, end: str) -> Report:
    from dap_mux.frontends.report.report_file import VERSION, Report
    from dap_mux.pure.rank_sets import fold

    by_state: dict[str, list[Any]] = {}
    for id, row in rows.items():
        code = "" if row["exitCode"] is None else f", exit code {row['exitCode']}"
        by_state.setdefault(f"{row['state']}{code}", []).append(id[:2])
    return Report(
        VERSION,
        f"dap-mux {__version__}",
        datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        (),
        tuple(sorted({id[1] for id in rows})),
        end,
        states={state: fold(ids) for state, ids in sorted(by_state.items())},
    )


def _write(path: Path, contents: Contents) -> None:
    from dap_mux.frontends.report.writer import write

    page = write(path, contents)
    print(f"dap-mux: wrote {path} and {page}", file=sys.stderr)


def save(args: Namespace) -> int:
    """Write what a session shows now; nobody is paused."""
    from dap_mux.frontends.report.plan import DEFAULT_FILE
    from dap_mux.frontends.report.writer import destination

    path = destination(args.file or DEFAULT_FILE)
    return execute(_save, path, find(args.session), load_config(args))


async def _save(path: Path, session: SessionFile, config: Config) -> int:
    from dap_mux.frontends.cli.join import follower
    from dap_mux.frontends.cli.why import of_session
    from dap_mux.frontends.report.look import Look
    from dap_mux.frontends.report.report_file import Contents

    why: dict[str, Any] = {}
    try:
        why = await of_session(session, config, "all", attach=False)
    except DapMuxError as error:
        print(f"dap-mux: no verdict in it: {error}", file=sys.stderr)
    client = await follower(session, config, "dap-mux save")
    try:
        look = Look(client)
        stop = await look.at_now(0.0, why=why)
        report = replace(_header(client.ranks.all, "saved while the job runs"), why=why)
    finally:
        await client.close()
    _write(path, Contents(report, (stop,), (), look.texts))
    return 0
