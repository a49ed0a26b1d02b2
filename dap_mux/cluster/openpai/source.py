"""The ranks of an OpenPAI job: `openpai:URL/USER/JOB[:PORTNAME][+RANKS][,ssh]`."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from ipaddress import ip_address
from math import inf
from typing import Annotated, Final
from urllib.parse import quote

import anyio
import msgspec

from dap_mux.cluster.openpai.rest import TOKEN, TOKEN_FILE, Answer, get, token_of
from dap_mux.cluster.records import LAST_PORT, RankRecord, group_name
from dap_mux.cluster.source import (
    BY_CHOICE,
    Description,
    Notify,
    OnReached,
    SourceSpec,
    reach_directly,
)
from dap_mux.cluster.ssh import reach_by_ssh
from dap_mux.pure.errors import NothingToConnect, Refused, UsageError
from dap_mux.pure.printable import one_line

ENDED: Final = ("SUCCEEDED", "STOPPED", "FAILED")
ENDS: Final = {"SUCCEEDED": "is complete", "STOPPED": "was stopped", "FAILED": "has failed"}
SSH: Final = "ssh"  # the name of the port of OpenPAI's own ssh server
NO_DEBUGGER: Final = 124  # how a rank of ours exits at its DEBUG_TIMEOUT
MAX_TEXT: Final = 200
MAX_TASKS: Final = 100_000
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?", re.ASCII)
_PORTS: Final = re.compile(r"[0-9]{1,5}(,[0-9]{1,5})*", re.ASCII)


class Task(msgspec.Struct, frozen=True, rename="camel"):
    """One task, as the API has it."""

    task_index: Annotated[int, msgspec.Meta(ge=0, lt=MAX_TASKS)]
    task_state: str
    container_id: str | None = None
    container_ip: str | None = None
    container_ports: dict[str, int | str | None] | None = None
    container_log: str | None = None
    container_exit_code: int | None = None

    def is_in(self, *ids: str) -> bool:
        """Whether it runs, or ran, in one of these containers."""
        return bool(self.container_id) and self.container_id in ids

    def ports(self, name: str) -> list[int]:
        """Return the ports of that name: the first if only that is told. Raises `UsageError`."""
        told = (self.container_ports or {}).get(name)
        if told is None:
            return []
        ports = [int(each) for each in str(told).split(",")] if _PORTS.fullmatch(str(told)) else []
        if not ports or not all(0 < port <= LAST_PORT for port in ports):
            raise UsageError(f"port {name} of task {self.task_index} is {told!r}, which is no port")
        return ports


class TaskRole(msgspec.Struct, frozen=True, rename="camel"):
    """The tasks of one role."""

    task_statuses: list[Task] = msgspec.field(default_factory=list)


class JobStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The state of the job."""

    state: str
    sub_state: str | None = None
    retries: int | None = None
    app_exit_code: int | None = None
    app_exit_trigger_task_role_name: str | None = None
    app_exit_trigger_task_index: int | None = None


class JobDetail(msgspec.Struct, frozen=True, rename="camel"):
    """A job, as the API has it; what else it says is not read."""

    job_status: JobStatus
    task_roles: dict[str, TaskRole] = msgspec.field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether it will not run again."""
        return self.job_status.state in ENDED

    @property
    def state(self) -> str:
        """How it is: `waits (AttemptPreparing)`, `has failed: exit code 1 (task ps/0)`, or ''."""
        status = self.job_status
        if status.state == "WAITING":
            return "waits" + (f" ({_text(status.sub_state)})" if status.sub_state else "")
        if not self.ended:
            return ""
        code = status.app_exit_code
        role, index = status.app_exit_trigger_task_role_name, status.app_exit_trigger_task_index
        first = f" (first task {_text(role)}/{index})" if role and index is not None else ""
        return ENDS[status.state] + (f": exit code {code}{first}" if code else "")

    def tasks(self) -> Iterator[tuple[str, Task]]:
        """Yield each task with its role."""
        for role, tasks in self.task_roles.items():
            for task in tasks.task_statuses:
                yield role, task


@dataclass(frozen=True)
class PortChoice:
    """The name of the debug port, and the number of ranks in each task."""

    name: str
    ranks: int = 1


def read_detail(body: bytes) -> JobDetail:
    """Parse a job. Raises `UsageError`, which says what is wrong and where."""
    try:
        return msgspec.json.decode(body, type=JobDetail)
    except RecursionError:
        raise UsageError("the answer is nested too deeply") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise UsageError(f"this is no job as OpenPAI describes it: {_text(error)}") from None


def ranks_of(job: JobDetail, wanted: PortChoice) -> list[RankRecord]:
    """Return the ranks of the tasks that have this port and have not ended.

    Each role is a group; task 1 has the ranks after those of task 0. Raises `UsageError`, also if
    no role has such a port.
    """
    _check_name(job, wanted.name)
    found = (
        record
        for role, task in job.tasks()
        if task.task_state not in ENDED
        for record in _ranks_of_task(job, role, task, wanted)
    )
    return sorted(found, key=lambda record: (record.group, record.rank or 0))


def _ranks_of_task(
    job: JobDetail, role: str, task: Task, wanted: PortChoice
) -> Iterator[RankRecord]:
    ports = task.ports(wanted.name)
    if len(ports) == 1 and "," not in str((task.container_ports or {})[wanted.name]):
        ports = list(range(ports[0], ports[0] + wanted.ranks))
    host, name = _host_of(task), f"{role}/{task.task_index}"
    if ports and (len(ports) < wanted.ranks or ports[-1] > LAST_PORT):
        raise UsageError(
            f"task {_text(name)} has not {wanted.ranks} ports {wanted.name}: ask for one for each "
            f"rank under resourcePerInstance.ports ({wanted.name}: {wanted.ranks})"
        )
    waits = "" if host else f"task {_text(name)} has no address yet"
    if task.task_state == "WAITING":
        waits = f"task {_text(name)} is WAITING, to be started or tried again"
    for place, port in enumerate(ports[: wanted.ranks]):
        yield RankRecord(
            host=host or _text(name),
            port=port,
            rank=task.task_index * wanted.ranks + place,
            group=group_name(role),
            incarnation=f"{task.container_id or ''}/{job.job_status.retries or 0}",
            waits=waits,
        )


def container_of(record: RankRecord) -> str:
    """Return the id of a rank's container, '' if it has none yet."""
    return record.incarnation.rpartition("/")[0]


def _host_of(task: Task) -> str:
    """Return the address of its node, '' while it has none. Raises `UsageError`."""
    host = task.container_ip or ""
    try:
        return str(ip_address(host)) if host else ""
    except ValueError:
        if _HOST.fullmatch(host):
            return host
        raise UsageError(
            f"the address of task {task.task_index} is {_text(host)!r}, which is no host"
        ) from None


def _check_name(job: JobDetail, name: str) -> None:
    have = {each for _, task in job.tasks() for each in task.container_ports or ()}
    if have and name not in have:
        raise NothingToConnect(
            f"no task has a port {name!r}; there are {', '.join(sorted(map(_text, have)))}. Ask "
            f"for it under resourcePerInstance.ports ({name}: 1), or name another: "
            "openpai:URL/USER/JOB:PORTNAME"
        )


def failure_of(role: str, task: Task) -> str:
    """Describe how a task has failed: `task train/1 has failed: exit code 124 (...); see URL`."""
    code = task.container_exit_code
    how = "" if code is None else f": exit code {code}"
    if code == NO_DEBUGGER:
        how += " (a rank exits with it when no debugger has attached within its DEBUG_TIMEOUT)"
    log = f"; its log: {_text(task.container_log)}" if task.container_log else ""
    return f"task {_text(role)}/{task.task_index} has failed{how}{log}"


def _text(value: object) -> str:
    return one_line(str(value))[:MAX_TEXT]


# The endpoint, and its source.

POLL_INTERVAL_S: Final = 5.0
PORT_NAME: Final = "DEBUG_PORT_NAME"
DEFAULT_PORT_NAME: Final = "debug"  # as OpenPAI's own page has it
PORTAL_BASE: Final = "/rest-server"
MAX_NAMED: Final = 8  # failed tasks in one report
EXAMPLES: Final = (
    "openpai:https://pai.example.com/me/train, or with :PORTNAME (of the debug port), "
    "+RANKS (in each task), ,ssh (through OpenPAI's ssh)"
)
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
_ENDPOINT: Final = re.compile(
    r"(?P<server>(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?)(?P<base>(?:/[\w.~-]+)*?)/(?P<user>[\w.-]+)/(?P<job>[\w.-]+)"
    r"(?::(?P<name>[A-Za-z_]\w*))?(?:\+(?P<ranks>[1-9][0-9]{0,2}))?(?P<ssh>,ssh)?",
    re.ASCII,
)


@dataclass(frozen=True)
class JobName:
    """A parsed endpoint. `url`: of the job in the REST API, `secure`: nobody reads the token."""

    url: str
    user: str
    job: str
    wanted: PortChoice
    secure: bool
    by_ssh: bool = False

    @classmethod
    def read(cls, word: SourceSpec, port_name: str) -> JobName:
        """Parse an endpoint; `port_name` is used where it names no port. Raises `UsageError`."""
        found = _ENDPOINT.fullmatch(word.rest)
        if found is None or int(found["port"] or 1) not in range(1, LAST_PORT + 1):
            raise UsageError(f"{word.scheme}: not an OpenPAI job; one looks like {EXAMPLES}")
        base = found["base"] or PORTAL_BASE
        base = base.removesuffix("/api")
        job = quote(f"{found['user']}~{found['job']}", safe="~")
        return cls(
            url=f"{found['server']}{base}/api/v2/jobs/{job}",
            user=found["user"],
            job=found["job"],
            wanted=PortChoice(found["name"] or port_name, int(found["ranks"] or 1)),
            secure=found["scheme"] == "https" or found["host"] in _LOOPBACK,
            by_ssh=found["ssh"] is not None,
        )

    def __str__(self) -> str:
        """`job me/train`, for messages."""
        return f"job {self.user}/{self.job}"


# URL is the address of the cluster's web portal, or of its REST server (`URL/rest-server`; without
# a portal `http://HOST:9186/api`). Each task that has a port of this name (else the one that
# DEBUG_PORT_NAME names, else `debug`) is a rank, or RANKS of them; each role is a group. With
# `,ssh` ranks listen on the loopback of their node, and are reached through OpenPAI's ssh. The job
# is polled (GET /api/v2/jobs/USER~JOB; https://github.com/microsoft/pai, src/rest-server): a task's
# `containerIp` is its node's address. A port is a number, the first of those that the task has
# under that name, or, in clusters on YARN, a list in a string.
class OpenPai:
    """A `Source`: the ranks in the tasks of a job."""

    description = Description(help="openpai:URL/USER/JOB", tunnels=BY_CHOICE)
    lingers = inf  # OpenPAI says when the job is over; a task that is tried again is waited for

    def __init__(self, word: SourceSpec) -> None:
        port_name = os.environ.get(PORT_NAME) or DEFAULT_PORT_NAME
        self._name = JobName.read(word, port_name)
        self._job: JobDetail | None = None
        self._shown: Sequence[RankRecord] = ()
        self._news: list[str] = []
        self._ended = False
        self._failed: set[str] = set()
        if token_of(os.environ) and not self._name.secure:
            self._news.append("this is http: others on the network can read your token; use https")

    async def discover(self) -> Sequence[RankRecord]:
        """Return the ranks of the present tasks. Raises `DapMuxError`, with advice."""
        job = await self._look()
        if job.ended:
            raise NothingToConnect("; ".join(self.notices()))
        self._shown = ranks_of(job, self._name.wanted)
        return self._shown

    async def watch(self) -> AsyncIterator[Sequence[RankRecord]]:
        """Yield the ranks whenever they have changed; none once the job has ended.

        Raises `NothingToConnect` while the job has none.
        """
        while True:
            job = await self._look()
            ranks = [] if job.ended else ranks_of(job, self._name.wanted)
            if not ranks and not job.ended:  # the session would end
                why = job.state or "has no task that could be debugged now"
                raise NothingToConnect("; ".join([*self.notices(), f"{self._name} {why}"]))
            if ranks != self._shown or self._news:
                self._shown = ranks
                yield ranks
            await anyio.sleep(POLL_INTERVAL_S)

    def notices(self) -> Sequence[str]:
        """Return what has become of the job and its tasks since the last call."""
        told, self._news = self._news, []
        return told

    def exit_code(self, record: RankRecord) -> int | None:
        """Return that of its task, unless other ranks share the task."""
        if self._job is None or self._name.wanted.ranks > 1:
            return None
        id = container_of(record)
        ended = (task.container_exit_code for _, task in self._job.tasks() if task.is_in(id))
        return next(ended, None)

    def reach(
        self, records: Sequence[RankRecord], changed: OnReached, tell: Notify
    ) -> AbstractAsyncContextManager[None]:
        """Reach them directly, or by ssh into a task of their node, whose network tasks share."""
        if not self._name.by_ssh:
            return reach_directly(records, changed, tell)
        host = records[0].host
        where = f"[{host}]" if ":" in host else host
        return reach_by_ssh(f"ssh://root@{where}:{self._ssh_port(records)}", records, changed, tell)

    def _ssh_port(self, records: Sequence[RankRecord]) -> int:
        ids = [container_of(record) for record in records]
        for _, task in self._job.tasks() if self._job else ():
            if task.is_in(*ids) and (ports := task.ports(SSH)):
                return ports[0]
        raise NothingToConnect(
            f"the tasks on {records[0].host} have no ssh port: the ssh plugin of OpenPAI gives "
            "them one (under `extras` in the job, as in examples/openpai/job.yaml)"
        )

    async def _look(self) -> JobDetail:
        """Ask for the job, and note what is new."""
        answer = await get(self._name.url, token_of(os.environ))
        if answer.status != 200:
            raise _refusal(self._name, answer)
        job = self._job = read_detail(answer.body)
        if job.ended and not self._ended:
            self._news.append(f"{self._name} {job.state}")
        self._ended = job.ended
        self._note_failures(job)
        return job

    def _note_failures(self, job: JobDetail) -> None:
        failures = {
            f"{role}/{task.task_index}/{task.container_id}": failure_of(role, task)
            for role, task in job.tasks()
            if task.task_state == "FAILED"
        }
        new = [text for key, text in failures.items() if key not in self._failed]
        self._failed |= failures.keys()
        more = len(new) - MAX_NAMED
        self._news += new[:MAX_NAMED]
        self._news += [f"{more} more tasks have failed"] if more > 0 else []


class _ServerError(msgspec.Struct):
    message: str = ""


def _refusal(name: JobName, answer: Answer) -> NothingToConnect | Refused:
    """Say why the server does not describe the job, and what helps."""
    try:
        message = one_line(msgspec.json.decode(answer.body, type=_ServerError).message)[:200]
    except (msgspec.DecodeError, ValueError, RecursionError):
        message = ""
    said = f"{name}: the server answers {answer.status}" + (f" ({message})" if message else "")
    if answer.status == 401:
        return Refused(
            f"{said}: it wants a token, or another one. Put that of your profile page into a file "
            f"that only you can read, and name the file in {TOKEN_FILE} (or set {TOKEN})"
        )
    if answer.status == 403:
        return Refused(f"{said}: this user may not see the job")
    if answer.status == 404 and message:
        return NothingToConnect(f"{said}: check user and job, as in openpai:URL/USER/JOB")
    if answer.status == 404:
        return NothingToConnect(
            f"{said}: is this OpenPAI's address? Its REST server was looked for at {name.url}"
        )
    return NothingToConnect(said)
