"""A REST server as OpenPAI's: one job, described as GET /api/v2/jobs/USER~JOB does.

The shape is that of src/rest-server of github.com/microsoft/pai. Task roles have tasks; a port is
the first of those that a task has under its name.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from aiohttp import web

Json = dict[str, Any]
USER, JOB = "me", "train"
TOKEN: Final = "eyJhbGciOiJIUzI1NiJ9.eyJ1c2VybmFtZSI6Im1lIn0.c2VzYW1l"
HOST: Final = "127.0.0.1"
_CREATED: Final = 1770000000000


@dataclass
class Task:
    """One task. `attempt` counts its containers."""

    index: int
    ports: Mapping[str, int | str]
    state: str = "WAITING"
    ip: str | None = None
    code: int | None = None
    attempt: int = 0

    def runs(self, ip: str = HOST) -> None:
        """It has been placed on a node, in a new container."""
        self.state, self.ip, self.code = "RUNNING", ip, None
        self.attempt += 1

    def waits(self) -> None:
        """It is to be tried again."""
        self.state, self.ip = "WAITING", None

    def ends(self, code: int) -> None:
        self.state, self.code = "FAILED" if code else "SUCCEEDED", code

    def json(self, role: str) -> Json:
        number = f"{role}-{self.index}-{self.attempt}"
        return {
            "taskIndex": self.index,
            "taskState": self.state,
            "containerId": number if self.ip else None,
            "containerIp": self.ip,
            "containerPorts": dict(self.ports),
            "containerGpus": 0,
            "containerLog": f"http://{self.ip}:9103/log-manager/tail/{USER}/{JOB}/{role}/{number}/",
            "containerExitCode": self.code,
        }


@dataclass
class OpenPaiServer:
    """A running server. `answer`: what it says instead; `asked`: path and token of each request."""

    roles: dict[str, list[Task]] = field(default_factory=dict)
    state: str = "RUNNING"
    sub_state: str = "AttemptRunning"
    code: int | None = None
    trigger: tuple[str, int] | None = None
    token: str = ""
    answer: Callable[[], web.Response] | None = None
    asked: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0
    scheme: str = "http"

    @property
    def url(self) -> str:
        """What stands for the page's https://pai.example.com."""
        return f"{self.scheme}://{HOST}:{self.port}"

    def ends(self, code: int, *, role: str = "", index: int = 0) -> None:
        """The job is over; the task that ended it."""
        self.state, self.sub_state = "FAILED" if code else "SUCCEEDED", "Completed"
        self.code, self.trigger = code, (role, index) if role else None

    def say(self, status: int, body: str, **headers: str) -> None:
        """Answer so from now on, whatever is asked."""
        self.answer = lambda: web.Response(status=status, text=body, headers=headers)

    def json(self) -> Json:
        role, index = self.trigger or (None, None)
        return {
            "debugId": "0a5e3e1f6f5f4b2b8f0d",
            "name": JOB,
            "jobStatus": {
                "username": USER,
                "state": self.state,
                "subState": self.sub_state,
                "executionType": "START",
                "retries": 0,
                "retryDetails": {"user": 0, "platform": 0, "resource": 0},
                "retryDelayTime": None,
                "createdTime": _CREATED,
                "completedTime": None,
                "appId": "d1b0a8a4",
                "appProgress": 0,
                "appTrackingUrl": "",
                "appLaunchedTime": _CREATED,
                "appCompletedTime": None,
                "appExitCode": self.code,
                "appExitSpec": None,
                "appExitDiagnostics": None,
                "appExitMessages": None,
                "appExitTriggerMessage": None,
                "appExitTriggerTaskRoleName": role,
                "appExitTriggerTaskIndex": index,
                "appExitType": None,
                "virtualCluster": "default",
            },
            "taskRoles": {
                name: {
                    "taskRoleStatus": {"name": name},
                    "taskStatuses": [task.json(name) for task in tasks],
                }
                for name, tasks in self.roles.items()
            },
        }

    async def handle(self, request: web.Request) -> web.StreamResponse:
        said = request.headers.get("Authorization", "")
        self.asked.append((request.path, said))
        if self.token and said != f"Bearer {self.token}":
            message = "Guest is not allowed to do this operation."
            return _refuse(401, "UnauthorizedUserError", message)
        if self.answer:
            return self.answer()
        if request.path != f"/rest-server/api/v2/jobs/{USER}~{JOB}":
            return _refuse(
                404, "NoJobError", f"Job {request.path.rpartition('/')[2]} is not found."
            )
        return web.json_response(self.json())


def _refuse(status: int, code: str, message: str) -> web.Response:
    return web.json_response({"code": code, "message": message}, status=status)


@asynccontextmanager
async def openpai_server(certificate: Path | None = None) -> AsyncIterator[OpenPaiServer]:
    """Serve a job on loopback; with a certificate (and its key in the same file) by TLS."""
    server = OpenPaiServer(scheme="https" if certificate else "http")
    application = web.Application()
    application.router.add_get("/{path:.*}", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=1, handle_signals=False)
    await runner.setup()
    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    await web.TCPSite(runner, HOST, 0, ssl_context=context).start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()
