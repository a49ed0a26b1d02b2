"""docs/openpai.md: real ranks in the tasks of a job that a REST server like OpenPAI's describes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.launchers import tour
from tests.launchers.openpai_ranks import ROOT, Ranks, in_task, job_command, tasks
from tests.launchers.pages import ours, typed
from tests.real.command_line.test_docs_ranks import platform
from tests.real.driving import COUNTING, joined
from tests.support.hosts.private_network import inside, possible
from tests.support.hosts.ssh_hosts import SshHosts, ssh_hosts
from tests.support.openpai_server import TOKEN, OpenPaiServer, Task, openpai_server
from tests.support.processes.commands import LIMIT, User, line_of, listed
from tests.support.processes.proc_net import free_ports
from tests.support.security import certificate_in

pytestmark = pytest.mark.timeout(240)
PAGE: Final = (ROOT / "docs/openpai.md").read_text("utf-8")
URL: Final = "https://pai.example.com"
COUNT: Final = line_of(COUNTING, "count")


@pytest.fixture
async def ranks(user: User) -> AsyncIterator[Ranks]:
    made = Ranks(user)
    yield made
    await made.close()


@pytest.fixture
async def server(user: User) -> AsyncIterator[OpenPaiServer]:
    async with openpai_server() as made:
        yield made


def typed_token(user: User) -> dict[str, str]:
    """Do what the page's first line does: name the file, which has the token."""
    (export, name), *_ = typed("openpai.md", 0)
    assert export == "export"
    variable, _, path = name.partition("=")
    file = Path(path.replace("~", user.environ["HOME"]))
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    return {variable: path}


@pytest.fixture
async def ssh(tmp_path_factory: pytest.TempPathFactory, user: User) -> AsyncIterator[SshHosts]:
    """Two nodes that the user's ssh has a key for."""
    if not possible():
        pytest.skip("only root may make hosts with own networks")
    async with ssh_hosts(tmp_path_factory.mktemp("hosts")) as hosts:
        user.environ.update(hosts.environ)
        yield hosts


async def test_the_page(ssh: SshHosts, user: User, ranks: Ranks) -> None:
    """The job of the example, two tasks on each node, through OpenPAI's ssh."""
    command = job_command()
    assert command.endswith(" ".join([*typed("openpai.md", 2)[0], "--seconds 0"]))
    shutil.copy(tour.PROGRAM, user.folder)
    nodes = [host for host in ssh.hosts for _ in range(2)]
    base = 21000
    async with openpai_server() as server:
        server.token = TOKEN
        server.roles["train"] = made = tasks(base, 4, ssh=22)
        for index, (task, node) in enumerate(zip(made, nodes, strict=True)):
            task.runs(node.address)
            environ = platform(index, base)
            environ.update({f"PAI_HOST_IP_train_{n}": nodes[n].address for n in range(4)})
            await ranks.start(command, environ, inside(node.namespace))
        await ranks.listen(4)
        words = ours(typed("openpai.md", 0)[1], URL, server.url)
        attach = await user.start(*words, env=typed_token(user))
        client = await attach.client()
        await tour.attach(client, str(user.folder / tour.PROGRAM.name))
        await tour.two_held(client)
        entries = await listed(client, "group", *["train"] * 4)
        assert [each["host"] for each in entries] == [node.address for node in nodes]
        table = await user.does(*ours(typed("openpai.md", 1)[0]))
        assert table.code == 0
        assert all(node.address in table.out for node in ssh.hosts)
        await tour.ask_and_step(client)
        await tour.let_go(client)
        assert [await ranks.ends(index) for index in range(4)] == [0] * 4, ranks.output()
        tour.check_result(ranks.output(), steps=20)
        for task in made:
            task.ends(0)
        server.ends(0)
        await tour.over(client, attach)
        assert "job me/train is complete" in attach.err
        assert {said for _, said in server.asked} == {f"Bearer {TOKEN}"}
        assert TOKEN not in attach.err + attach.out
        await user.nothing_is_left(within=LIMIT)


async def test_roles_are_groups(user: User, ranks: Ranks, server: OpenPaiServer) -> None:
    """Two roles with the port, one of them with two ranks in its task, and one without."""
    base = free_ports(4)
    server.roles = {
        "worker": tasks(base, 1),
        "ps": [Task(0, {"debug": f"{base + 2},{base + 3}"})],  # as clusters on YARN have it
        "tensorboard": [Task(0, {"http": 6006})],
    }
    for role in server.roles.values():
        role[0].runs()
    for port in range(base, base + 4):
        await ranks.counts({"RANK": str((port - base) % 2), "WORLD_SIZE": "2"}, "--port", str(port))
    await ranks.listen(4)
    attach = await user.start("attach", f"openpai:{server.url}/me/train+2")
    client = await joined(attach, {COUNTING: [{"line": COUNT}]}, attach={})
    entries = await listed(client, "line", *[COUNT] * 4)
    found = {(each["group"], each["rank"]): each["endpoint"].rpartition(":")[2] for each in entries}
    assert found == {
        ("worker", 0): str(base),
        ("worker", 1): str(base + 1),
        ("ps", 0): str(base + 2),
        ("ps", 1): str(base + 3),
    }


async def test_a_job_that_waits_fails_and_is_tried_again(
    user: User, ranks: Ranks, server: OpenPaiServer
) -> None:
    base = free_ports(2)
    server.state, server.sub_state = "WAITING", "AttemptPreparing"
    attach = await user.start("attach", f"openpai:{server.url}/me/train")
    await attach.says("no ranks yet; waiting for them")
    await attach.says("job me/train waits (AttemptPreparing); retrying")
    client = await joined(attach, {COUNTING: [{"line": COUNT}]}, attach={})

    server.state, server.sub_state = "RUNNING", "AttemptRunning"
    server.roles["train"] = first, second = tasks(base, 2)
    second.waits()
    await ranks.counts(in_task(0, base))
    why = "task train/1 is WAITING, to be started or tried again"
    await listed(client, "reason", "breakpoint", why)
    lost = await ranks.counts(in_task(1, base))
    second.runs()
    await listed(client, "line", COUNT, COUNT)

    os.kill(ranks.processes[lost].pid, signal.SIGKILL)
    await ranks.ends(lost)
    second.waits()
    await listed(client, "reason", "breakpoint", why)
    again = await ranks.counts(in_task(1, base))
    second.runs()
    await listed(client, "line", COUNT, COUNT)

    ranks.done.touch()
    await tour.let_go(client)
    assert [await ranks.ends(place) for place in (0, again)] == [0, 0]
    first.ends(0)
    second.ends(3)
    server.ends(3, role="train", index=1)
    await tour.over(client, attach)
    assert "task train/1 has failed: exit code 3; its log: http://127.0.0.1:9103/" in attach.err
    assert "job me/train has failed: exit code 3 (first task train/1)" in attach.err
    again_attached = await user.does("attach", f"openpai:{server.url}/me/train")
    assert again_attached.code == 3
    assert "job me/train has failed: exit code 3 (first task train/1)" in again_attached.err


async def test_a_task_without_a_debugger_is_named(
    user: User, ranks: Ranks, server: OpenPaiServer
) -> None:
    base = free_ports(2)
    server.roles["train"] = first, second = tasks(base, 2)
    late = await ranks.counts(in_task(1, base, DEBUG_TIMEOUT="0.1"))
    second.ends(await ranks.ends(late))
    assert "had no debugger attached within 0.1 s; exiting" in ranks.output()
    await ranks.counts(in_task(0, base))
    attach = await user.start("attach", f"openpai:{server.url}/me/train")
    await attach.says("task train/1 has failed: exit code 124 (a rank exits with it when no")
    client = await joined(attach, attach={})
    entries = await listed(client, "state", "running")
    assert [each["rank"] for each in entries] == [first.index]


@pytest.mark.parametrize(
    ("change", "code", "complaint"),
    [
        ({"token": TOKEN}, 4, ("the server answers 401 (Guest is not allowed to do this operation.)"
         ": it wants a token, or another one. Put that of your profile page into a file")),
        ({"job": "trian"}, 3, ("job me/trian: the server answers 404 (Job me~trian is not found.): "
         "check user and job")),
        ({"base": "/somewhere"}, 3, "check user and job"),
        ({"body": "<html>"}, 2, "this is no job as OpenPAI describes it"),
        ({"body": '{"jobStatus": {"state": "RUNNING"}, "taskRoles": {"w": {"taskStatuses": '
          '[{"taskIndex": 0, "taskState": "RUNNING", "containerIp": "-oX=\\u001b[2J", '
          '"containerPorts": {"debug": 1}}]}}}'}, 2, "which is no host"),
        ({"ports": {"http": 80}}, 3, ("no task has a port 'debug'; there are http. Ask for it "
         "under resourcePerInstance.ports (debug: 1), or name another")),
    ],
)  # fmt: skip
async def test_a_job_that_cannot_be_found(
    user: User, server: OpenPaiServer, change: dict[str, Any], code: int, complaint: str
) -> None:
    server.token = change.get("token", "")
    server.roles["w"] = [Task(0, change.get("ports", {"debug": 1}))]
    if "body" in change:
        server.say(200, change["body"])
    endpoint = f"openpai:{server.url}{change.get('base', '')}/me/{change.get('job', 'train')}"
    done = await user.does("attach", endpoint)
    assert done.code == code, done.err
    assert complaint in done.err
    assert "Traceback" not in done.err
    assert "\x1b" not in done.err


async def test_the_certificate_is_verified(user: User) -> None:
    """And one of an authority of your own is named as OpenSSL has it."""
    certificate = certificate_in(user.folder / "certificate.pem")
    async with openpai_server(certificate) as server:
        server.ends(0)
        endpoint, token = f"openpai:{server.url}/me/train", {"OPENPAI_TOKEN": TOKEN}
        done = await user.does("attach", endpoint, env=token)
        assert done.code == 3
        assert "its certificate cannot be verified (self-signed certificate)" in done.err
        assert "SSL_CERT_FILE" in done.err
        assert not server.asked
        trusted = {**token, "SSL_CERT_FILE": str(certificate)}
        done = await user.does("attach", endpoint, env=trusted)
        assert "job me/train is complete" in done.err
        assert server.asked == [("/rest-server/api/v2/jobs/me~train", f"Bearer {TOKEN}")]


async def test_a_token_that_others_can_read_is_refused(user: User, server: OpenPaiServer) -> None:
    environ = typed_token(user)
    (Path(user.environ["HOME"]) / ".openpai-token").chmod(0o644)
    done = await user.does("attach", f"openpai:{server.url}/me/train", env=environ)
    assert done.code == 4
    assert "other users can read" in done.err
    assert TOKEN not in done.err
    assert not server.asked


async def test_a_redirect_to_another_server_is_refused(user: User, server: OpenPaiServer) -> None:
    async with openpai_server() as other:
        server.say(302, "", Location=f"{other.url}/rest-server/api/v2/jobs/me~train")
        done = await user.does(
            "attach", f"openpai:{server.url}/me/train", env={"OPENPAI_TOKEN": TOKEN}
        )
        assert done.code == 4
        assert f"redirects to {other.url}, which is not followed" in done.err
        assert TOKEN not in done.err
        assert not other.asked


async def test_tasks_without_ssh(user: User, server: OpenPaiServer) -> None:
    server.roles["w"] = tasks(free_ports(1), 1)
    attach = await user.start("attach", f"openpai:{server.url}/me/train,ssh")
    await attach.says("the tasks on 127.0.0.1 have no ssh port")
    client = await joined(attach, attach={})
    await listed(
        client,
        "reason",
        "the tasks on 127.0.0.1 have no ssh port: the ssh plugin of OpenPAI gives them one (under "
        "`extras` in the job, as in examples/openpai/job.yaml)",
    )


def test_the_launch_configuration_on_the_page_attaches_as_the_command_does() -> None:
    (block,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert [json.loads(block)["cluster"]] == ours(typed("openpai.md", 0)[1])[1:]
