"""Adds the manual page, the completions of the shells and the schema of options to the wheel."""

from __future__ import annotations

import json
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
ELSE = {
    "manual": "share/man/man1/dap-mux.1",
    "schema": "share/dap-mux/config.schema.json",  # for editors of TOML
}


class Documents(BuildHookInterface[Any]):
    """What `pip` and `pipx` put below `share/`, where `man` and the shells look for it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files, unless the wheel is for an editable install, which leaves them out."""
        if version != "standard":
            return
        sys.path.insert(0, self.root)
        # Both are found from here on.
        from dap_mux.frontends.cli.entry import build_parser  # noqa: PLC0415
        from dap_mux.system.config.options import schema  # noqa: PLC0415

        self.folder = tempfile.TemporaryDirectory()
        parser = build_parser()
        vars(parser)["_manpage"] = []  # sections of one's own, which there are none of
        texts = {each: shtab.complete(parser, each) for each in COMPLETIONS}
        texts["manual"] = str(Manpage(parser, format="pretty"))
        texts["schema"] = json.dumps(schema(), indent=2) + "\n"
        places = {**COMPLETIONS, **ELSE}
        for name, text in texts.items():
            file = Path(self.folder.name, name)
            file.write_text(text, encoding="utf-8")
            build_data["shared_data"][str(file)] = places[name]
