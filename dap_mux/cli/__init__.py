"""The command line: words in, an exit code out.

`commands` is the table of commands and what each takes, `parser` turns words into a namespace,
`entry` runs the command and turns errors into a sentence and an exit code. A command's own module
(`work`, `console`, `cast`, `list_ranks`, `sessions`, `config_show`) is imported when it runs,
because `dap-mux adapter` must start in the time an editor allows. `joining` is how a one-shot or a
console comes into a session; `entry_line` finds where a console's job stops first; `completion`
teaches shells our words; `table` prints columns safely.
"""

from __future__ import annotations

from dap_mux.cli.entry import main

__all__ = ["main"]
