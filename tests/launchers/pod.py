"""The pod of docs/openshift.md on our API server: its folder, its four ranks, the page's commands.

`oc` is not to be had; `kubectl` has the same command lines, and stands in for it.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.launchers.tools import command, environment
from tests.support.hosts.private_network import logged
from tests.support.kube_server import KubeServer, cluster, kube_server
from tests.support.processes.commands import User
from tests.support.processes.waiting import until

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs/openshift.md").read_text("utf-8")
SCRIPT: Final = "test_debug.py"
CUDA, GPU, MATMUL, AFTER = 11, 16, 20, 21  # lines, as the page has them
NAMESPACE, POD = "nccl-test", "ml-dev-env"
WAITING: Final = "Waiting for debugger to attach...\n"
LIMIT: Final = 90.0  # s; not a wait


def shown(language: str, begin: str = "") -> str:
    """The page's first block in this language that begins so."""
    found = re.search(rf"^ *```{language}\n({begin}.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"no block {begin}"
    return found[1]


@dataclass
class Pod:
    """`workspace` is the user's folder, `remote` the pod's, with the same file."""

    user: User
    server: KubeServer
    workspace: Path
    remote: Path

    @property
    def mappings(self) -> list[dict[str, str]]:
        """The page's `pathMappings`, with the pod's folder as it is here."""
        (entry,) = json.loads(shown("json"))["pathMappings"]
        assert entry == {"localRoot": "${workspaceFolder}/workspace", "remoteRoot": "/workspace"}
        return [{**entry, "remoteRoot": str(self.remote)}]

    @property
    def configuration(self) -> dict[str, Any]:
        """The page's launch configuration."""
        return {**json.loads(shown("json")), "pathMappings": self.mappings}

    @property
    def attach(self) -> list[str]:
        """The page's own words after `dap-mux`."""
        return shlex.split(shown("sh", "dap-mux"))[1:]

    @asynccontextmanager
    async def ranks(self) -> AsyncIterator[Ranks]:
        """Run the page's `oc exec` in another terminal, until all ranks wait."""
        words = [command("kubectl"), *shlex.split(shown("sh", "oc exec"))[1:]]
        python = f"env OMP_NUM_THREADS=1 {environment('torch') / 'python'} {self.remote}/"
        words[-1] = words[-1].replace("python /workspace/", python)
        assert SCRIPT in words[-1].partition(python)[2]
        log = self.remote / "terminal.log"
        process = await logged(log, *words, env=self.user.environ)
        try:
            ranks = Ranks(process, log)
            await until(ranks.wait_for_a_debugger, within=LIMIT, what="ranks that wait")
            yield ranks
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


@dataclass
class Ranks:
    """The four ranks, as their terminal shows them."""

    terminal: asyncio.subprocess.Process
    log: Path

    @property
    def output(self) -> str:
        """What the terminal shows."""
        return self.log.read_text("utf-8", "replace")

    def wait_for_a_debugger(self) -> bool:
        """Whether it shows what the page shows."""
        assert self.terminal.returncode is None, self.output
        return self.output.count(WAITING) == shown("text").count(WAITING) == 4

    async def finished(self) -> None:
        """They have run to their end, each with the right result."""
        code = await asyncio.wait_for(self.terminal.wait(), LIMIT)
        results = re.findall(r"Result: \(1000, 1000\) of ([1-9])000", self.output)
        assert (code, sorted(results)) == (0, [*"1234"]), self.output


@asynccontextmanager
async def walkthrough(user: User) -> AsyncIterator[Pod]:
    """A user whose kubectl leads to a cluster in which the page's pod runs."""
    command("kubectl")
    environment("torch")
    folder = user.folder.parent
    remote = folder / "pod" / "workspace"
    for place in (remote, user.folder / "workspace"):
        place.mkdir(parents=True)
        shutil.copy(ROOT / "examples/openshift" / SCRIPT, place)
    kubeconfig = folder / "kubeconfig"
    user.environ["KUBECONFIG"] = str(kubeconfig)
    with cluster(folder, NAMESPACE) as made:
        async with kube_server(made, kubeconfig) as server:
            made.add(POD, labels={}).runs()
            yield Pod(user, server, user.folder / "workspace", remote)
