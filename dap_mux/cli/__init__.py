"""The command line: arguments in, an exit code out.

`commands` is the table of commands and their arguments, `parser` turns a command line into a
namespace, `entry` runs the command and turns errors into a message and an exit code. A command's
own module (`session_commands`, `console`, `cast`, `list_ranks`, `sessions`, `config_show`, ...) is
imported when it runs, because `dap-mux adapter` must start in the time an editor allows; `start`
makes imports cheaper. `join` is how one-shot commands and consoles join a session; `parser` also
generates completions for shells; `table` prints columns safely.
"""

from __future__ import annotations

from collections.abc import Sequence

from dap_mux.cli.start import without_collections, without_typing_extensions


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (by default the process's own) and return its exit code."""
    with without_collections(), without_typing_extensions():
        from dap_mux.cli import entry
    return entry.main(arguments)
