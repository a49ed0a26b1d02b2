"""`dap-mux open`: a report as a session, whose ranks answer from what was recorded."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from dap_mux.frontends.cli.console import InlineConsole
from dap_mux.frontends.cli.execution import execute, load_config
from dap_mux.frontends.cli.join import controller
from dap_mux.frontends.report.recording import Recording
from dap_mux.frontends.report.report_file import MAX_FILE, read
from dap_mux.pure.errors import UsageError
from dap_mux.session.attach import serve
from dap_mux.session.hosted_ranks import recorded_settings, show
from dap_mux.session.job import announce
from dap_mux.session.session import open_session
from dap_mux.session.terminal_output import say, set_up_log
from dap_mux.system.config import Config
from dap_mux.system.user_files import check_regular


def main(args: Namespace) -> int:
    """Serve a report until a signal comes. Raises UsageError for a file that is none."""
    return execute(_serve, recording_of(Path(args.file)), load_config(args), args)


def recording_of(path: Path) -> Recording:
    """Read a report. Raises UsageError."""
    try:
        with path.open("rb") as file:
            check_regular(path, path.stat())
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    return Recording(read(data, path.name), path.name)


async def _serve(recording: Recording, config: Config, args: Namespace) -> int:
    set_up_log(config.verbosity, config.log_dir, config.log)
    async with open_session(config, recorded_settings(config)) as session:
        say(f"a recording of {len(recording.ranks)} ranks ({args.file}) on {session.address}")
        show(session, recording)
        console = InlineConsole(config, shows_output=True) if args.console else None
        # With one debugger that stays, the other commands find ranks that are attached.
        keeper = None if console else await controller(session.file, config, {}, "dap-mux open")
        if console is None and not await announce(session.file, args.file):
            say("attach an editor to it, or ask `dap-mux console`, `why`, `stacks`; Ctrl-C ends it")
        await serve(session, console, then="the recording is closed")
        if keeper is not None:
            await keeper.close()
    return 0
