"""The walkthrough of docs/openshift.md: its commands, a real port-forward, one session for four."""

from __future__ import annotations

import signal
from typing import Any

from dap_mux.client import DapClient
from tests.launchers.kube_scene import IN_PODS
from tests.launchers.launching import cast, control
from tests.launchers.pod import AFTER, CUDA, GPU, LIMIT, MATMUL, SCRIPT, walkthrough
from tests.real.driving import joined
from tests.support.processes.commands import User, bodies, listed

pytestmark = IN_PODS
Json = dict[str, Any]


async def test_the_walkthrough_with_four_ranks_in_one_session(user: User) -> None:
    async with walkthrough(user) as pod, pod.ranks() as ranks:
        path = str(pod.workspace / SCRIPT)
        attach = await user.start(*pod.attach)
        lines = [{"line": line} for line in (CUDA, GPU, MATMUL)]
        workspace = {"workspaceFolder": str(user.folder), "justMyCode": False}
        attributes = {**workspace, "pathMappings": pod.mappings}
        client = await joined(attach, {path: lines}, attach=attributes)
        await stand(client, [CUDA] * 4)

        await set_breakpoints(client, path, {GPU: {"condition": "ranks(1,3): i == 2"}, MATMUL: {}})
        await move(client, "continue")
        await stand(client, [MATMUL, GPU, MATMUL, GPU])
        assert await value(client, 3, "i, device_name") == "(2, 'CPU')"

        logpoint = {"logMessage": "rank {rank}, GPU {i}: {device_name}"}
        await set_breakpoints(client, path, {GPU: logpoint, MATMUL: {}})
        await cast(client, "ranks(1,3)", "continue")
        await stand(client, [MATMUL] * 4)
        wanted = {f"[{rank}] rank {rank}, GPU 3: CPU" for rank in (1, 3)}
        await client.wait_for(lambda: wanted <= said(client), timeout=LIMIT, what="log points")
        assert not any("rank 1, GPU 2" in line for line in said(client))

        assert await value(client, 2, "x.shape") == "torch.Size([1000, 1000])"
        assert await value(client, 2, "x.is_cuda") == "False"
        assert await value(client, 2, "x.device", context="repl") == "device(type='cpu')"
        await move(client, "next")
        await stand(client, [AFTER] * 4)
        for rank in range(4):
            row = ", ".join([f"{1000 * (rank + 1)}."] * 5)
            assert await value(client, rank, "z[0, 0:5]") == f"tensor([{row}])"
        inside = await unfolded(client, 0, "z")
        assert inside["shape"] == "torch.Size([1000, 1000])"
        assert (inside["device"], inside["dtype"]) == ("device(type='cpu')", "torch.float32")
        assert await cast(client, "all", "p z[0, 0].item()") == [
            (str(rank), f"{1000.0 * (rank + 1)}") for rank in range(4)
        ]
        await client.disconnect()
        await ranks.finished()
        attach.process.send_signal(signal.SIGINT)
        assert (await attach.ends(within=LIMIT)).code == 0


def said(client: DapClient) -> set[str]:
    """The lines in the debug console so far."""
    return {*"".join(body["output"] for body in bodies(client, "output")).splitlines()}


async def stand(client: DapClient, lines: list[int]) -> None:
    """Wait until the ranks are stopped at these lines."""
    await listed(client, "line", *lines, within=LIMIT)


async def set_breakpoints(client: DapClient, path: str, lines: dict[int, Json]) -> None:
    breakpoints = [{"line": line, **more} for line, more in lines.items()]
    arguments = {"source": {"path": path}, "breakpoints": breakpoints}
    answer = await client.request("setBreakpoints", arguments, timeout=LIMIT)
    assert all(one["verified"] for one in answer["breakpoints"]), answer


async def thread(client: DapClient, rank: int) -> int:
    """The row of a rank."""
    rows = (await client.request("threads", timeout=LIMIT))["threads"]
    (found,) = (row["id"] for row in rows if row["name"] == f"rank {rank}")
    return int(found)


async def move(client: DapClient, command: str) -> None:
    """A button of the toolbar, where rank 0 is looked at."""
    await control(client, command, {"threadId": await thread(client, 0)})


async def frame(client: DapClient, rank: int) -> int:
    """Click on the top frame of a rank."""
    arguments = {"threadId": await thread(client, rank), "levels": 1}
    (top,) = (await client.request("stackTrace", arguments, timeout=LIMIT))["stackFrames"]
    return int(top["id"])


async def value(client: DapClient, rank: int, expression: str, context: str = "watch") -> str:
    """What the panel Watch (or the debug console) shows."""
    arguments = {"expression": expression, "frameId": await frame(client, rank), "context": context}
    return str((await client.request("evaluate", arguments, timeout=LIMIT))["result"])


async def unfolded(client: DapClient, rank: int, name: str) -> dict[str, str]:
    """A local variable's children in the panel Variables."""
    top = await frame(client, rank)
    scopes = (await client.request("scopes", {"frameId": top}, timeout=LIMIT))["scopes"]
    reference = next(one["variablesReference"] for one in scopes if one["name"] == "Locals")
    rows = await children(client, reference)
    reference = next(one["variablesReference"] for one in rows if one["name"] == name)
    return {one["name"]: one["value"] for one in await children(client, reference)}


async def children(client: DapClient, reference: int) -> list[Json]:
    arguments = {"variablesReference": reference}
    return list((await client.request("variables", arguments, timeout=LIMIT))["variables"])
