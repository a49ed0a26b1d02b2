"""Adds the manual page and the completions of the shells, made from the parsers, to the wheel."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import shtab
from argparse_manpage.manpage import Manpage
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPLETIONS = {
    "bash": "share/bash-completion/completions/dap-mux",
    "fish": "share/fish/vendor_completions.d/dap-mux.fish",
    "zsh": "share/zsh/site-functions/_dap-mux",
}


class Documents(BuildHookInterface[Any]):
    """What `pip` and `pipx` put below `share/`, where `man` and the shells look for it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files, unless the wheel is for an editable install, which leaves them out."""
        if version != "standard":
            return
        sys.path.insert(0, self.root)
        from dap_mux.frontends.cli.entry import build_parser  # noqa: PLC0415  (found from here on)

        self.folder = tempfile.TemporaryDirectory()
        parser = build_parser()
        vars(parser)["_manpage"] = []  # sections of one's own, which there are none of
        texts = {each: shtab.complete(parser, each) for each in COMPLETIONS}
        places = {**COMPLETIONS, "manual": "share/man/man1/dap-mux.1"}
        texts["manual"] = str(Manpage(parser, format="pretty"))
        for name, text in texts.items():
            file = Path(self.folder.name, name)
            file.write_text(text, encoding="utf-8")
            build_data["shared_data"][str(file)] = places[name]
