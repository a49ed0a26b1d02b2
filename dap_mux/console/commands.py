"""The console's commands: Monarch's words and short forms, and our own."""

from __future__ import annotations

from typing import Final

from dap_mux.console import driving, looking, waiting
from dap_mux.console.words import Command

COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "list",
        "list [classes|full] [RANKS]",
        "where ranks are: stopped ones, or RANKS such as all",
        looking.list_,
        ("l",),
    ),
    Command(
        "attach",
        "attach [NAME] RANK",
        "a prompt on that rank, for pdb's commands",
        driving.attach,
        ("a",),
    ),
    Command("detach", "detach", "come back from there", driving.detach),
    Command(
        "cast",
        "cast [NAME] RANKS COMMAND",
        "pdb's command, or an expression, to many ranks",
        driving.cast,
    ),
    Command(
        "compare",
        "compare [RANKS] EXPRESSION [within 5%]",
        "who has another value",
        looking.compare,
    ),
    Command(
        "break",
        "break FILE:LINE [, CONDITION]",
        "stop there; 'ranks(0:4): loss > 3' is a condition",
        driving.break_,
        ("b",),
    ),
    Command("clear", "clear N|FILE:LINE|all", "take breakpoints away", driving.clear, ("cl",)),
    Command("pause", "pause [RANKS]", "stop ranks that run", driving.pause),
    Command(
        "wait",
        "wait [RANKS] [STATE] [SECONDS]",
        "until RANKS (all) are in STATE (stopped), for SECONDS (60) at most",
        waiting.wait,
    ),
    Command("focus", "focus RANK", "show every debugger that rank", looking.focus),
    Command("scope", "scope [auto|rank|class|all]", "what an editor's step acts on", looking.scope),
    Command("view", "view [auto|ranks|classes]", "how editors show ranks", looking.view),
    Command("groups", "groups [NAME RANKS]", "named sets of ranks, @NAME", looking.groups),
    Command("drop", "drop RANKS", "forget them; the others go on", driving.drop),
    Command("release", "release RANKS", "let them run on, without a debugger", driving.release),
    Command("continue", "continue", "release all ranks, and end", driving.continue_, ("c", "cont")),
    Command("quit", "quit", "leave; others may stay", driving.quit_, ("q", "exit")),
    Command("help", "help", "this", looking.help_, ("h", "?")),
)
