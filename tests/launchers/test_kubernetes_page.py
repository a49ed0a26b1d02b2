"""docs/kubernetes.md: its commands run, and its manifests become the pods that they describe."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from dap_mux.client import DapClient
from tests.launchers import tour
from tests.launchers.kube_scene import IN_PODS, PYTHON, ROOT, Scene, shell
from tests.real.driving import joined
from tests.support.clients.conversation import Conversation
from tests.support.kube_server import Pod
from tests.support.processes.commands import LIMIT
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until

pytestmark = IN_PODS
EXAMPLES: Final = ROOT / "examples" / "kubernetes"
BLOCK: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
Json = dict[str, Any]


def commands(heading: str) -> list[str]:
    """The commands of the page's section of that name, in order."""
    page = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line for block in BLOCK.findall(section) for line in block.splitlines()]


def objects(manifest: str) -> list[Json]:
    """What a manifest holds, as kubectl reads it; no server is asked."""
    words = ["kubectl", "annotate", "--local", "--dry-run=client", "-o", "json", "-f"]
    done = subprocess.run(
        [*words, str(ROOT / manifest), "read=yes"],
        env={**os.environ, "KUBECONFIG": os.devnull},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    decoder, found, text = json.JSONDecoder(), [], done.stdout.strip()
    while text:
        one, end = decoder.raw_decode(text)
        found.append(one)
        text = text[end:].strip()
    return found


class Controller:
    """Makes of manifests what a cluster would: pods, and what runs in them."""

    def __init__(self, scene: Scene, token: Path) -> None:
        self._scene = scene
        # What a pod has elsewhere: its images, mounts and names.
        self._here = {
            "python": sys.executable,
            "dap-mux": str(Path(sys.executable).with_name("dap-mux")),
            "/workspace/data_parallel.py": str(tour.PROGRAM),
            "/run/secrets/dap-mux/token": str(token),
            "train-0.train": "10.78.0.2",
        }

    async def apply(self, manifest: str) -> list[Pod]:
        pods: list[Pod] = []
        for each in objects(manifest):
            if each["kind"] == "Job":
                assert each["spec"]["completionMode"] == "Indexed"
                indexes = range(each["spec"]["completions"])
                pods += [self._of_job(each, index) for index in indexes]
                for pod in pods:
                    await self._start(pod, each["spec"]["template"]["spec"])
            elif each["kind"] == "Pod":
                pod = self._scene.cluster.add(each["metadata"]["name"], labels={})
                await self._start(pod, each["spec"])
                pods.append(pod)
        return pods

    def _of_job(self, job: Json, index: int) -> Pod:
        name = job["metadata"]["name"]
        note = {"batch.kubernetes.io/job-completion-index": str(index)}
        (container,) = job["spec"]["template"]["spec"]["containers"]
        env = {one["name"]: self._value(one, note) for one in container["env"]}
        return self._scene.cluster.add(
            f"{name}-{index}-x7k", labels={"job-name": name}, annotations=note, env=env
        )

    def _value(self, variable: Json, annotations: dict[str, str]) -> str:
        if "value" in variable:
            return self._here.get(variable["value"], str(variable["value"]))
        path = variable["valueFrom"]["fieldRef"]["fieldPath"]
        return annotations[path.removeprefix("metadata.annotations['").removesuffix("']")]

    async def _start(self, pod: Pod, spec: Json) -> None:
        (container,) = spec["containers"]
        words = [*container["command"], *container["args"]]
        env = {**PYTHON, "KUBECONFIG": self._scene.user.environ["KUBECONFIG"]}
        await pod.start(
            *[self._here.get(word, word) for word in words], cwd=self._scene.user.folder, env=env
        )


async def test_a_job_of_four_pods(scene: Scene) -> None:
    """From your own machine, by a forward for each pod; it waits until the pods are there."""
    configmap, apply, attach_words, list_words = commands("A job of four pods")
    assert configmap.endswith(str(tour.PROGRAM.relative_to(ROOT)))
    attach = await scene.user.start(*shlex.split(attach_words)[1:])
    await attach.says("no ranks yet; waiting for them")
    client = await attach.client()
    pods = await Controller(scene, Path()).apply(apply.partition(" apply -f ")[2])
    await tour.attach(client, str(tour.PROGRAM))
    await tour.two_held(client)
    entries = (await client.request("list", timeout=LIMIT))["ranks"]
    assert [entry["host"] for entry in entries] == [pod.name for pod in pods]
    table = (await scene.user.does(*shlex.split(list_words)[1:])).out
    assert all(pod.name in table for pod in pods)
    await tour.ask_and_step(client)
    await tour.let_go(client)
    assert [await pod.ended(within=LIMIT) for pod in pods] == [0] * tour.RANKS
    tour.check_result("".join(pod.output for pod in pods))
    assert (await attach.ends()).code == 0  # the cluster has told it that the job is over
    await scene.user.nothing_is_left(within=LIMIT)


async def test_one_port(scene: Scene) -> None:
    """The session runs in the cluster; the editor needs one forward, and the token."""
    make_token, secret, apply, forward = commands("One port")
    words = make_token.partition(" > ")[0].replace("python", sys.executable, 1)
    token = scene.user.folder / secret.rpartition(" ")[2]
    token.touch(0o600)
    async with shell(scene, words) as made:
        token.write_bytes((await made.communicate())[0])
    controller = Controller(scene, token)
    pods = await controller.apply("examples/kubernetes/train.yaml")
    (gate,) = await controller.apply(apply.partition(" apply -f ")[2])
    await until(lambda: "one session for" in gate.output, within=LIMIT, what=gate.output)

    port = free_ports(1)
    assert forward.endswith(" 5687:5677")
    async with shell(scene, f"exec {forward.removesuffix('5687:5677')} {port}:5677") as child:
        assert child.stdout
        line = await asyncio.wait_for(child.stdout.readline(), LIMIT)
        assert line.startswith(b"Forwarding from"), line
        conversation = Conversation("editor")
        client = await DapClient.connect("127.0.0.1", port, tap=conversation.tap)
        await tour.taken(client, token=token.read_text("utf-8").strip())
        assert [await pod.ended(within=LIMIT) for pod in pods] == [0] * tour.RANKS
        await client.close()
    assert await gate.ended(within=LIMIT) == 0, gate.output
    tour.check_result("".join(pod.output for pod in pods))


def test_nothing_listens_beyond_its_pod() -> None:
    """Ranks listen on the pod's loopback and are reached by a port-forward."""
    (job,) = (one for one in objects("examples/kubernetes/train.yaml") if one["kind"] == "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert "--host" not in container["command"]
    (pod,) = (one for one in objects("examples/kubernetes/dap-mux.yaml") if one["kind"] == "Pod")
    (container,) = pod["spec"]["containers"]
    assert container["args"][1:3] == ["--listen", "127.0.0.1:5677"]
    assert "ports" not in container


def test_the_session_in_the_cluster_is_no_root_and_can_read_its_token() -> None:
    """A secret is root's: a group of the pod's own makes it readable, to nobody else."""
    (pod,) = (one for one in objects("examples/kubernetes/dap-mux.yaml") if one["kind"] == "Pod")
    who = pod["spec"]["securityContext"]
    assert who["runAsNonRoot"] is True
    assert who["runAsUser"] > 0
    assert who["fsGroup"] > 0
    (volume,) = pod["spec"]["volumes"]
    assert volume["secret"]["defaultMode"] == 0o400
    (role,) = (one for one in objects("examples/kubernetes/dap-mux.yaml") if one["kind"] == "Role")
    rights = {(one["apiGroups"][0], one["resources"][0]): one["verbs"] for one in role["rules"]}
    assert rights["batch", "jobs"] == ["get"]


def test_images_of_ones_own_are_not_looked_for_in_a_registry() -> None:
    (job,) = (one for one in objects("examples/kubernetes/train.yaml") if one["kind"] == "Job")
    (pod,) = (one for one in objects("examples/kubernetes/dap-mux.yaml") if one["kind"] == "Pod")
    dockerfile = (EXAMPLES / "Dockerfile").read_text("utf-8")
    for spec in (job["spec"]["template"]["spec"], pod["spec"]):
        (container,) = spec["containers"]
        assert container["imagePullPolicy"] == "IfNotPresent"
        assert not container["image"].endswith(":latest")
        assert f"-t {container['image']} " in dockerfile


async def test_a_ranks_log_says_how_to_attach_from_outside(scene: Scene) -> None:
    """Its own loopback means nothing there; the host name in a pod is the pod's."""
    pod = scene.cluster.add("trainer-0", labels={}, env={"KUBERNETES_SERVICE_HOST": "10.78.0.1"})
    named = ["unshare", "--uts", "sh", "-c", f'hostname {pod.name} && exec "$@"', "sh"]
    agent = [sys.executable, "-m", "dap_mux.rank", "--port", "5678", str(tour.PROGRAM)]
    await pod.start(*named, *agent, *tour.OPTIONS, cwd=scene.user.folder, env=PYTHON)
    await until(lambda: "attach" in pod.output, within=LIMIT, what="the rank listens")
    said = re.search(r"on 127\.0\.0\.1:5678 .*: dap-mux attach (\S+)$", pod.output, re.MULTILINE)
    assert said, pod.output
    attach = await scene.user.start("attach", said[1])
    await joined(attach, attach={})
    assert await pod.ended(within=LIMIT) == 0
    assert (await attach.ends()).code == 0


def test_the_launch_configuration() -> None:
    stored = json.loads((EXAMPLES / "launch.json").read_text("utf-8"))
    assert {one["name"].partition(" (")[0] for one in stored["configurations"]} == {
        "Remote Attach to Cluster"
    }
    root = {one["pathMappings"][0]["remoteRoot"] for one in stored["configurations"]}
    assert root == {"/workspace"}
