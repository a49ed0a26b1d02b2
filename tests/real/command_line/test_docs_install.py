"""docs/install.md is true: each of its commands installs a dap-mux that debugs two ranks.

Each is typed in an environment that has nothing else, in a home of its own.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.combinations import rest
from tests.support.processes import package_index
from tests.support.processes.commands import clean_environment

pytestmark = [
    pytest.mark.real,
    pytest.mark.heavy,
    pytest.mark.long,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]
ROOT: Final = Path(__file__).resolve().parents[3]
SECTION: Final = (
    (ROOT / "docs/install.md").read_text("utf-8").partition("## dap-mux\n")[2].partition("\n## ")[0]
)
IN_CLONE: Final = re.findall(r"^\| `(.*?)` \|", SECTION, re.MULTILINE)
BLOCKS: Final = re.findall(r"^```sh\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
BUILD, *WITH_WHEEL = (
    shlex.join(shlex.split(line, comments=True)) for block in BLOCKS for line in block.splitlines()
)
COMMANDS: Final = [*IN_CLONE, *WITH_WHEEL]
PROGRAMS: Final = [command.split()[0] for command in COMMANDS]
SYSTEM: Final = "/usr/local/bin:/usr/bin:/bin"
LIMIT: Final = 120.0  # s; not a wait


@dataclass(frozen=True)
class Newcomer:
    """Somebody with a clone and these variables."""

    clone: Path
    environ: dict[str, str]

    def types(self, command: str) -> str:
        """Run it in the clone; return what it prints."""
        done = subprocess.run(
            command,
            shell=True,
            cwd=self.clone,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the source distribution, and build the wheel in it as the page says."""
    folder = tmp_path_factory.mktemp("clone")
    package_index.require(folder)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [archive] = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    unpacked = folder / archive.name.removesuffix(".tar.gz")
    environ = environment(folder / "builder")
    Newcomer(unpacked, environ).types(BUILD)
    return unpacked


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `pipx` and `uvx` are."""
    folder = tmp_path_factory.mktemp("tools")
    environ = environment(folder / "home")
    install = [str(folder / "home/venv/bin/pip"), "install", "--quiet", "pipx", "uv"]
    subprocess.run(install, env=environ, check=True)
    (folder / "bin").mkdir()
    for name in ("pipx", "uv", "uvx"):
        (folder / "bin" / name).symlink_to(folder / "home/venv/bin" / name)
    return folder / "bin"


@pytest.fixture
def newcomer(clone: Path, tools: Path, tmp_path: Path) -> Newcomer:
    """Nothing is installed yet; what `pip` installs goes into an environment, if there is one."""
    home = tmp_path / "home"
    environ = variables(home)
    environ["PATH"] = os.pathsep.join([f"{home}/.local/bin", environ["PATH"], str(tools)])
    return Newcomer(clone, environ)


def environment(home: Path) -> dict[str, str]:
    """Variables of a user with this home and with a new environment of Python."""
    subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
    return variables(home)


def variables(home: Path) -> dict[str, str]:
    """The variables of a user with this home."""
    return {
        **clean_environment(),
        **package_index.settings(),
        "PIP_NO_COMPILE": "1",  # a third of its work
        "HOME": str(home),
        "PATH": f"{home}/venv/bin{os.pathsep}{SYSTEM}",
        "DAP_MUX_LISTEN": "127.0.0.1:0",
    }


def test_the_page_has_commands_for_pip_pipx_and_uvx() -> None:
    for commands in (IN_CLONE, WITH_WHEEL):
        assert {command.split()[0] for command in commands} == {"pip", "pipx", "uvx"}


@pytest.mark.parametrize(
    "command",
    [
        command if PROGRAMS.index(program) == at and program != "pipx" else rest(command)
        for at, (program, command) in enumerate(zip(PROGRAMS, COMMANDS, strict=True))
    ],
)
def test_a_command_of_the_page_in_an_empty_environment(command: str, newcomer: Newcomer) -> None:
    if command.startswith("pip "):
        environment(Path(newcomer.environ["HOME"]))
    said = newcomer.types(command)
    if "dap-mux sessions" in command:  # it is run, and nothing is installed
        assert "you have no running session" in said
        return
    ranks = "dap-mux run -n 2 --no-wait examples/data_parallel.py --steps 1 --seconds 0"
    assert "rank 1 of 2 is done" in newcomer.types(ranks)
    if "[lsp]" in command:
        newcomer.types("dap-mux lsp")  # without input it ends at once, and well
