"""`dap-mux --print-completion SHELL`: what teaches a shell our commands and options."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from typing import Any

SHELLS = ("bash", "zsh", "fish")
FILES = frozenset({"FILE", "FOLDER", "DIR", "SCRIPT ..."})
COMPLETE = {
    "bash": "_shtab_compgen_files",
    "zsh": "_files",
    "fish": "(__fish_complete_path (commandline -ct))",
}


class PrintCompletion(Action):
    """Prints the script for one shell, made from the parsers themselves, and ends."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Print it."""
        import shtab

        print(shtab.complete(parser, shell=values))
        parser.exit()


def name_files(parser: ArgumentParser) -> None:
    """Let a shell offer files for the arguments that are files."""
    for action in parser._actions:  # noqa: SLF001  (argparse shows them nowhere else)
        if action.metavar in FILES:
            vars(action)["complete"] = COMPLETE
