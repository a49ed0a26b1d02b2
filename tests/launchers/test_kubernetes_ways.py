"""Kubernetes: other ways into pods, and what users are told where there is none.

Where nobody may look into pods; a loop of the user's own; where pods may not be watched.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from typing import Final

import pytest

from dap_mux.client import DapClient
from dap_mux.cluster.kubernetes import Kubernetes, pod_source
from dap_mux.cluster.source import SourceSpec
from dap_mux.pure.errors import DapMuxError
from tests.launchers import tour
from tests.launchers.kube_scene import IN_PODS, JOB, Scene, listening_in, shell
from tests.launchers.launching import Json, seen
from tests.real.driving import COUNT, COUNTING, joined
from tests.support.processes.commands import LIMIT, bodies, listed, quiet
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until

pytestmark = IN_PODS
HERE: Final = {COUNTING: [{"line": COUNT}]}


async def test_two_ranks_in_each_pod_and_some_come_late(scene: Scene) -> None:
    """Nobody is hurt by a rank that is not there yet, whether or not we may look into the pod."""
    done = scene.user.folder / "done"
    pods = [scene.pod(0), scene.pod(1)]
    pods[0].exec_allowed = False
    for pod in pods:
        await scene.run(pod, COUNTING, str(done))
    attach = await scene.user.start("attach", f"trainer=k8s:training/job/{JOB}:5678+2")
    client = await joined(attach, HERE)
    entries = await listed(client, "line", COUNT, None, COUNT, None)
    assert {entry["group"] for entry in entries} == {"trainer"}
    why = f"nothing listens on port 5679 of pod {pods[1].name} yet"
    await until_reason(client, 3, why)
    await until(lambda: refusals(scene, pods[0].name) > 1, within=LIMIT, what="tried twice")

    for pod in pods:
        await scene.run(pod, COUNTING, str(done), port=5679)
    await listed(client, "line", *[COUNT] * 4)
    assert [each for each in bodies(client, "thread") if each["reason"] == "exited"] == []
    done.touch()
    await tour.let_go(client)
    assert [await pod.ended(within=LIMIT) for pod in pods] == [0, 0]


async def test_a_rank_that_ends_before_anybody_attaches_while_its_container_runs_on(
    scene: Scene,
) -> None:
    """It has listened, and the other rank of the pod still does."""
    done, pod = scene.user.folder / "done", scene.pod(0)
    for port in (5678, 5679):
        await scene.run(pod, COUNTING, str(done), port=port)
    await until(lambda: {5678, 5679} <= listening_in(pod), within=LIMIT, what="both listen")
    attach = await scene.user.start("attach", f"trainer=k8s:training/job/{JOB}:5678+2")
    await until(lambda: bool(scene.forward_of(pod)), within=LIMIT, what="a way into the pod")
    pod.processes[1].kill()
    await until(lambda: 5679 not in listening_in(pod), within=LIMIT, what="one has ended")
    client = await joined(attach, attach={})
    where = f"nothing listens on port 5679 of pod {pod.name}"
    await until_reason(client, 1, f"{where} any more, but its container runs")
    await listed(client, "state", "running", "waiting")
    done.touch()
    await tour.let_go(client)


async def until_reason(client: DapClient, rank: int, why: str) -> None:
    """Wait until the session knows why a rank is not attached: its pod is asked."""

    def told(body: Json) -> bool:
        return (body["ranks"][rank]["reason"] or "").startswith(why)

    await seen(lambda: client.request("list", timeout=LIMIT), told, within=LIMIT)


def refusals(scene: Scene, pod: str) -> int:
    """How many forwards to a pod there have been beyond one for each of its two ranks."""
    return sum(each.endswith(f"/{pod}/portforward") for each in scene.server.asked) - 2


async def test_a_loop_of_the_users_own(scene: Scene) -> None:
    """`while true; do kubectl port-forward ...; done` beside plain endpoints."""
    pods, done = await scene.loops(2)
    ports = [free_ports(1) for _ in pods]
    loops = [
        f"while true; do kubectl port-forward pod/{pod.name} {port}:5678; sleep 0.2; done & "
        for pod, port in zip(pods, ports, strict=True)
    ]
    async with shell(scene, "".join(loops) + "wait"):
        ends = [f"localhost:{port}" for port in ports]
        attach = await scene.user.start("attach", *ends, env=tour.without_clocks(scene.user))
        client = await joined(attach)
        rows = [each["threadId"] for each in await listed(client, "state", "running", "running")]
        for time in range(2):
            await quiet(client, HERE if time else {COUNTING: []})
            before = len(bodies(client, "thread"))
            scene.user.signal(scene.forward_of(pods[1]), signal.SIGKILL)
            is_back = partial(back, client, rows[1], before)
            await until(is_back, within=LIMIT, what=f"back {time}")
            await client.request(
                "setBreakpoints",
                {"source": {"path": COUNTING}, "breakpoints": HERE[COUNTING]},
                timeout=LIMIT,
            )
            await listed(client, "line", COUNT, COUNT)
        done.touch()
        await tour.let_go(client)
        assert [await pod.ended(within=LIMIT) for pod in pods] == [0, 0]


def back(client: DapClient, row: int, seen: int) -> bool:
    """Whether a row has appeared after so many events of threads."""
    later = bodies(client, "thread")[seen:]
    return {"reason": "started", "threadId": row} in later


async def test_every_rank_ends_and_its_pod_starts_again(scene: Scene) -> None:
    """Also as another pod, where its job makes one: the session waits until the job has done."""
    (pod,), done = await scene.loops(1)
    attach = await scene.user.start("attach", f"k8s:job/{JOB}")
    client = await joined(attach, HERE)
    for again in ("the container", "the job"):
        await listed(client, "line", COUNT)
        done.touch()
        await runs_on(client)
        await listed(client, "state", "exited")
        done.unlink()
        if again == "the container":
            await pod.restarts_now()
        else:
            await pod.fails()
            pod = scene.pod(0, "b")
        await scene.run(pod, COUNTING, str(done))
    await listed(client, "line", COUNT)
    assert bodies(client, "terminated") == []
    done.touch()
    await runs_on(client)
    assert await pod.ended(within=LIMIT) == 0
    await tour.over(client, attach)


async def runs_on(client: DapClient) -> None:
    """Continue the one rank."""
    (entry,) = await listed(client, "state", "stopped")
    await client.request("continue", {"threadId": entry["threadId"]}, timeout=LIMIT)


async def test_a_pod_that_goes_just_before_it_is_watched(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kubectl begins a watch with a list of its own, which does not say who was in ours."""
    pods = [scene.pod(0), scene.pod(1)]
    lists = 0

    async def listed() -> None:
        nonlocal lists
        lists += 1
        if lists == 3:  # after ours at first, and ours before the watch
            await scene.cluster.delete(pods[1].name)

    scene.server.on_list = listed
    source = source_of(scene, monkeypatch)
    before = await source.discover()
    async with aclosing(source.watch()) as news:  # type: ignore[type-var]
        after = await asyncio.wait_for(anext(news), LIMIT)
    (stays, there), (stayed, gone) = ([one.waits for one in ranks] for ranks in (before, after))
    assert stays == stayed
    assert "is Pending" in there
    assert gone == f"pod {pods[1].name} was deleted; perhaps another will replace it"


async def test_a_pod_that_has_been_replaced_is_not_waited_for(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the other has ended, nothing is left that may still appear."""
    source = source_of(scene, monkeypatch)
    told: list[list[str]] = []
    pod = scene.pod(0)
    pod.runs()
    await source.discover()
    async with aclosing(source.watch()) as news:  # type: ignore[type-var]

        async def until_told(*waits: str) -> None:
            while not told or told[-1] != [*waits]:
                told.append([one.waits for one in await asyncio.wait_for(anext(news), LIMIT)])

        await pod.fails()
        replaced = f"pod {pod.name} has failed; perhaps another will replace it"
        await until_told(replaced)
        other = scene.pod(0, "b")
        await until_told(f"pod {other.name} is Pending: ContainerCreating")
        told.clear()
        await other.start("true", cwd=scene.user.folder)
        await until_told("")
        await other.ended(within=LIMIT)
        await until_told()
    assert [replaced] not in told


async def test_an_end_is_told_although_a_look_has_failed_halfway(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pods have been listed by then, and are the same at the next look."""
    source = source_of(scene, monkeypatch)
    pod = scene.pod(0)
    await pod.start("true", cwd=scene.user.folder)
    await source.discover()
    scene.cluster.job(JOB)
    scene.cluster.jobs[JOB]["status"] = {"conditions": [{}]}
    await pod.ended(within=LIMIT)
    with pytest.raises(DapMuxError, match="get job: malformed response"):
        await asyncio.wait_for(anext(source.watch()), LIMIT)
    scene.cluster.job(JOB)
    async with aclosing(source.watch()) as news:  # type: ignore[type-var]
        assert await asyncio.wait_for(anext(news), LIMIT) == []


async def test_one_watch_is_kept(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside it, pods are listed once more, a while after it began; a cluster has other users."""
    monkeypatch.setattr(pod_source, "POLL_INTERVAL_S", 0.1)
    source = source_of(scene, monkeypatch)
    pod = scene.pod(0)
    pod.runs()
    await source.discover()
    lists = f"GET /api/v1/namespaces/{scene.cluster.namespace}/pods"
    async with aclosing(source.watch()) as news:  # type: ignore[type-var]
        coming = asyncio.ensure_future(anext(news))
        await until(
            lambda: scene.server.asked.count(lists) >= 5,
            within=LIMIT,
            what="two looks, a watch with its own list, and one more look",
        )
        for _ in range(5):
            await pod.restarts_now()
            await asyncio.wait_for(coming, LIMIT)
            coming = asyncio.ensure_future(anext(news))
        coming.cancel()
    assert scene.server.asked.count(lists) == 5


def source_of(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Kubernetes:
    """The job's pods, by the user's kubectl."""
    for name in ("KUBECONFIG", "PATH"):
        monkeypatch.setenv(name, scene.user.environ[name])
    return Kubernetes(SourceSpec("k8s", f"job/{JOB}"))


async def test_where_there_are_no_ranks_to_be_had(scene: Scene) -> None:
    """What, why, and what helps; no traceback, and nothing hangs."""
    others = "other-context", "nowhere"
    await refused(scene, [f"k8s:trainer-0@{others[0]}"], "config get-contexts")
    await refused(scene, [f"k8s:{others[1]}/trainer-0"], "no namespace 'nowhere'")
    scene.server.logged_in = False
    await refused(scene, ["k8s:trainer-0"], "you are not logged in: log in as you do for kubectl")
    scene.server.port = free_ports(1)
    scene.server.use()
    await refused(scene, ["oc:trainer-0"], "make `kubectl get pods` work first")


async def refused(scene: Scene, words: Sequence[str], sentence: str) -> None:
    done = await scene.user.does("attach", *words)
    assert (done.code, done.out) == (3, ""), done.err
    assert sentence in done.err
    assert done.err.count("\n") == 1, done.err


async def test_where_pods_may_not_be_watched(scene: Scene) -> None:
    """They are looked for every few seconds."""
    scene.server.watch_allowed = False
    attach = await scene.user.start("attach", f"oc:job/{JOB}")
    await attach.says("no ranks yet")
    (pod,), done = await scene.loops(1)
    client = await joined(attach, HERE)
    await listed(client, "line", COUNT)
    done.touch()
    await tour.let_go(client)
    assert await pod.ended(within=LIMIT) == 0
