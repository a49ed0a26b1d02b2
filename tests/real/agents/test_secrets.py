"""What an agent gets to see of secrets in a job's values, environment, output and source."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.real.agents.agent import Agent, in_memory
from tests.support.clients.jobs import serving
from tests.support.planted_secrets import PLANTED, planted
from tests.support.processes.commands import User

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
NAMES: Final = 20
PIECE: Final = 1500
END: Final = """
def held():
    text = " | ".join(every)
    print("all planted", flush=True)
    return text

held()
raise RuntimeError(every[-1])
"""


def job() -> str:
    """A program with a secret in each of many variables, and all of them elsewhere too."""
    texts = [text for text, _ in planted(PLANTED)]
    lines = ["import os", "every = ["]
    lines += [*(f"    {text!r}," for text in texts), "]"]
    for number, text in enumerate(texts):
        lines.append(f"v{number} = {text!r}")
        lines.append(f"os.environ['V{number}'] = v{number}")
        lines.append(f"print(v{number})")
    return "\n".join(lines) + END


async def everything(agent: Agent, path: str) -> list[dict[str, Any]]:
    """Ask all tools that show something of the job for all that they have."""
    found = []
    for first in range(0, PLANTED, NAMES):
        names = [f"v{number}" for number in range(first, first + NAMES)]
        found += [await agent.does("values", names=names, length=at) for at in (1000, 12, 30)]
    wholes = ("every", "dict(os.environ)", "locals()", "'\\n'.join(every)")
    expressions = (*wholes, *(f"every[{number}]" for number in range(0, PLANTED, 5)))
    found += [await agent.does("compare", expression=each) for each in expressions]
    for offset in range(1, 12_000, 997):
        values = {"names": [wholes[-1]], "offset": offset, "length": PIECE}
        found.append(await agent.does("values", **values))
    last, seen = 0, -1
    while last != seen:
        seen = last
        answer = await agent.does("output", since=last)
        last = max((line["n"] for line in answer["lines"]), default=last)
        found.append(answer)
    lines = range(1, 4 * PLANTED, 13)
    found += [await agent.does("source", path=path, line=line, around=7) for line in lines]
    found += [await agent.does(tool) for tool in ("status", "stacks", "wait_for_stop", "why")]
    return found


async def test_of_200_secrets_in_a_job_none_is_shown(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = user.script(job())
    await serving(user, path, n=1)
    secrets = [secret for _, secret in planted(PLANTED)]
    async with in_memory(user, monkeypatch) as agent:
        await agent.does("breakpoints", action="set", place="held")
        watch = ["v0", "every[:40]"]
        moved = await agent.does("go", action="continue", request_id="1", wait=25, watch=watch)
        assert moved["state"] == "stopped", moved
        answers = [moved, *await everything(agent, path)]
        answers.append(await agent.does("go", action="continue", request_id="2", wait=25))
        assert "exception" in answers[-1], answers[-1]
        answers.append(await agent.does("output", text="planted"))
    shown = "\n".join(json.dumps(answer, ensure_ascii=False) for answer in answers)
    assert shown.count("[redacted: ") > 5 * PLANTED
    leaked = [shown[(at := shown.find(one)) - 80 : at + 80] for one in secrets if one in shown]
    assert not leaked
    # Nor so much of one that the rest can be guessed.
    parts = [secret for secret in secrets if len(secret) >= 30 and secret[-20:] in shown]
    assert not parts


async def test_the_user_alone_can_have_them_shown(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    (secret,) = (secret for text, secret in planted(3) if text.startswith("ghp_"))
    program = f"import time\ndef step(token): time.sleep(0.01)\nwhile True: step('ghp_{secret}')\n"
    await serving(user, user.script(program), n=1)
    for shows in (True, False):
        async with in_memory(user, monkeypatch, show_secrets=shows) as agent:
            for tool in (await agent.client.list_tools()).tools:
                assert "secret" not in json.dumps(tool.input_schema)
            await agent.does("breakpoints", action="set", place="step")
            await agent.does("go", action="continue", request_id="1", wait=25, ranks="all")
            await agent.until("wait_for_stop", "state", "stopped")
            for answer in (
                await agent.does("compare", expression="'<' + token"),
                await agent.does("values", names=["'-'.join(['', token])"], offset=9),
                await agent.does("source", path=str(user.folder / "train.py"), line=3),
            ):
                assert (secret[8:] in json.dumps(answer)) == shows, answer
