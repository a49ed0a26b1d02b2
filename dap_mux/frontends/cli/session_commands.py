"""`run`, `attach` and `adapter`: the commands that start a session."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from dap_mux.frontends.cli import without_collections
from dap_mux.frontends.cli.execution import execute, load_config, seconds_of
from dap_mux.pure.errors import UsageError
from dap_mux.system.config import (
    AttachOptions,
    JobOptions,
    LaunchOptions,
    RunOptions,
)

J = TypeVar("J", bound=JobOptions)
TRACED = ("hash", "operations")
"""The modes of `--comm` that are worth a file."""

if TYPE_CHECKING:
    from dap_mux.frontends.report.recording import Recording


def run(args: Namespace) -> int:
    """Start local ranks and serve them; return the job's exit code."""
    if args.launcher:
        launched = launch_options(args)
        with without_collections():
            from dap_mux.session.launcher_job import run_launcher
        return _run(run_launcher, launched, args)
    return run_local(run_options(args), args)


def replay(args: Namespace) -> int:
    """Run the program of a rank alone, with what it received."""
    from dap_mux.frontends.cli.take import replay_options

    return run_local(replay_options(args), args)


def run_local(options: RunOptions, args: Namespace) -> int:
    """Start local ranks."""
    with without_collections():
        from dap_mux.session.local_job import run_job
    return _run(run_job, options, args)


def _run(
    job: Callable[..., Coroutine[Any, Any, int]],
    options: JobOptions | AttachOptions,
    args: Namespace,
) -> int:
    if not args.console:
        return execute(job, options)
    from dap_mux.frontends.cli.console import InlineConsole

    own = not isinstance(options, AttachOptions)
    console = InlineConsole(options.config, shows_output=not own)
    return execute(job, options, console=console)


def attach(args: Namespace) -> int:
    """Serve ranks that are already running, until they are gone."""
    with without_collections():
        from dap_mux.session.attach import attach_ranks

    return _run(attach_ranks, AttachOptions(load_config(args), tuple(args.endpoints)), args)


def rerun(args: Namespace) -> int:
    """Run a task of a cluster again, as a rank."""
    with without_collections():
        from dap_mux.session.launcher_job import rerun_task

    return execute(rerun_task, load_config(args), key=args.key, endpoint=args.endpoint)


def adapter(args: Namespace) -> int:
    """Serve the editor at the other end of standard input and output."""
    with without_collections():
        from dap_mux.session.adapter import serve_adapter

    def opens(path: Path) -> Recording:
        from dap_mux.frontends.cli.open_report import recording_of  # few editors need it

        return recording_of(path)

    return execute(serve_adapter, load_config(args), opens=opens)


def run_options(args: Namespace) -> RunOptions:
    """Check the arguments of `run`. Raises UsageError."""
    command = ("-m", *args.module) if args.module else tuple(args.command)
    if not command or args.module == []:
        raise UsageError("run needs a script or -m MODULE, for example: dap-mux run -n 4 train.py")
    if command[0] != "-m" and not Path(command[0]).is_file():
        raise UsageError(f"no such file: {command[0]}; to run a module, use -m")
    config, size = load_config(args), world_size(args.world_size or "1")
    if config.mesh and config.mesh.size != size:
        raise UsageError(f"mesh {config.mesh} has {config.mesh.size} ranks, but -n is {size}")
    options = RunOptions(config, command, args.dial, args.hold, args.end_json, world_size=size)
    return _with_watches(options, args)


def launch_options(args: Namespace) -> LaunchOptions:
    """Check the arguments of `run -- LAUNCHER`. Raises UsageError."""
    if args.world_size is not None:
        raise UsageError(
            f"-n {args.world_size}: only for scripts and modules; the launcher "
            f"({args.launcher[0]}) decides how many ranks it starts"
        )
    launcher = tuple(args.launcher)
    options = LaunchOptions(load_config(args), launcher, args.dial, args.hold, args.end_json)
    return _with_watches(options, args)


def _with_watches(options: J, args: Namespace) -> J:
    comm_file = "" if args.comm_file is None else str(trace_folder(args.comm_file, args.comm))
    taken: Mapping[str, str] = {}
    if args.take is not None:
        from dap_mux.frontends.cli.take import variables_of

        taken = variables_of(args)
    watches = {"comm": args.comm, "comm_file": comm_file, "variables": taken}
    return replace(options, why_after=_why_after(args), **watches)


def trace_folder(path: Path, comm: str) -> Path:
    """Return the folder that a new trace goes to. Raises UsageError."""
    if comm not in TRACED:
        raise UsageError(f"--comm-file {path}: needs --comm {' or '.join(TRACED)}")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"--comm-file {path}: exists already; a trace is a new folder")
    return path.absolute()


def _why_after(args: Namespace) -> float | None:
    return None if args.why_after is None else seconds_of("--why-after", args.why_after)


def world_size(text: str) -> int:
    """Parse `-n`. Raises UsageError."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise UsageError(f"-n {text}: the number of ranks must be an integer from 1 to 65535")
    return int(text)
