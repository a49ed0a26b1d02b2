"""pathMappings with real debugpy: two hosts whose sources lie elsewhere, and not all the same."""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.engine import Settings, inputs
from dap_mux.engine.source_files import contents
from tests.real.driving import Driver
from tests.support.hosts.hosts import FarRank, Host, folders, namespaces, ranks_on, tools_present
from tests.support.hosts.private_network import possible
from tests.support.processes.commands import User, line_of, listed
from tests.support.session import Session, session

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]
LIMIT: Final = 30.0  # s; not a wait
PATIENT: Final = Settings(request_timeout=LIMIT, breakpoint_timeout=LIMIT)
Json = dict[str, Any]

TRAIN: Final = """\
import json
import sys
import time
from pathlib import Path

import lib
from site_of_the_host import remote


class Slow(json.JSONEncoder):
    def default(self, value):
        return 0  # encode


def step(number):
    json.dumps(object(), cls=Slow)
    remote(number)
    return lib.scale(number)  # step


number = 0
while not Path(sys.argv[1]).exists():
    number = step(number)
    time.sleep(0.01)
"""
LIB: Final = """\
def scale(number):
    return number + 1  # scale
"""
REMOTE: Final = """\
def remote(number):
    return -number  # remote
"""


class Project:
    """The user's files, and each host's: node2's copy of `lib.py` is edited."""

    def __init__(self, base: Path, hosts: list[Host]) -> None:
        self.base = base
        self.hosts = hosts
        self.home = base / "laptop" / "proj"
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "train.py").write_text(TRAIN)
        (self.home / "lib.py").write_text(LIB)
        self.train = str(self.home / "train.py")
        self.lib = str(self.home / "lib.py")
        self.roots = ["srv/proj", "data/x/proj"]
        for host, root in zip(hosts, self.roots, strict=True):
            shutil.copytree(self.home, host.folder / root)
            (host.folder / root / "site_of_the_host.py").write_text(REMOTE)
        (hosts[1].folder / self.roots[1] / "lib.py").write_text("# edited there\n" + LIB)

    @property
    def remote_roots(self) -> list[str]:
        """Where each host's ranks find the project."""
        return [str(h.seen / root) for h, root in zip(self.hosts, self.roots, strict=True)]

    @property
    def mappings(self) -> list[Json]:
        """What the user writes for both hosts."""
        return [
            {"localRoot": str(self.home), "remoteRoot": root, "hosts": [host.name]}
            for host, root in zip(self.hosts, self.remote_roots, strict=True)
        ]

    @asynccontextmanager
    async def job(self) -> AsyncIterator[tuple[Session, list[FarRank]]]:
        """Ranks 0-1 on node1 and 2-3 on node2, and a session over them."""
        go = str(self.base / "go")
        first, second = self.hosts
        async with (
            ranks_on([first], 2, f"{self.roots[0]}/train.py", go, folder=self.logs(1)) as near,
            ranks_on([second], 2, f"{self.roots[1]}/train.py", go, folder=self.logs(2)) as far,
            session(settings=PATIENT) as running,
        ):
            ranks = [*near, *far]
            for number, rank in enumerate(ranks):
                running.driver.feed(inputs.RankKnown(("job", number), rank.endpoint))
            yield running, ranks

    def hide_from_ranks(self) -> None:
        """Namespaces do that. In folders the user is elsewhere: nobody here has the files."""
        if not self.hosts[0].namespace:
            shutil.rmtree(self.home)

    def logs(self, number: int) -> Path:
        """A folder for what the ranks of a host say."""
        made = self.base / f"logs{number}"
        made.mkdir()
        return made


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack waits for the look at the client's disk, however long a busy machine takes for it."""
    monkeypatch.setattr(contents, "DISK_TIMEOUT_S", LIMIT)


FOLDERS: Final = pytest.param("folders", id="folders")
NAMESPACES: Final = pytest.param(
    "namespaces",
    id="namespaces",
    marks=[
        pytest.mark.slow,
        pytest.mark.skipif(
            not (possible() and tools_present()), reason="only root may have a network of its own"
        ),
    ],
)


@pytest.fixture(params=[FOLDERS, NAMESPACES])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Project]:
    if request.param == "folders":
        yield Project(tmp_path, folders(tmp_path))
        return
    with namespaces(tmp_path) as hosts:
        yield Project(tmp_path, hosts)


only_namespaces = pytest.mark.parametrize("project", [NAMESPACES], indirect=True)
only_folders = pytest.mark.parametrize("project", [FOLDERS], indirect=True)


async def set_lines(driver: Driver, path: str, *lines: int) -> list[Json]:
    arguments = {"source": {"path": path}, "breakpoints": [{"line": line} for line in lines]}
    body = await driver.client.request("setBreakpoints", arguments, timeout=LIMIT)
    return list(body["breakpoints"])


async def news(driver: Driver, told: Json, *words: str) -> Json:
    """Wait until one of our breakpoints has a message with all these words.

    Ranks that answer before the slowest has taken the breakpoint are in its answer already;
    each that answers later is told by an event of its own.
    """

    def complete(about: Json) -> bool:
        return all(each in about.get("message", "") for each in words)

    def wanted(body: Json) -> bool:
        about: Json = body["breakpoint"]
        return about["id"] == told["id"] and complete(about)

    if complete(told):
        return told
    event = await driver.client.wait_event("breakpoint", wanted, timeout=LIMIT)
    now: Json = event["breakpoint"]
    return now


async def globals_of(driver: Driver, rank: int) -> str:
    """The names in pydevd's own globals, which frameless evaluates share."""
    await driver.look(rank)
    return await driver.evaluate("sorted(globals())")


async def test_two_hosts_an_edited_copy_and_a_client_without_mappings(project: Project) -> None:
    """Breakpoints hit where files agree; the message names the ranks where they do not.

    debugpy keeps mappings where the next attach brings none: then paths are the ranks' own.
    """
    step = line_of(project.train, "step")
    theirs = [f"{root}/train.py" for root in project.remote_roots]
    async with project.job() as (running, _):
        driver = await Driver.attach(
            running, breakpoints={project.train: [step]}, pathMappings=project.mappings
        )
        entries = await driver.stopped(step, within=LIMIT)
        assert {entry["path"] for entry in entries} == {project.train}
        assert not driver.events("breakpoint"), "train.py is the same everywhere"
        before = await globals_of(driver, 2)
        line = line_of(project.lib, "scale")
        (told,) = await set_lines(driver, project.lib, line)
        assert told["verified"]
        there = f"{project.remote_roots[1]}/lib.py"
        told = await news(driver, told, "file differs on ranks 2-3")
        assert told["message"] == f"file differs on ranks 2-3 (node2): {there}"
        assert told["verified"]
        assert await globals_of(driver, 2) == before, "no name is left behind"
        await driver.control("stepIn")
        await driver.until(
            lambda entries: [e["path"] for e in entries] == [project.lib] * 4, within=LIMIT
        )
        await driver.leave()
        second = await Driver.attach(running, breakpoints={path: [step] for path in theirs})
        entries = await second.stopped(step, within=LIMIT)
        assert [entry["path"] for entry in entries] == [theirs[0]] * 2 + [theirs[1]] * 2
        await second.leave()


async def test_a_proposed_mapping_works_when_pasted(project: Project) -> None:
    """Without mappings no rank has the file; what would fit is named, for each host its own."""
    step = line_of(project.train, "step")
    project.hide_from_ranks()
    async with project.job() as (running, _):
        driver = await (await Driver.attach(running)).live(4, within=LIMIT)
        (told,) = await set_lines(driver, project.train, step)
        assert not told["verified"]
        assert told["message"].startswith("file missing on ranks 0-3 (node1, node2): ")
        told = await news(driver, told, '["node1"]', '["node2"]')
        proposed = [json.loads(each) for each in re.findall(r"add (\{.*?\}) to", told["message"])]
        assert [each["hosts"] for each in proposed] == [["node1"], ["node2"]]
        assert project.train.startswith(proposed[0]["localRoot"])
        await driver.leave()
        again = await Driver.attach(
            running, breakpoints={project.train: [step]}, pathMappings=proposed
        )
        entries = await again.stopped(step, within=LIMIT)
        assert {entry["path"] for entry in entries} == {project.train}
        await again.leave()


@only_namespaces
async def test_a_file_that_only_a_host_has(project: Project) -> None:
    """It opens through `source`, also once the rank runs on; what the user has stays a file."""
    remote = str(project.hosts[0].seen / project.roots[0] / "site_of_the_host.py")
    async with project.job() as (running, _):
        driver = await Driver.attach(
            running,
            breakpoints={project.train: [line_of(project.train, "encode")]},
            pathMappings=project.mappings,
        )
        await driver.stopped(line_of(project.train, "encode"), within=LIMIT)
        frames = await driver.frames(0)
        modules = {Path(frame["source"]["path"]).parent.name for frame in frames}
        assert modules == {"proj", "json"}, "the standard library is here too, at the same place"
        assert {frame["source"]["sourceReference"] for frame in frames} == {0}

        await set_lines(driver, project.train)
        await set_lines(driver, remote, 2)
        await driver.look(0)
        await driver.control("continue")
        await driver.until(
            lambda entries: [e["line"] for e in entries[:2]] == [2, 2],
            within=LIMIT,
            what="the remote file on its host",
        )
        (source,) = (f["source"] for f in await driver.frames(0, levels=1))
        assert source["path"] == str(project.home / "site_of_the_host.py")
        number = source["sourceReference"]
        assert number > 0
        await set_lines(driver, remote)
        await driver.go_on()
        await driver.states(*["running"] * 4, within=LIMIT)
        asked = {"source": source, "sourceReference": number}
        body = await driver.client.request("source", asked, timeout=LIMIT)
        assert body["content"] == REMOTE
        await driver.leave()


@only_folders
async def test_a_dot_is_where_each_rank_runs(project: Project) -> None:
    """Each host's ranks run in their own project folder: one mapping fits all."""
    step = line_of(project.train, "step")
    here = [{"localRoot": str(project.home), "remoteRoot": "."}]
    async with project.job() as (running, _):
        driver = await Driver.attach(
            running, breakpoints={project.train: [step]}, pathMappings=here
        )
        entries = await driver.stopped(step, within=LIMIT)
        assert {entry["path"] for entry in entries} == {project.train}
        (told,) = await set_lines(driver, project.lib, line_of(project.lib, "scale"))
        there = f"{project.remote_roots[1]}/lib.py"
        told = await news(driver, told, "file differs on ranks 2-3")
        assert told["message"] == f"file differs on ranks 2-3 (node2): {there}"
        await driver.leave()


@only_folders
async def test_a_user_from_elsewhere_reads_the_ranks_libraries(project: Project) -> None:
    """What no mapping holds comes from the rank, also once it runs on, or has gone."""
    encode = line_of(project.train, "encode")
    project.hide_from_ranks()
    async with project.job() as (running, ranks):
        driver = await Driver.attach(
            running, breakpoints={project.train: [encode]}, pathMappings=project.mappings
        )
        await driver.stopped(encode, within=LIMIT)
        sources = [frame["source"] for frame in await driver.frames(0)]
        given = {Path(each["path"]).name: each["sourceReference"] for each in sources}
        assert given["train.py"] == 0
        assert given["encoder.py"] > 0
        await set_lines(driver, project.train)
        await driver.go_on()
        await driver.states(*["running"] * 4, within=LIMIT)
        asked = {"sourceReference": given["encoder.py"]}
        body = await driver.client.request("source", asked, timeout=LIMIT)
        assert body["content"] == inspect.getsource(json.encoder)
        ranks[0].process.kill()
        await driver.until(lambda entries: entries[0]["state"] != "running", within=LIMIT)
        assert await driver.client.request("source", asked, timeout=LIMIT) == body
        await driver.leave()


@only_folders
async def test_a_ranks_file_says_where_each_rank_has_the_sources(
    project: Project, user: User
) -> None:
    """`remoteRoot` beats the root that the user wrote."""
    step = line_of(project.train, "step")
    async with project.job() as (_, ranks):
        roots = [root for root in project.remote_roots for _ in range(2)]
        entries = [
            {"rank": number, "host": r.endpoint.host, "port": r.endpoint.port, "remoteRoot": root}
            for number, (r, root) in enumerate(zip(ranks, roots, strict=True))
        ]
        file = project.base / "ranks.json"
        file.write_text(json.dumps(entries))
        attach = await user.start("attach", f"@{file}")
        client = await attach.client()
        wrong = [{"localRoot": str(project.home), "remoteRoot": "/nowhere"}]
        await client.handshake(
            {"justMyCode": True, "pathMappings": wrong},
            breakpoints={project.train: [{"line": step}]},
            timeout=LIMIT,
        )
        await listed(client, "line", *[step] * 4)
        await client.disconnect()
