"""The pictures of the extension's page are inside of its package, where VS Code finds them."""

from __future__ import annotations

import base64
import re
import struct
import zipfile

import pytest

from tests.unit.test_docs import ROOT

PACKAGE = ROOT / "vscode-extension/dist/dap-mux.vsix"
SHOWN = re.compile(r"!\[[^\]]+\]\(([^)]+)\)")
EMBEDDED = "data:image/png;base64,"


def test_each_picture_of_the_page_is_a_real_one() -> None:
    """An extension's page shows no picture by a relative path."""
    if not PACKAGE.exists():
        pytest.skip("the extension is not packaged: run make vsix")
    with zipfile.ZipFile(PACKAGE) as package:
        page = package.read("extension/readme.md").decode("utf-8")
    shown = SHOWN.findall(page)
    assert len(shown) == len(
        SHOWN.findall((ROOT / "vscode-extension/README.md").read_text("utf-8"))
    )
    for picture in shown:
        assert picture.startswith(EMBEDDED), picture[:80]
        data = base64.b64decode(picture.removeprefix(EMBEDDED), validate=True)
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", data[16:24])
        assert width > 0
        assert height > 0
