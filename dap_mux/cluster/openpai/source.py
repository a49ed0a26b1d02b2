"""The ranks of an OpenPAI job: `openpai:URL/USER/JOB[:PORTNAME][+RANKS][,ssh]`.

URL is the address of the cluster's web portal, or of its REST server (`URL/rest-server`; without a
portal `http://HOST:9186/api`). Each task that has a port of this name (else the one that
DEBUG_PORT_NAME names, else `debug`) is a rank, or RANKS of them; each role is a group. With `,ssh`
ranks listen on the loopback of their node, and are reached through OpenPAI's ssh. The job is
polled.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from math import inf
from typing import Final
from urllib.parse import quote

import anyio
import msgspec

from dap_mux.cluster.openpai.job_detail import (
    SSH,
    JobDetail,
    PortChoice,
    container_of,
    failure_of,
    ranks_of,
    read_detail,
)
from dap_mux.cluster.openpai.rest import TOKEN, TOKEN_FILE, Answer, get, token_of
from dap_mux.cluster.records import LAST_PORT, RankRecord
from dap_mux.cluster.source import (
    BY_CHOICE,
    Description,
    Notify,
    OnReached,
    SourceSpec,
    reach_directly,
)
from dap_mux.cluster.ssh import reach_by_ssh
from dap_mux.errors import NothingToConnect, Refused, UsageError
from dap_mux.printable import one_line

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
