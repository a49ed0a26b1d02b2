"""docs/editors.md is true: what it configures for nvim-dap and dape attaches to real ranks."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.session.attach_attributes import attach_endpoints
from dap_mux.session.launch_attributes import launch_job
from dap_mux.system.config import Config
from tests.lsp.test_neovim import NVIM
from tests.support.clients.live_editor import live
from tests.support.editors import DapeModel, Editor, NvimDapModel
from tests.support.processes.commands import User, line_of
from tests.support.processes.run_command import run_words

pytestmark = [pytest.mark.real, pytest.mark.slow]

ROOT: Final = Path(__file__).resolve().parents[3]
PAGE: Final = (ROOT / "docs/editors.md").read_text("utf-8")
READER: Final = Path(__file__).with_name("read_init_lua.lua")
PORT: Final = 5677
ADAPTER: Final = ["dap-mux", "adapter"]
COUNT: Final = """\
for number in range(3):
    square = number * number  # here
print(square)
"""
Json = dict[str, Any]


def block(language: str) -> str:
    """The one code block of the page in this language."""
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture
def nvim_dap(tmp_path: Path) -> list[Json]:
    """The configurations of the Lua lines with their adapters, as a real Neovim reads them."""
    if NVIM is None:
        pytest.skip("no Neovim: run tests/lsp/install-neovim")
    init = tmp_path / "init.lua"
    init.write_text(block("lua"), "utf-8")
    words = [NVIM, "--clean", "-l", str(READER), str(init)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30)
    given: list[Json] = json.loads(done.stdout)
    return given


def dape() -> dict[str, Json]:
    """The configurations of the Emacs Lisp lines, by name."""
    tokens = iter(re.findall(r'"[^"]*"|[()\[\]]|[^\s()\[\]"]+', block("elisp").replace("'", "")))
    assert next(tokens) == "("
    _, _, *additions = read(tokens)
    return {config[0]: plist(config[1:]) for _, _, config in additions}


def read(tokens: Iterator[str]) -> list[Any]:
    """A list or vector, of which the opening bracket has been read."""
    items: list[Any] = []
    for token in tokens:
        if token in "([":
            items.append(read(tokens))
        elif token in ")]":
            return items
        elif token.startswith('"'):
            items.append(token.strip('"'))
        else:
            items.append(int(token) if token.isdigit() else token)
    raise AssertionError("a bracket is not closed")


def plist(items: list[Any]) -> Json:
    """A property list as a dictionary."""
    return dict(zip(items[::2], items[1::2], strict=True))


def sent_by_dape(config: Json, folder: str) -> Json:
    """What dape sends of a configuration: the keywords, functions called and plists as objects."""
    sent = {key[1:]: value for key, value in config.items() if key.startswith(":")}
    functions = {"dape-cwd": folder, "dape-buffer-default": "train.py"}
    sent = {
        key: functions.get(value, value) if isinstance(value, str) else value
        for key, value in sent.items()
    }
    if "pathMappings" in sent:
        sent["pathMappings"] = [
            {key[1:]: value for key, value in plist(entry).items()}
            for entry in sent["pathMappings"]
        ]
    return sent


async def attaches(user: User, model: Editor, attributes: Json) -> None:
    """The editor stops both ranks at its breakpoint and lets them run on to their end."""
    [(path, [here])] = model.breakpoints.items()
    run = await user.start(*run_words(path, n=2))
    session = await run.session()
    async with live(model, session["port"], attributes) as editor:
        both = [("rank 0", "stopped"), ("rank 1", "stopped")]
        await editor.until(lambda: list(editor.model.threads.values()) == both, "a stop of both")
        await editor.until(lambda: editor.model.arrow, "the line")
        assert editor.model.arrow is not None
        assert editor.model.arrow[1] == here
    assert (await run.ends()).code == 0


async def test_nvim_dap_joins_a_session(user: User, nvim_dap: list[Json]) -> None:
    join = nvim_dap[0]
    assert join["adapter"] == {"type": "server", "host": "127.0.0.1", "port": PORT}
    path = user.script(COUNT)
    text = json.dumps(join["configuration"]).replace("${workspaceFolder}", str(user.folder))
    await attaches(user, NvimDapModel({path: [line_of(path, "here")]}), json.loads(text))


def test_nvim_dap_lets_the_adapter_do_the_rest(nvim_dap: list[Json], tmp_path: Path) -> None:
    _, attach, launch = nvim_dap
    for given in (attach, launch):
        adapter = given["adapter"]
        assert [adapter["command"], *adapter["args"]] == ADAPTER
        assert adapter["type"] == "executable"
    assert attach_endpoints(attach["configuration"]) == ["localhost:5678+4"]
    program = tmp_path / "train.py"
    program.touch()
    job = launch_job(Config.load(), {**launch["configuration"], "program": str(program)})
    assert job.world_size == 4


async def test_dape_joins_a_session(user: User) -> None:
    config = dape()["dap-mux"]
    assert (config["host"], config["port"]) == ("localhost", PORT)
    path = user.script(COUNT)
    attributes = sent_by_dape(config, str(user.folder))
    assert attributes["request"] == "attach"
    await attaches(user, DapeModel({path: [line_of(path, "here")]}), attributes)


def test_dape_lets_the_adapter_launch(tmp_path: Path) -> None:
    config = dape()["dap-mux-launch"]
    assert [config["command"], *config["command-args"]] == ADAPTER
    (tmp_path / "train.py").touch()
    assert launch_job(Config.load(), sent_by_dape(config, str(tmp_path))).world_size == 4
