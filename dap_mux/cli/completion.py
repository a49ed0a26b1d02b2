"""`dap-mux --print-completion SHELL`: completions of our commands and options for a shell."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from typing import Any

SHELLS = ("bash", "zsh", "fish")
FILE_METAVARS = frozenset({"FILE", "FOLDER", "DIR", "SCRIPT ..."})
COMPLETE_FILES = {
    "bash": "_shtab_compgen_files",
    "zsh": "_files",
    "fish": "(__fish_complete_path (commandline -ct))",
}


class PrintCompletion(Action):
    """Print the completion script for one shell, generated from the parsers, and exit."""

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
    """Complete file names for the arguments that are files."""
    for action in parser._actions:  # noqa: SLF001  (argparse has no public way)
        if action.metavar in FILE_METAVARS:
            vars(action)["complete"] = COMPLETE_FILES
