"""What the fake rank answers when it is asked about its files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from dap_mux.pure.remote import WORKING_FOLDER
from tests.support.fake_rank.injected_calls import injected_call

NO_FILE: Final = "Breakpoint in file that does not exist."


@dataclass
class FakeDisk:
    """`texts`: what files hold that tests care for; their digests are the texts themselves.

    Any other file is there and holds "same", unless it is `missing`. `loaded`: files that the
    program was started with (True) or has imported.
    """

    cwd: str = "/job"
    texts: dict[str, str] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    loaded: dict[str, bool] = field(default_factory=dict)

    def answer(self, expression: str) -> str | None:
        """The value of one of our expressions about files, None for any other."""
        if expression == WORKING_FOLDER:
            return self.cwd
        called = injected_call(expression)
        if called is None or called.module != "file_probe":
            return None
        if called.function == "read":
            return self._read(called.values[0])
        path, wanted, _ = called.values
        return self._look(path, wanted)

    def _digest(self, path: str) -> str:
        return "" if path in self.missing else self.texts.get(path, "same")

    def _look(self, path: str, wanted: str) -> str:
        digest = self._digest(path)
        name = path.rsplit("/", 1)[-1]
        near = [
            (other, self._digest(other), started)
            for other, started in self.loaded.items()
            if other.rsplit("/", 1)[-1] == name and other != path
        ]
        same = digest and wanted in ("", digest)
        return json.dumps({"digest": digest, "near": [] if same else near})

    def _read(self, path: str) -> str:
        if path in self.missing:
            return json.dumps({"problem": "No such file or directory"})
        return json.dumps({"text": self.texts.get(path, "same")})
