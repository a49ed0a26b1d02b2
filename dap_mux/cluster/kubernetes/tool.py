"""kubectl or oc, whichever is installed, with its own configuration and login."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import anyio

from dap_mux.cluster.kubernetes.pods import Json
from dap_mux.cluster.tunnel import CommandResult, next_line, run_command, running_child
from dap_mux.pure.errors import NothingToConnect, UsageError
from dap_mux.system.user_files import parse_json

PREFERRED: Final = {"k8s": ("kubectl", "oc"), "oc": ("oc", "kubectl")}
LISTEN: Final = "0A"  # the state of a listening socket in /proc/net/tcp
POD_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}")  # it becomes an argument of `exec`
SOCKETS: Final = re.compile(r"^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ ([0-9A-F]{2}) ", re.MULTILINE)

# Error messages (in any case), and advice.
HINTS: Final = {
    "Unauthorized|must be logged in|provide credentials|token.*expired": (
        "you are not logged in: log in as you do for {tool} (oc login, or your provider's tool)"
    ),
    "context .* does not exist|no context exists|context was not found": (
        "`{tool} config get-contexts` lists the existing ones"
    ),
    "forbidden": (
        "you lack the permission: name the namespace (k8s:NAMESPACE/...), or ask for the permission"
    ),
    "connection to the server|unable to connect|no such host|timed? ?out": (
        "the cluster cannot be reached: make `{tool} get pods` work first"
    ),
}
# Not allowed, or a container without `cat`: retrying does not help.
PERMANENT: Final = re.compile(
    "forbidden|executable file not found|no such file|not found in|exit code 12[67]",
    re.IGNORECASE,
)
# The container has ended, in the messages of kubelets and containerd.
CONTAINER_GONE: Final = re.compile(
    "completed pod|container not found|container is not running|pods .* not found|"
    "no running task|CONTAINER_EXITED",
    re.IGNORECASE,
)
# The cluster has no such kind of object, and one is not to be read.
NO_KIND: Final = "the server doesn't have a resource type"
FORBIDDEN: Final = re.compile("forbidden", re.IGNORECASE)


class NoSuchObject(NothingToConnect):
    """The namespace has no object of this name."""


class ContainerGone(NothingToConnect):
    """No container of the pod is running."""


def tool_for(scheme: str, namespace: str | None, context: str | None) -> Tool:
    """Return the tool to use. Raises `NothingToConnect` if neither is installed."""
    for program in PREFERRED[scheme]:
        path = shutil.which(program)
        if path:
            chosen = [f"--context={context}"] if context else []
            chosen += [f"--namespace={namespace}"] if namespace else []
            return Tool((path, *chosen))
    raise NothingToConnect(
        f"{scheme}: needs kubectl or oc, and neither is in PATH: install one, or forward the ports "
        "by other means and name them (dap-mux attach localhost:5678+4)"
    )


@dataclass(frozen=True)
class Tool:
    """`base`: the program, and the options that select the cluster and namespace."""

    base: tuple[str, ...]

    @property
    def name(self) -> str:
        """`kubectl` or `oc`."""
        return self.base[0].rpartition("/")[2]

    async def pods(self, selection: Sequence[str]) -> list[Json]:
        """Return the existing pods. Raises `DapMuxError`."""
        answer = await run_command([*self.base, "get", "pods", *selection, "-o", "json"])
        if answer.code:
            raise self._complaint("get pods", answer)
        try:
            pods: list[Json] = parse_json(answer.out)["items"]
            return [pod for pod in pods if _names_a_pod({"object": pod})]
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"{self.name} get pods: malformed response") from None

    async def check_namespace(self, name: str) -> None:
        """Raise `NothingToConnect` if there is none; a lack of permission is no error."""
        answer = await run_command([*self.base, "get", "namespace", name, "-o", "name"])
        if answer.code and "NotFound" in answer.err:
            raise NothingToConnect(
                f"no namespace {name!r}: `{self.name} get namespaces` lists the existing ones"
            )

    async def read(self, resource: str, name: str, operator: str) -> Json | None:
        """Return an object of a kind that an operator installs; None without the permission.

        Raises `NoSuchObject`, `NothingToConnect` also where the cluster has no such kind.
        """
        answer = await run_command([*self.base, "get", resource, name, "-o", "json"])
        if not answer.code:
            return self._object(resource, answer.out)
        if NO_KIND in answer.err:
            raise NothingToConnect(
                f"the cluster has no {resource}, which {operator} installs; is it the right "
                f"cluster? `{self.name} config get-contexts` lists those that you can name, "
                "as in k8s:job/train@CONTEXT"
            )
        if "NotFound" in answer.err:
            plural = resource.partition(".")[0]
            raise NoSuchObject(
                f"there is no {name!r} among the {plural} of this namespace: "
                f"`{self.command('get', resource)}` lists them; another namespace goes before a "
                f"slash: k8s:NAMESPACE/{plural[:-1]}/{name}"
            )
        if FORBIDDEN.search(answer.err):
            return None
        raise self._complaint(f"get {resource}", answer)

    async def read_if_allowed(self, resource: str, name: str) -> Json:
        """Return an object; an empty one if there is none, and without the permission to ask."""
        answer = await run_command([*self.base, "get", resource, name, "-o", "json"])
        return {} if answer.code else self._object(resource, answer.out)

    def _object(self, resource: str, text: str) -> Json:
        try:
            found = parse_json(text)
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
        raise UsageError(f"{self.name} get {resource}: malformed response")

    def command(self, *words: str) -> str:
        """Return a command line for the user, with the same cluster and namespace."""
        return shlex.join([self.name, *self.base[1:], *words])

    def exec_command(self, pod: str, script: str) -> list[str]:
        """Return the command that runs a shell's script in a pod, and passes on our input."""
        return [*self.base, "exec", "-i", pod, "--", "sh", "-c", script]

    @asynccontextmanager
    async def watching(self, selection: Sequence[str]) -> AsyncIterator[Changes]:
        """Watch pods; the first events are the existing ones."""
        how = ("--watch", "-o", "json", "--output-watch-events")
        async with running_child(
            [*self.base, "get", "pods", *selection, *how], one_stream=True
        ) as child:
            yield Changes(child)

    async def listening(self, pod: str) -> set[int] | None:
        """Return the ports on which something listens in a pod, found without connecting to them.

        None if we cannot find out. Raises `NothingToConnect` for a temporary failure, and
        `ContainerGone` if nothing runs in it.
        """
        files = ("/proc/net/tcp", "/proc/net/tcp6")
        answer = await run_command([*self.base, "exec", pod, "--", "cat", *files])
        if "local_address" in answer.out:
            found = SOCKETS.findall(answer.out)
            return {int(port, 16) for port, state in found if state == LISTEN}
        if PERMANENT.search(answer.err) and not CONTAINER_GONE.search(answer.err):
            return None
        gone = CONTAINER_GONE.search(answer.err) is not None
        raise (ContainerGone if gone else NothingToConnect)(f"{self.name} exec {pod}: {answer.why}")

    def _complaint(self, what: str, answer: CommandResult) -> NothingToConnect:
        text = f"{self.name} {what}: {answer.why}"
        for pattern, help in HINTS.items():
            if re.search(pattern, answer.err, re.IGNORECASE):
                return NothingToConnect(f"{text}; {help.format(tool=self.name)}")
        return NothingToConnect(text)


def _names_a_pod(event: Json) -> bool:
    """Whether it is about a pod whose name can be one; also True of the end of a watch."""
    about = event.get("object")
    name = about.get("metadata", {}).get("name") if isinstance(about, dict) else None
    return name is None or (isinstance(name, str) and POD_NAME.fullmatch(name) is not None)


class Changes:
    """The events of a watch as the tool prints them: JSON on one line, or indented."""

    def __init__(self, child: Process) -> None:
        assert child.stdout
        self._stream = child.stdout
        self._text: list[str] = []  # of the event that is being read
        self.over = False  # there are no more

    async def next(self, *, before: float) -> Json | None:
        """Return the next event; None at the end, or at that time of the loop's clock."""
        with anyio.CancelScope(deadline=before):
            while (line := await next_line(self._stream)) is not None:
                if line.startswith("{"):
                    self._text.clear()
                self._text.append(line)
                if line.endswith("}") and line.strip(" ") == line:
                    try:
                        event: Json = json.loads("\n".join(self._text))
                    except ValueError:
                        continue
                    if _names_a_pod(event):
                        return event
            self.over = True
        return None
