"""The table of commands and their arguments; scripts rely on these names."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, _ActionsContainer
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from dap_mux.frontends.cli.job_arguments import (
    SESSION,
    flag,
    record_arguments,
    replay_arguments,
    run_arguments,
    save_arguments,
    words,
)
from dap_mux.frontends.cli.look_arguments import (
    cast_arguments,
    compare_arguments,
    diverge_arguments,
    doctor_arguments,
    stacks_arguments,
    why_arguments,
)
from dap_mux.system.config import OPTIONS, Option

SOURCES = "{sources}"
"""In help, what `parser.name_sources` puts in its place: to import all sources takes a while."""
SHELLS = ("bash", "zsh", "fish")
PRINTS_JSON = frozenset(
    {"cast", "compare", "diverge", "doctor", "list", "sessions", "stacks", "why"}
)
OPTIONS_OF = {"open": "attach", "rerun": "attach", "record": "run", "replay": "run", "save": "list"}
"""Another command whose options one takes."""


class Command(Struct, frozen=True):
    """One command. `arguments` adds those of its own; `call` is `module:function` in this package.

    `failure` is the exit code for failures that have no code of their own; `examples` are command
    lines without the program's name, shown by `--help`.
    """

    name: str
    help: str
    call: str
    arguments: Callable[[ArgumentParser], None] = lambda parser: None
    failure: int = 1
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


def _attach(parser: ArgumentParser) -> None:
    parser.add_argument(
        "endpoints",
        nargs="+",
        metavar="ENDPOINT",
        help="HOST:PORT, HOST:FIRST-LAST, HOST:FIRST+COUNT or @ranks.json; "
        f"{SOURCES} or dial:COUNT; or GROUP=ENDPOINT",
    )
    flag(parser, "--console", "open a console here")


def _open(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a report that `dap-mux record` has written")
    flag(parser, "--console", "open a console here")


def _rerun(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="the task's key, as the driver's error names it")
    parser.add_argument(
        "endpoint", metavar="ENDPOINT", help="its cluster, dask:tcp://HOST:8786 for example"
    )


def _list(parser: ArgumentParser) -> None:
    parser.usage = "dap-mux list [SESSION] [classes|full] [RANKS] [OPTIONS]"
    words(
        parser,
        "*",
        "a rank set such as 0-3 or stopped; `classes` for one row for all ranks "
        "at the same place, `full` for one row for each rank (default: classes above 32 ranks)",
    )


def _console(parser: ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION", help=SESSION)
    parser.add_argument(
        "--serve", metavar="[HOST:]PORT", help="serve plain consoles for `nc` on this loopback port"
    )
    parser.add_argument("-x", dest="script", metavar="FILE", help="run the commands in FILE first")


def _lsp(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Speaks the Language Server Protocol on stdin and stdout; see docs/language-server.md."
    )
    parser.add_argument(
        "--session",
        metavar="SESSION",
        help="HOST:PORT or a session file (default: the newest running session)",
    )


def _mcp(parser: ArgumentParser) -> None:
    parser.epilog = "Speaks the Model Context Protocol on stdin and stdout; see docs/agents.md."
    parser.add_argument(
        "--session", metavar="SESSION", help="the session to use where a call names none"
    )
    parser.add_argument(
        "--http",
        nargs="?",
        const="0",
        metavar="PORT",
        help="serve HTTP on this port of loopback instead, with the token (default: any free port)",
    )
    parser.add_argument(
        "--lease-timeout",
        default="300",
        metavar="S",
        help="over HTTP an agent drives no longer S seconds after its last call (300)",
    )
    parser.add_argument(
        "--install-skill",
        nargs="?",
        const=Path(".claude/skills"),
        type=Path,
        metavar="DIR",
        help="write DIR/dap-mux/SKILL.md, which tells an agent how to debug a job, and end "
        "(default: .claude/skills)",
    )


def _config(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser(
        "show", help="show each option, its value and where it was set", allow_abbrev=False
    )
    _json(show)
    _options(show)
    actions.add_parser("schema", help="print the JSON schema of the configuration files")


def add_arguments(parser: ArgumentParser, command: Command) -> None:
    """Add what a command takes: its own arguments, `--json`, and its flags of the options."""
    command.arguments(parser)
    if command.name in PRINTS_JSON:
        _json(parser)
    _options(parser, OPTIONS_OF.get(command.name, command.name))


def _json(parser: ArgumentParser) -> None:
    flag(parser, "--json", "print JSON")


def _options(parser: ArgumentParser, command: str | None = None) -> None:
    """Add this command's flags from the option table; all of them for None."""
    group = parser.add_argument_group("session options")
    for option in OPTIONS:
        if command is None or command in option.commands:
            _option(parser if option.name == "verbosity" else group, option)


def _option(group: _ActionsContainer, option: Option) -> None:
    default = "" if option.default is None else f" ({option.kind.show(option.default)})"
    if option.name == "verbosity":
        group.add_argument("-v", dest=option.name, action="count", help=option.help)
    elif isinstance(option.default, bool):
        group.add_argument(
            option.flag, dest=option.name, action=BooleanOptionalAction, help=option.help
        )
    else:
        group.add_argument(
            option.flag, dest=option.name, metavar=option.kind.metavar, help=option.help + default
        )


def _help(parser: ArgumentParser) -> None:
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="the command (default: all)")


def _completion(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


COMMANDS: tuple[Command, ...] = (
    Command(
        "run",
        "start ranks on this machine and debug them",
        "session_commands:run",
        run_arguments,
        failure=125,
        examples=(
            "run -n 4 train.py --epochs 3",
            "run --console -n 4 -m package.train",
            "run -- torchrun --nproc-per-node 4 train.py",
        ),
    ),
    Command(
        "attach",
        "debug ranks that are already running",
        "session_commands:attach",
        _attach,
        examples=("attach node1:5678+4 node2:5678+4", "attach ssh:node1+4", "attach pid:4711"),
    ),
    Command(
        "rerun",
        "run a task of a Dask cluster again here, with its inputs",
        "session_commands:rerun",
        _rerun,
        failure=125,
        examples=("rerun load-7f3a dask:tcp://localhost:8786",),
    ),
    Command(
        "open",
        "debug a recording: a report of a job that has ended",
        "open_report:main",
        _open,
        examples=("open report.dapmux", "open report.dapmux --console"),
    ),
    Command(
        "replay",
        "run one rank of a job that has ended, alone, with what it received",
        "session_commands:replay",
        replay_arguments,
        failure=125,
        examples=(
            "replay taken.rank",
            "replay taken.rank --console",
            "replay taken.rank -- train.py",
        ),
    ),
    Command(
        "record",
        "run a launcher's job unattended, and keep what its ranks do in a report",
        "record:record",
        record_arguments,
        failure=125,
        examples=(
            "record --on-exception --on-hang 60s -- torchrun --nproc-per-node 4 train.py",
            "record --break train.py:31 --compare loss -- mpirun -n 4 python train.py",
            "record --plan record.toml -- srun train.py",
        ),
    ),
    Command(
        "save",
        "save what a session shows now as a report",
        "record:save",
        save_arguments,
        examples=("save", "save now.dapmux --session localhost:5677"),
    ),
    Command(
        "adapter",
        "speak DAP on stdin and stdout, for an editor",
        "session_commands:adapter",
        examples=("adapter",),
    ),
    Command(
        "sessions",
        "list your running sessions on this machine",
        "listings:sessions",
        examples=("sessions", "sessions --json"),
    ),
    Command(
        "list",
        "list the ranks of a session, and where each one is",
        "listings:ranks",
        _list,
        aliases=("ls",),
        examples=("list", "list classes", "list localhost:5677 0-3"),
    ),
    Command(
        "config",
        "show the effective options",
        "listings:config",
        _config,
        examples=("config show", "config show --json", "config schema"),
    ),
    Command(
        "console",
        "open a terminal console for a session",
        "console:main",
        _console,
        examples=("console", "console localhost:5677", "console --serve 6000"),
    ),
    Command(
        "cast",
        "send a command to many ranks",
        "listings:cast",
        cast_arguments,
        examples=("cast 0-3 p loss", 'cast "ranks(tp=0)" n', "cast stopped bt --json"),
    ),
    Command(
        "compare",
        "compare an expression across ranks",
        "listings:compare",
        compare_arguments,
        examples=("compare loss", "compare loss --tolerance 1e-3", "compare step --ranks 0-3"),
    ),
    Command(
        "stacks",
        "show all ranks' stacks as one tree",
        "listings:stacks",
        stacks_arguments,
        examples=("stacks", "stacks 0-3 --threads all", "stacks pid:4711"),
    ),
    Command(
        "why",
        "say why the job does not move on",
        "why:main",
        why_arguments,
        examples=("why", "why pid:4711", "why --from /tmp/traces"),
    ),
    Command(
        "diverge",
        "say which number is the first that differs between ranks, or between two runs",
        "diverge:main",
        diverge_arguments,
        examples=(
            "diverge a.trace",
            "diverge a.trace b.trace",
            "diverge --locate -- torchrun --nproc-per-node 4 train.py",
        ),
    ),
    Command(
        "lsp",
        "language server for editors: ranks and values in the text",
        "lsp:main",
        _lsp,
        examples=("lsp", "lsp --session localhost:5677"),
    ),
    Command(
        "mcp",
        "tools for a coding agent, on stdin and stdout",
        "mcp:main",
        _mcp,
        examples=("mcp", "mcp --session localhost:5677", "mcp --http 5680", "mcp --install-skill"),
    ),
    Command(
        "doctor",
        "diagnose why something does not work",
        "doctor:main",
        doctor_arguments,
        examples=("doctor", "doctor pid:4711", "doctor --file train.py:31"),
    ),
    Command(
        "completion",
        "print a completion script for a shell",
        "entry:completion",
        _completion,
        examples=("completion bash", "completion zsh", "completion fish"),
    ),
    Command("help", "show the help of a command", "entry:explain", _help, examples=("help run",)),
)
BY_NAME = {name: each for each in COMMANDS for name in (each.name, *each.aliases)}
