"""The arguments of commands that look at a job's ranks, or drive them from a shell."""

from __future__ import annotations

from argparse import ArgumentParser

from dap_mux.frontends.cli.job_arguments import flag, words

DOCTOR_NOTES = """\
Exits with 0 if no problem was found, 1 if a cause was found. Ranks are not affected."""
DIVERGE_NOTES = """\
Exits with 0 if all is equal, 10 if something differs. A LAUNCHER (torchrun, ...) is run first."""
WHY_NOTES = """\
Exits with 0 if the job is healthy, 1 if undecided; each verdict has an exit code of its own from 10
on, see docs/why.md. No rank is stopped."""


def cast_arguments(parser: ArgumentParser) -> None:
    parser.usage = "dap-mux cast [SESSION] RANKS COMMAND [--timeout S] [--json] [OPTIONS]"
    parser.epilog = "Put -- before arguments that begin with a dash."
    words(parser, "+", "a rank set such as 0-3; a pdb command or an expression")
    parser.add_argument(
        "--timeout", metavar="S", default="5", help="seconds that ranks may take to answer (5)"
    )


def compare_arguments(parser: ArgumentParser) -> None:
    parser.usage = "dap-mux compare [SESSION] EXPRESSION [--ranks RANKS] [--json] [OPTIONS]"
    words(parser, "+", "an expression", ranks="ranks to compare (default: all)")
    parser.add_argument(
        "--tolerance",
        metavar="T",
        help="relative tolerance: numbers that differ by at most this fraction are equal",
    )


def _job(parser: ArgumentParser) -> None:
    text = "of several jobs on the machines that endpoints name, this one"
    parser.add_argument("--job", metavar="NAME", default="", help=text)


def stacks_arguments(parser: ArgumentParser) -> None:
    parser.usage = (
        "dap-mux stacks [SESSION] [RANKS] [OPTIONS]\n"
        "       dap-mux stacks pid:NUMBER... | ssh:HOST... | slurm:JOBID | k8s:PODS [OPTIONS]"
    )
    words(parser, "*", "a rank set; or processes or machines, whose ranks are read from outside")
    _job(parser)
    parser.add_argument(
        "--threads",
        choices=("main", "all"),
        default="main",
        dest="which_threads",
        help="a rank's main thread only (default), or all of its Python threads",
    )
    flag(parser, "--library", "show the frames of libraries")
    flag(
        parser,
        "--watch",
        "look every two seconds, and show it again when it has changed, until Ctrl-C",
    )


def why_arguments(parser: ArgumentParser) -> None:
    parser.usage = (
        "dap-mux why [SESSION] [RANKS] [--attach] [--slow|--watch [S]] [--json] [OPTIONS]\n"
        "       dap-mux why ENDPOINT... [--attach] [--job NAME] [--json] [OPTIONS]\n"
        "       dap-mux why --from DIR [--json]"
    )
    parser.epilog = WHY_NOTES
    words(parser, "*", "a rank set; or endpoints as for `attach`, such as pid:4711,4712")
    flag(
        parser,
        "--attach",
        "of a session: attach a debugger for the answer, if there is none; of endpoints: "
        "keep one on the culprit alone afterwards, for a console or an editor",
    )
    flag(parser, "--slow", "which rank makes the others wait, of a job that moves on but slowly")
    parser.add_argument(
        "--watch",
        nargs="?",
        const="60",
        metavar="S",
        help="look again every S seconds (60), and show each new verdict that two looks agree on",
    )
    _job(parser)
    parser.add_argument(
        "--from",
        dest="folder",
        metavar="DIR",
        help="judge a job that has ended, by its flight-recorder dumps, error.json files and logs",
    )


def diverge_arguments(parser: ArgumentParser) -> None:
    parser.usage = (
        "dap-mux diverge A [B] [--tolerance X|FOLDER] [--json]\n"
        "       dap-mux diverge [A] [--locate] [--step FILE:LINE] [--equal EXPR] "
        "[--tolerance X|FOLDER]\n"
        "                       [--json] -- LAUNCHER [ARGS...]"
    )
    parser.epilog = DIVERGE_NOTES
    parser.add_argument(
        "traces",
        nargs="*",
        metavar="FOLDER",
        help="a trace of `run --comm hash --comm-file FOLDER`; with two, or with a launcher, the "
        "runs are compared, else the ranks of one",
    )
    flag(parser, "--locate", "record each operation of torch, which names the line, and is slow")
    parser.add_argument(
        "--step",
        metavar="FILE:LINE",
        default="",
        help="a step ends where this line is reached (default: where an optimizer's does)",
    )
    parser.add_argument(
        "--equal",
        metavar="EXPR",
        action="append",
        default=[],
        help="an expression, equal in all ranks after each step, in the function that ends it",
    )
    parser.add_argument(
        "--tolerance",
        metavar="X|FOLDER",
        help="compare values, up to a relative difference or to that of the first run to this one "
        "(default: bitwise; by dtype where the runs have other numbers of ranks)",
    )


def doctor_arguments(parser: ArgumentParser) -> None:
    parser.usage = (
        "dap-mux doctor [SESSION|ENDPOINT...] [--file FILE:LINE] [--python COMMAND] [--json]"
    )
    parser.epilog = DOCTOR_NOTES
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help="a session, endpoints as for `attach`, or pid:NUMBER (default: your running sessions "
        "and .vscode/launch.json in this folder)",
    )
    parser.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="FILE:LINE",
        help="explain why a breakpoint there is not hit",
    )
    parser.add_argument(
        "--python",
        dest="pythons",
        action="append",
        default=[],
        metavar="COMMAND",
        help="check debugpy in this Python: a path, or 'kubectl exec POD -- python'",
    )
