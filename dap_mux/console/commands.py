"""The table of the console's commands: Monarch's names and short forms, and our own."""

from __future__ import annotations

from typing import Final

from dap_mux.console import control_commands, query_commands
from dap_mux.console.command import Command, help_text, no_arguments
from dap_mux.console.context import Context
from dap_mux.console.wait_command import wait

RANK_SETS: Final = """\
RANKS is 3, 0-3,7, ranks(1:10:2), ranks(dp=0, tp=1:3), all, stopped, running or @NAME; NAME 13 and
NAME ranks(...) select ranks of one group; combine sets with & | - ~ and parentheses."""


async def help_(console: Context, rest: str) -> None:
    """`help`."""
    no_arguments(rest, "help")
    console.screen.say(f"{help_text(COMMANDS)}\n\n{RANK_SETS}")


COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "list",
        "list [classes|full] [RANKS]",
        "show where ranks are (default: stopped ranks)",
        query_commands.list_,
        ("l",),
    ),
    Command(
        "attach",
        "attach [NAME] RANK",
        "open a pdb prompt on a rank",
        control_commands.attach,
        ("a",),
    ),
    Command("detach", "detach", "close the pdb prompt", control_commands.detach),
    Command(
        "cast",
        "cast [NAME] RANKS COMMAND",
        "run a pdb command or evaluate an expression on many ranks",
        control_commands.cast,
    ),
    Command(
        "compare",
        "compare [RANKS] EXPRESSION [within 5%]",
        "show which ranks have a different value",
        query_commands.compare,
    ),
    Command(
        "stacks",
        "stacks [RANKS]",
        "show where ranks are, as one tree; stops none",
        query_commands.stacks,
    ),
    Command(
        "why",
        "why [RANKS]",
        "say why the job does not move on; stops none",
        query_commands.why,
    ),
    Command(
        "break",
        "break FILE:LINE [, CONDITION]",
        "set a breakpoint; 'ranks(0:4): loss > 3' is a condition",
        control_commands.break_,
        ("b",),
    ),
    Command(
        "clear",
        "clear N|FILE:LINE|all",
        "remove breakpoints",
        control_commands.clear,
        ("cl",),
    ),
    Command("pause", "pause [RANKS]", "pause running ranks", control_commands.pause),
    Command(
        "wait",
        "wait [RANKS] [STATE] [SECONDS]",
        "wait until RANKS (all) are in STATE (stopped), at most SECONDS (60)",
        wait,
    ),
    Command("focus", "focus RANK", "show this rank in every debugger", query_commands.focus),
    Command(
        "scope",
        "scope [auto|rank|class|all]",
        "which ranks an editor's step applies to",
        query_commands.scope,
    ),
    Command("view", "view [auto|ranks|classes]", "how editors show ranks", query_commands.view),
    Command(
        "groups",
        "groups [NAME RANKS]",
        "list named rank sets, or define @NAME",
        query_commands.groups,
    ),
    Command("drop", "drop RANKS", "remove ranks from the session for good", control_commands.drop),
    Command(
        "release",
        "release RANKS",
        "let ranks run on without a debugger",
        control_commands.release,
    ),
    Command(
        "continue",
        "continue",
        "release all ranks and leave",
        control_commands.continue_,
        ("c", "cont"),
    ),
    Command(
        "quit",
        "quit",
        "leave; other debuggers stay connected",
        control_commands.quit_,
        ("q", "exit"),
    ),
    Command("help", "help", "show this help", help_, ("h", "?")),
)
