"""`breakpoint()` in a rank whose program, or framework, has a hook of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from dap_mux.client import DapClient
from tests.real.ranks.agents import START_UP, Agent, Start, attach
from tests.real.ranks.programs import Python, listening, says, top_frame

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]

THEIRS = """\
import os, sys

def theirs(*arguments, **named):
    print("theirs", arguments, named, flush=True)
    return "from theirs"

"""
BEFORE = "sys.breakpointhook = theirs\nimport dap_mux\ndap_mux.listen(port=0)\n"
AFTER = "import dap_mux\ndap_mux.listen(port=0)\nsys.breakpointhook = theirs\n"
BODY = """\
assert sys.breakpointhook is theirs
print(breakpoint("unattended", say=True), flush=True)
dap_mux.wait_for_client()
def here():
    breakpoint()
    return 1  # stop

here()
while dap_mux.rank.api.debugpy.is_client_connected(): pass
breakpoint("alone again")
"""


@pytest.mark.quick
@pytest.mark.parametrize("setup", [BEFORE, AFTER], ids=["before", "after"])
async def test_a_hook_of_the_programs_is_called_where_no_debugger_is_attached(
    python: Python, setup: str
) -> None:
    agent = await listening(await python(THEIRS + setup + BODY))
    await says(agent, "theirs ('unattended',) {'say': True}\nfrom theirs\n")
    await stops_in_here(agent, THEIRS + setup + BODY)
    assert await agent.ends() == 0, agent.text()
    assert agent.text().endswith("theirs ('alone again',) {}\n")
    assert agent.text().count("theirs (") == 2


async def stops_in_here(agent: Agent, source: str) -> None:
    client = await attach(agent)
    name, line, _ = await top_frame(client)
    assert (name, line) == ("here", source.splitlines().index("    return 1  # stop") + 1)
    await leave(client)


async def leave(client: DapClient) -> None:
    await client.request("disconnect", timeout=START_UP)
    await client.close()


@pytest.mark.parametrize(
    ("value", "told"),
    [("hooks.theirs", ["theirs () {}", "end"]), ("0", ["end"]), ("dap_mux.settrace", ["end"])],
)
async def test_a_hook_that_the_variable_names_is_called_where_no_debugger_is_attached(
    start: Start, tmp_path: Path, value: str, told: list[str]
) -> None:
    (tmp_path / "hooks.py").write_text(THEIRS)
    (tmp_path / "script.py").write_text("breakpoint()\nprint('end')\n")
    agent = await start("--no-wait", "script.py", PYTHONBREAKPOINT=value)
    assert await agent.ends() == 0
    assert [line for line in agent.text().splitlines() if "dap-mux:" not in line] == told


async def test_a_launched_rank_stops_although_its_program_sets_a_hook(
    start: Start, tmp_path: Path
) -> None:
    source = THEIRS + "def here():\n    breakpoint()\n    return 1  # stop\n\n"
    source += "sys.breakpointhook = theirs\nhere()\n"
    (tmp_path / "script.py").write_text(source)
    agent = await start("script.py")
    await stops_in_here(agent, source)
    assert await agent.ends() == 0
    assert "theirs" not in agent.text()


async def test_a_forked_child_calls_the_programs_hook(python: Python) -> None:
    agent = await python(
        f"{THEIRS}{BEFORE}"
        "dap_mux.wait_for_client()\n"
        "if os.fork() == 0:\n"
        "    breakpoint('child')\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    client = await attach(await listening(agent))
    assert await agent.ends() == 0
    assert "theirs ('child',) {}\n" in agent.text()
    await client.close()


async def test_what_was_taken_is_given_back_and_taken_again(python: Python) -> None:
    agent = await python(
        "import builtins, sys\n"
        "usual = builtins.breakpoint, sys.breakpointhook\n"
        "import dap_mux\n"
        "for _ in range(2):\n"
        "    dap_mux.listen(port=0)\n"
        "    breakpoint()\n"
        "    dap_mux.rank.api.stop_listening()\n"
        "    assert usual == (builtins.breakpoint, sys.breakpointhook)\n"
        "print('end')\n"
    )
    assert await agent.ends() == 0, agent.text()
    assert agent.text().endswith("end\n")
