"""The server: what kubectl asks for when it lists, watches, runs something in a pod or forwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from aiohttp import WSMsgType, web

from tests.support.kube_server.cluster import ADDRESS, Cluster, Pod
from tests.support.kube_server.custom_resources import refuse
from tests.support.kube_server.spdy import Spdy

Json = dict[str, Any]
FORWARD: Final = "SPDY/3.1+portforward.k8s.io"
STDIN, STDOUT, STDERR, STATUS = range(4)  # channels of `exec`, the first byte of each message
TOKEN: Final = "sesame"
TURNS: Final = 3
"""Of the event loop, until aiohttp has heard of a connection that asyncio has accepted. It waits
one itself, and never closes what it hears of later."""
_VERBS: Final = ["get", "list", "watch"]
_RESOURCES: Final = [
    {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": _VERBS},
    {"name": "namespaces", "singularName": "namespace", "namespaced": False, "kind": "Namespace",
     "verbs": _VERBS},
]  # fmt: skip


@dataclass
class KubeServer:
    """A running server; `kubeconfig` is the path of a file that leads kubectl to it."""

    cluster: Cluster
    kubeconfig: Path
    port: int = 0
    watch_allowed: bool = True
    jobs_allowed: bool = True
    logged_in: bool = True
    forwards: dict[web.WebSocketResponse, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """What was asked for: method and path, without the query."""
    on_list: Callable[[], Awaitable[None]] | None = None
    """What happens just before a list of pods is answered."""

    async def drop_forwards(self, pod: str) -> None:
        """Cut every forward into a pod, as an idle time-out or a restarted node does."""
        for socket in [one for one, name in self.forwards.items() if name == pod]:
            await socket.close()

    def use(self, context: str = "test", namespace: str = "") -> None:
        """Write the kubeconfig, as `oc login` or a provider's tool leaves it."""
        namespace = namespace or self.cluster.namespace
        server = f"http://{ADDRESS}:{self.port}"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "clusters": [{"name": "stub", "cluster": {"server": server}}],
            "users": [{"name": "me", "user": {"token": TOKEN}}],
            "contexts": [
                {"name": name, "context": {"cluster": "stub", "user": "me", "namespace": namespace}}
                for name in (context, "nccl-test/api-example-com:6443/me")
            ],
        }
        self.kubeconfig.write_text(json.dumps(config), "utf-8")

    # What is asked

    def routes(self) -> Iterable[web.RouteDef]:
        pods = "/api/v1/namespaces/{namespace}/pods"
        yield web.get("/version", self._version)
        yield web.get("/api", self._versions)
        yield web.get("/apis", self._groups)
        yield web.get("/api/v1", self._resources)
        yield web.get("/apis/batch/v1", self._batch)
        yield web.get("/apis/batch/v1/namespaces/{namespace}/jobs/{job}", self._job)
        yield from self.cluster.custom.routes()
        yield web.get("/api/v1/namespaces", self._namespaces)
        yield web.get("/api/v1/namespaces/{namespace}", self._namespace)
        yield web.get(pods, self._pods)
        yield web.get(pods + "/{pod}", self._pod)
        yield web.route("*", pods + "/{pod}/exec", self._exec)  # refused, kubectl tries POST
        yield web.get(pods + "/{pod}/portforward", self._forward)

    @web.middleware
    async def door(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Nobody is heard who has not logged in."""
        self.asked.append(f"{request.method} {request.path}")
        if not self.logged_in:
            return refuse(401, "Unauthorized", "Unauthorized")
        response: web.StreamResponse = await handler(request)
        return response

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"major": "1", "minor": "32", "gitVersion": "v1.32.0"})

    async def _versions(self, request: web.Request) -> web.Response:
        return web.json_response({"kind": "APIVersions", "versions": ["v1"]})

    async def _groups(self, request: web.Request) -> web.Response:
        version = {"groupVersion": "batch/v1", "version": "v1"}
        batch = {"name": "batch", "versions": [version], "preferredVersion": version}
        groups = [batch, *self.cluster.custom.groups()]
        return web.json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})

    async def _batch(self, request: web.Request) -> web.Response:
        job = {"name": "jobs", "singularName": "job", "namespaced": True, "kind": "Job",
               "verbs": _VERBS}  # fmt: skip
        return web.json_response(
            {"kind": "APIResourceList", "groupVersion": "batch/v1", "resources": [job]}
        )

    async def _job(self, request: web.Request) -> web.Response:
        name = request.match_info["job"]
        if not self.jobs_allowed:
            return refuse(403, "Forbidden", f'jobs.batch "{name}" is forbidden')
        job = self.cluster.jobs.get(name)
        if job is None or request.match_info["namespace"] != self.cluster.namespace:
            return refuse(404, "NotFound", f'jobs.batch "{name}" not found')
        return web.json_response(job)

    async def _resources(self, request: web.Request) -> web.Response:
        body = {"kind": "APIResourceList", "groupVersion": "v1", "resources": _RESOURCES}
        return web.json_response(body)

    async def _namespace(self, request: web.Request) -> web.Response:
        name = request.match_info["namespace"]
        if name != self.cluster.namespace:
            return refuse(404, "NotFound", f'namespaces "{name}" not found')
        return web.json_response(namespace(name))

    async def _namespaces(self, request: web.Request) -> web.Response:
        items = [namespace(name) for name in ("default", self.cluster.namespace)]
        return web.json_response({"kind": "NamespaceList", "apiVersion": "v1", "items": items})

    async def _pods(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch"):
            return await self._watch(request)
        if self.on_list:
            await self.on_list()
        items = [pod.json() for pod in self.cluster.pods.values() if chosen(request, pod.json())]
        # Watched from here on: what happens between the list and its watch is told by the watch.
        version = {"resourceVersion": f"{len(self.cluster.changes)}"}
        body = {"kind": "PodList", "apiVersion": "v1", "metadata": version}
        return web.json_response({**body, "items": items})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        """Tell of every change until kubectl has heard enough."""
        if not self.watch_allowed:
            return refuse(403, "Forbidden", 'pods is forbidden: you cannot watch resource "pods"')
        version = int(request.query.get("resourceVersion") or len(self.cluster.changes))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        async for event in self.cluster.changes_from(version):
            if chosen(request, event["object"]):
                await response.write(json.dumps(event).encode() + b"\n")
        return response

    async def _pod(self, request: web.Request) -> web.Response:
        pod = self._named(request)
        return web.json_response(pod.json()) if pod else missing(request)

    def _named(self, request: web.Request) -> Pod | None:
        here = request.match_info["namespace"] == self.cluster.namespace
        return self.cluster.pods.get(request.match_info["pod"]) if here else None

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        pod = self._named(request)
        if pod is None:
            return missing(request)
        socket = web.WebSocketResponse(protocols=(FORWARD,), max_msg_size=0)
        await socket.prepare(request)
        session = Spdy(socket.send_bytes, pod.connect)
        self.forwards[socket] = pod.name
        try:
            async for message in socket:
                if message.type is WSMsgType.BINARY:
                    await session.feed(message.data)
        finally:
            del self.forwards[socket]
            session.close()
        return socket

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        """Run a command in a pod; every message begins with its channel."""
        pod = self._named(request)
        if pod is None:
            return missing(request)
        if not pod.exec_allowed:
            return refuse(
                403, "Forbidden", f'pods "{pod.name}" is forbidden: cannot create pods/exec'
            )
        if pod.phase in ("Succeeded", "Failed"):
            message = (
                f"cannot exec into a container in a completed pod; current phase is {pod.phase}"
            )
            return refuse(400, "BadRequest", message)
        if not pod.runs_something():
            return refuse(500, "InternalError", 'container not found ("main")')
        socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io", "v4.channel.k8s.io"))
        await socket.prepare(request)
        code = await run(pod.exec_command(*request.query.getall("command")), socket)
        with suppress(ConnectionError):
            await socket.send_bytes(bytes([STATUS]) + json.dumps(outcome(code)).encode())
            await socket.close()
        return socket


async def run(words: list[str], socket: web.WebSocketResponse) -> int:
    """Run a command; its two streams go to their channels, and what is typed goes to it."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, stderr=pipe)
    except OSError:
        return 127

    async def say(channel: int, stream: asyncio.StreamReader | None) -> None:
        assert stream
        while data := await stream.read(32 * 1024):
            await socket.send_bytes(bytes([channel]) + data)

    async def hear() -> None:
        """Until kubectl has gone, which a container does not survive here."""
        async for message in socket:
            if message.type is WSMsgType.BINARY and message.data[:1] == bytes([STDIN]):
                assert process.stdin
                process.stdin.write(message.data[1:])
        with suppress(ProcessLookupError):
            process.kill()

    hearing = asyncio.ensure_future(hear())
    try:
        with suppress(ConnectionError):
            await asyncio.gather(say(STDOUT, process.stdout), say(STDERR, process.stderr))
        return await process.wait()
    finally:
        hearing.cancel()


def outcome(code: int) -> Json:
    """How a command ended, as kubectl is told."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    cause = {"reason": "ExitCode", "message": str(code)}
    message = f"command terminated with exit code {code}"
    return {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": message,
            "details": {"causes": [cause]}}  # fmt: skip


def namespace(name: str) -> Json:
    return {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}


def chosen(request: web.Request, pod: Json) -> bool:
    """Whether the request's selectors name this pod, in its namespace."""
    metadata = pod["metadata"]
    labels = pairs(request.query.get("labelSelector", ""))
    fields = pairs(request.query.get("fieldSelector", ""))
    here = request.match_info["namespace"] == metadata["namespace"]
    named = fields.get("metadata.name", metadata["name"]) == metadata["name"]
    return bool(here and named and labels.items() <= metadata["labels"].items())


def pairs(text: str) -> dict[str, str]:
    return dict(one.replace("==", "=").split("=", 1) for one in text.split(",") if one)


def missing(request: web.Request) -> web.Response:
    return refuse(404, "NotFound", f'pods "{request.match_info["pod"]}" not found')


@asynccontextmanager
async def kube_server(cluster: Cluster, kubeconfig: Path) -> AsyncIterator[KubeServer]:
    """Serve a cluster, on an address that its pods reach too."""
    server = KubeServer(cluster, kubeconfig)
    application = web.Application(middlewares=[server.door])
    application.add_routes(server.routes())
    runner = web.AppRunner(application, shutdown_timeout=1, handle_signals=False)
    await runner.setup()
    site = web.TCPSite(runner, ADDRESS, 0)
    await site.start()
    server.port = runner.addresses[0][1]
    server.use()
    try:
        yield server
    finally:
        for socket in list(server.forwards):
            await socket.close()
        await site.stop()
        for _ in range(TURNS):
            await asyncio.sleep(0)
        await runner.cleanup()
