"""docs/doctor.md: every command of it is run, and every cause of ours is in its table."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from pathlib import Path
from typing import Final

import pytest

from dap_mux.frontends import doctor as package
from dap_mux.frontends.doctor.causes.processes import OLDEST_SUPPORTED
from tests.doctor.conftest import KEYS
from tests.support.processes.commands import User

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs/doctor.md").read_text("utf-8")
COMMANDS: Final = re.findall(r"^dap-mux (doctor.*?)(?:\s+#.*)?$", PAGE, re.MULTILINE)
# As the page has it; what it stands for on this machine.
HERE: Final = {
    ".venv/bin/python": sys.executable,
    "kubectl exec trainer-0 -- python": f"env -- {sys.executable}",
    "127.0.0.1:5677": "127.0.0.1:1",
    "127.0.0.1:5678-5681": "127.0.0.1:1-4",
    "pid:1234": "pid:999999999",
}


def test_the_page_shows_commands() -> None:
    assert len(COMMANDS) == 7


@pytest.mark.real
@pytest.mark.parametrize("command", COMMANDS)
async def test_every_command_runs(user: User, command: str) -> None:
    """On ports where nobody is."""
    words = [HERE.get(word, word) for word in shlex.split(command)]
    done = await user.does(*words)
    leads_nowhere = any(word.startswith(("127.", "pid:")) for word in words)
    assert (done.code, done.err) == (int(leads_nowhere), ""), done
    assert done.out.startswith("looked at: ")


def test_every_cause_is_in_the_table() -> None:
    """The names are stable: each is a constant, or stands with its `Finding`."""
    table = PAGE.partition("## The causes")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    shown = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert shown == set(causes())


def causes() -> list[str]:
    """What `Finding`s are called by, or the rows of `Reaching` that they are made of."""
    names = []
    folder = Path(package.__file__).parent / "causes"
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        values = {
            ast.unparse(target): ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        }
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        of_findings = [one for one in calls if ast.unparse(one.func) in ("Finding", "Reaching")]
        firsts = [one.args[0] for one in of_findings]
        names += [str(one.value) for one in firsts if isinstance(one, ast.Constant)]
        told = {ast.unparse(one) for one in firsts}
        told |= set(values) & {"MISSING", "DIFFERS"}  # chosen between as they are needed
        names += [values[name] for name in told if name in values]
    return names


def test_the_json_of_the_page_has_the_keys() -> None:
    shown = PAGE.partition("```json")[2].partition("```")[0]
    assert set(re.findall(r'^      "(\w+)":', shown, re.MULTILINE)) == KEYS


def test_the_oldest_debugpy_is_the_one_that_is_installed_at_least() -> None:
    assert f'"debugpy>={OLDEST_SUPPORTED}"' in (ROOT / "pyproject.toml").read_text("utf-8")
