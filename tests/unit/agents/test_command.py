"""`dap-mux mcp` as a command: what its page says, and what others do not import."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from dap_mux.frontends.cli.mcp import CommandLine
from dap_mux.frontends.mcp.server import make_server
from dap_mux.system.config import Config

ROOT: Final = Path(__file__).resolve().parents[3]
WITHOUT: Final = "session_commands console join lsp why listings"


def test_nothing_else_imports_it() -> None:
    modules = ["session.adapter", "session.attach", "session.launcher_job", "session.local_job"]
    modules += [f"frontends.cli.{name}" for name in WITHOUT.split()]
    code = "".join(f"import dap_mux.{name}\n" for name in modules)
    code += "import sys\nprint(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"mcp", "pydantic", "starlette", "uvicorn", "httpx2"}.isdisjoint(done.stdout.split())


async def test_the_table_of_tools_is_the_code() -> None:
    server = make_server(CommandLine(Config.load({}, {}, cwd=ROOT, home=None)))
    page = (ROOT / "docs/agents.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (yes|no) \|", page, re.MULTILINE)
    tools = await server.list_tools()
    hints = {True: "no", False: "yes"}
    assert rows == [
        (tool.name, hints[bool(tool.annotations and tool.annotations.read_only_hint)])
        for tool in tools
    ]
    assert all(len(tool.description or "") < 700 for tool in tools)
    said = re.sub(r"<!-- The score.*?<!-- The end of the score", "", page, flags=re.DOTALL)
    assert len(said.split()) <= 900
