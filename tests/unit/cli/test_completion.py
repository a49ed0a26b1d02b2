"""Shells complete our words: a real bash says what it would offer."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dap_mux.frontends.cli import main
from dap_mux.frontends.cli.commands import BY_NAME, SHELLS

ASK = """\
source {script}
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
COMP_LINE="${{COMP_WORDS[*]}}"
COMP_POINT=${{#COMP_LINE}}
$(complete -p dap-mux | sed -E 's/.*-F ([^ ]+) .*/\\1/')
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def script_for(shell: str) -> str:
    """What `completion` prints."""
    words = [sys.executable, "-m", "dap_mux", "completion", shell]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    path = tmp_path_factory.mktemp("bash") / "dap-mux.bash"
    path.write_text(script_for("bash"))
    return path


def offered(script: Path, words: str, folder: Path) -> set[str]:
    """What bash offers behind these words."""
    ask = ASK.format(script=script, words=words)
    done = subprocess.run(
        ["bash", "--norc", "-c", ask], cwd=folder, capture_output=True, text=True, check=True
    )
    return {line.strip() for line in done.stdout.splitlines() if line.strip()}


def test_commands(bash_script: Path, tmp_path: Path) -> None:
    assert offered(bash_script, "dap-mux ''", tmp_path) >= set(BY_NAME)
    assert offered(bash_script, "dap-mux co", tmp_path) == {
        "completion",
        "config",
        "console",
        "compare",
    }


def test_options_of_a_command(bash_script: Path, tmp_path: Path) -> None:
    assert offered(bash_script, "dap-mux console --s", tmp_path) == {"--serve"}
    assert {"--console", "--mesh", "--no-wait"} <= offered(bash_script, "dap-mux run -", tmp_path)
    assert offered(bash_script, "dap-mux cast --j", tmp_path) == {"--json"}


def test_files_for_what_is_a_file(bash_script: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    assert offered(bash_script, "dap-mux run tr", tmp_path) == {"train.py"}
    (tmp_path / "secret").touch()
    assert offered(bash_script, "dap-mux list --token-file se", tmp_path) == {"secret"}


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = script_for(shell)
    with pytest.raises(SystemExit):
        main(["--print-completion", shell])
    assert capsys.readouterr().out == script
    assert "dap-mux" in script
    assert "--serve" in script
