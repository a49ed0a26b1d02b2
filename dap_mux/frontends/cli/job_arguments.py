"""The arguments of the commands that start a job or record one: `run`, `record`, `save`."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, _ActionsContainer
from pathlib import Path

SESSION = "HOST:PORT or a session file (default: the only running session)"
RUN_USAGE = """\
dap-mux run [-n N] [OPTIONS] SCRIPT [ARGS...]
       dap-mux run [-n N] [OPTIONS] -m MODULE [ARGS...]
       dap-mux run [OPTIONS] -- LAUNCHER [ARGS...]"""
RUN_NOTES = """\
A LAUNCHER (torchrun, mpirun, srun, ...) runs as typed, and the ranks it starts are debugged.
Exits with the job's exit code (128+S for a rank ended by signal S), 125 if dap-mux itself fails,
2 for usage errors."""
RECORD_USAGE = "dap-mux record [OPTIONS] -- LAUNCHER [ARGS...]"
RECORD_NOTES = """\
Writes the report and beside it a page, report.html. Exits with the job's exit code; with that of
the verdict, as `why` does, for a job that was ended because it hangs; 125 if dap-mux itself fails,
2 for usage errors."""


def flag(parser: _ActionsContainer, name: str, about: str) -> None:
    """Add an option without a value."""
    parser.add_argument(name, action="store_true", help=about)


def words(
    parser: ArgumentParser, count: str, about: str, ranks: str = "as an option instead"
) -> None:
    """Add the arguments of a command that begin with an optional SESSION."""
    parser.add_argument("arguments", nargs=count, metavar="ARG", help=f"{SESSION}; {about}")
    parser.add_argument("--session", metavar="SESSION", help="as an option instead")
    parser.add_argument("--ranks", metavar="RANKS", help=ranks)


def run_arguments(parser: ArgumentParser) -> None:
    """Add those of `run`."""
    parser.usage = RUN_USAGE
    parser.epilog = RUN_NOTES
    parser.add_argument("-n", dest="world_size", metavar="N", help="number of ranks to start (1)")
    _dial_and_comm(parser)
    parser.add_argument(
        "--comm-file",
        type=Path,
        metavar="FOLDER",
        help="write what --comm hash or operations records to a new folder, for `diverge`",
    )
    parser.add_argument(
        "--hold",
        nargs="?",
        const="on",
        metavar="S",
        help="hold each rank at an uncaught exception for S seconds (300), so that a debugger can "
        "attach (default: only ranks that have had one)",
    )
    parser.add_argument(
        "--end-json",
        type=Path,
        metavar="FILE",
        help="write to FILE which rank of a job that fails failed first",
    )
    parser.add_argument(
        "--why-after",
        metavar="S",
        help="look every S seconds whether the job hangs while nobody watches, and say why",
    )
    for name, metavar, about in (
        ("--take", "RANKS", "write what these ranks receive to a file, for `dap-mux replay`"),
        ("--to", "FILE", "which file that is (taken.rank); of several ranks FILE-RANK"),
        ("--take-limit", "SIZE", "take no more than that, such as 2G"),
    ):
        parser.add_argument(name, metavar=metavar, help=about)
    flag(parser, "--take-data", "hash the data files that these ranks read, too")
    surface = parser.add_mutually_exclusive_group()
    flag(surface, "--headless", "only serve editors (default)")
    flag(surface, "--console", "open a console here; waiting ranks stop at the script's first line")
    # Both take all arguments that follow: they are the job's own.
    parser.add_argument(
        "-m",
        dest="module",
        nargs=REMAINDER,
        metavar="MODULE ...",
        help="run a module instead of a script",
    )
    parser.add_argument(
        "command", nargs=REMAINDER, metavar="SCRIPT ...", help="the script and its arguments"
    )


def _dial_and_comm(parser: ArgumentParser) -> None:
    flag(
        parser,
        "--dial",
        "ranks connect to the session instead of listening: no ports, less memory, faster",
    )
    parser.add_argument(
        "--comm",
        choices=("off", "time", "finite", "hash", "operations"),
        default="",
        help="record torch's communication calls, for `why` (time); hash what is sent and stepped "
        "to, for `diverge` (hash), or what each operation computes (operations) (default: off)",
    )


def replay_arguments(parser: ArgumentParser) -> None:
    """Add those of `replay`."""
    parser.usage = "dap-mux replay [OPTIONS] FILE... [-- PROGRAM [ARGS...]]"
    parser.epilog = "Without a program, what the rank ran. Several FILEs are of ranks of one job."
    flag(parser, "--console", "open a console here; the rank stops at the script's first line")
    flag(parser, "--go-on", "give what was received even where other values are sent than then")
    parser.add_argument(
        "--at",
        metavar="PLACE",
        help="run to there, past all breakpoints, and stop: a step (31), call:N or last",
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="what `dap-mux run --take` has written; ranks of one job talk to each other",
    )


def record_arguments(parser: ArgumentParser) -> None:
    """Add those of `record`."""
    parser.usage = RECORD_USAGE
    parser.epilog = RECORD_NOTES
    for name, dest, metavar, about in (
        ("--break", "breaks", "PLACE", "look at FILE:LINE[, CONDITION], and continue"),
        ("--compare", "compare", "EXPR", "compare an expression across ranks at each stop"),
    ):
        parser.add_argument(
            name, dest=dest, action="append", default=[], metavar=metavar, help=about
        )
    parser.add_argument(
        "--trace",
        dest="traces",
        action="append",
        default=[],
        nargs=2,
        metavar=("FILE:LINE", "TEXT"),
        help="print TEXT with its {expressions} there, without a stop",
    )
    flag(parser, "--on-exception", "look at uncaught exceptions")
    parser.add_argument(
        "--on-hang",
        metavar="S",
        help="look every S seconds whether the job hangs; if so, say why and end it",
    )
    parser.add_argument("--to", metavar="FILE", help="where the report goes (report.dapmux)")
    parser.add_argument(
        "--plan", type=Path, metavar="FILE", help="a TOML file with these options, for all but this"
    )
    _dial_and_comm(parser)


def save_arguments(parser: ArgumentParser) -> None:
    """Add those of `save`."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="the report (report.dapmux)")
    parser.add_argument("--session", metavar="SESSION", help=SESSION)
