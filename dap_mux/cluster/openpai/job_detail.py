"""Reads the description of a job (GET /api/v2/jobs/USER~JOB) into ranks.

https://github.com/microsoft/pai, src/rest-server: a task's `containerIp` is its node's address. A
port is a number, the first of those that the task has under that name, or, in clusters on YARN, a
list in a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Final

import msgspec

from dap_mux.cluster.records import LAST_PORT, RankRecord, group_name
from dap_mux.errors import NothingToConnect, UsageError
from dap_mux.printable import one_line

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
