"""OpenPAI jobs: the endpoint, the job's description, whatever a server may answer, the token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dap_mux.cluster.openpai.rest import token_of
from dap_mux.cluster.openpai.source import (
    JobName,
    OpenPai,
    PortChoice,
    Task,
    failure_of,
    ranks_of,
    read_detail,
)
from dap_mux.cluster.source import SourceSpec
from dap_mux.pure.errors import DapMuxError, Refused, UsageError
from tests.conftest import rounds
from tests.support.openpai_server import TOKEN

Json = dict[str, Any]
DEBUG = PortChoice("debug")
PAI = "https://pai.example.com"


@pytest.mark.parametrize(
    ("rest", "url", "wanted", "by_ssh"),
    [
        (f"{PAI}/me/train", f"{PAI}/rest-server/api/v2/jobs/me~train", DEBUG, False),
        (f"{PAI}/rest-server/me/train", f"{PAI}/rest-server/api/v2/jobs/me~train", DEBUG, False),
        (f"{PAI}/x/rest-server/api/me/t", f"{PAI}/x/rest-server/api/v2/jobs/me~t", DEBUG, False),
        ("http://node1:9186/api/me/t", "http://node1:9186/api/v2/jobs/me~t", DEBUG, False),
        ("http://[::1]:9186/api/me/t", "http://[::1]:9186/api/v2/jobs/me~t", DEBUG, False),
        (f"{PAI}/me/t:dbg", f"{PAI}/rest-server/api/v2/jobs/me~t", PortChoice("dbg"), False),
        (f"{PAI}/me/t:dbg+4,ssh", f"{PAI}/rest-server/api/v2/jobs/me~t",
         PortChoice("dbg", 4), True),
        (f"{PAI}:8443/a.b/t-1+2", f"{PAI}:8443/rest-server/api/v2/jobs/a.b~t-1",
         PortChoice("debug", 2), False),
    ],
)  # fmt: skip
def test_an_endpoint(rest: str, url: str, wanted: PortChoice, by_ssh: bool) -> None:
    name = JobName.read(SourceSpec("openpai", rest), "debug")
    assert (name.url, name.wanted, name.by_ssh) == (url, wanted, by_ssh)


@pytest.mark.parametrize(
    "rest",
    [
        "", "me/train", "pai.example.com/me/train", f"{PAI}/train", f"{PAI}/me/", "ftp://x/me/train",
        "https://me:secret@pai.example.com/me/train", f"{PAI}/me/train?token=secret",
        f"{PAI}:0/me/train", f"{PAI}:65536/me/train", f"{PAI}/me/train+0", f"{PAI}/me/t:8080",
        f"{PAI}/me/train\nX: y", f"{PAI}/m%65/train", "https:///me/train", f"{PAI}/me/train#x",
    ],
)  # fmt: skip
def test_no_endpoint(rest: str) -> None:
    """What might hold a secret is not repeated."""
    with pytest.raises(UsageError, match="not an OpenPAI job; one looks like openpai:") as caught:
        JobName.read(SourceSpec("openpai", rest), "debug")
    assert "secret" not in str(caught.value)


def test_the_port_name_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUG_PORT_NAME", "pdb")
    source = OpenPai(SourceSpec("openpai", f"{PAI}/me/train"))
    assert source._name.wanted == PortChoice("pdb")
    named = OpenPai(SourceSpec("openpai", f"{PAI}/me/train:other"))
    assert named._name.wanted == PortChoice("other")


# The job's description


def task(index: int, ports: Json | None = None, **fields: Any) -> Json:
    if ports is None:
        ports = {"ssh": 20000 + index, "debug": 30000 + index}
    return {
        "taskIndex": index,
        "taskState": "RUNNING",
        "containerId": f"c{index}",
        "containerIp": f"10.0.0.{index + 1}",
        "containerPorts": ports,
        "containerExitCode": None,
        **fields,
    }


def job(state: str = "RUNNING", status: Json | None = None, **roles: list[Json]) -> bytes:
    tasks = {name: {"taskStatuses": each} for name, each in roles.items()}
    told = {"state": state, **(status or {})}
    return json.dumps({"name": "train", "jobStatus": told, "taskRoles": tasks}).encode()


def rows(body: bytes, wanted: PortChoice = DEBUG) -> list[tuple[str, int | None, str]]:
    found = ranks_of(read_detail(body), wanted)
    return [(each.group, each.rank, each.endpoint) for each in found]


def test_each_role_is_a_group_and_each_task_a_rank() -> None:
    """A role without the port has no ranks."""
    body = job(worker=[task(1), task(0)], ps=[task(0)], tensorboard=[task(0, {"http": 1})])
    assert rows(body) == [
        ("ps", 0, "10.0.0.1:30000"),
        ("worker", 0, "10.0.0.1:30000"),
        ("worker", 1, "10.0.0.2:30001"),
    ]


def test_several_ranks_in_each_task() -> None:
    """A number is the first port of a task; on YARN all are in a string."""
    one = task(0, {"debug": 30000})
    other = task(1, {"debug": "31007,31009"}, containerIp="fd00::2")
    assert rows(job(worker=[one, other]), PortChoice("debug", 2)) == [
        ("worker", 0, "10.0.0.1:30000"),
        ("worker", 1, "10.0.0.1:30001"),
        ("worker", 2, "[fd00::2]:31007"),
        ("worker", 3, "[fd00::2]:31009"),
    ]


def test_who_has_ended_is_left_out_and_who_waits_says_so() -> None:
    waiting = task(1, containerIp=None, containerId=None, taskState="WAITING")
    body = job(w=[task(0, taskState="SUCCEEDED"), waiting, task(2, containerIp=None)])
    found = ranks_of(read_detail(body), DEBUG)
    assert [(each.rank, each.host, each.waits) for each in found] == [
        (1, "w/1", "task w/1 is WAITING, to be started or tried again"),
        (2, "w/2", "task w/2 has no address yet"),
    ]


def test_a_container_that_is_started_again_is_another_process() -> None:
    first, second = (
        ranks_of(read_detail(job(w=[task(0, containerId=each)])), DEBUG) for each in "ab"
    )
    assert first[0].incarnation != second[0].incarnation


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"", "this is no job as OpenPAI describes it"),
        (b"<html>Log in</html>", "this is no job as OpenPAI describes it"),
        (b"[]", "Expected `object`, got `array`"),
        (b"null", "got `null`"),
        (b"{}", "missing required field `jobStatus`"),
        (b'{"jobStatus": {"state": 7}}', "Expected `str`, got `int` - at `$.jobStatus.state`"),
        (b'{"jobStatus": {"state": "RUNNING"}, "taskRoles": 5}', "at `$.taskRoles`"),
        (b'{"jobStatus": {"state": "\xff"}}', "this is no job"),
        (b'{"jobStatus": {"state": "RUNNING"}, "x": ' + b"[" * 200_000, "nested too deeply"),
        (job(w=[task(-1)]), "at `$.taskRoles[...].taskStatuses[0].taskIndex`"),
        (job(w=[task(10**30)]), "taskIndex"),
        (job(w=[task(0, taskState=None)]), "taskState"),
        (job(w=[task(0, {"debug": {"start": 1}})]), "containerPorts"),
        (job(w=[task(0, {"debug": 0})]), "port debug of task 0 is 0, which is no port"),
        (job(w=[task(0, {"debug": 65536})]), "is 65536, which is no port"),
        (job(w=[task(0, {"debug": "1;id"})]), "is '1;id', which is no port"),
        (job(w=[task(0, {"debug": "1,"})]), "is '1,', which is no port"),
        (job(w=[task(0, {"debug": -5})]), "is -5, which is no port"),
        (job(w=[task(0, containerIp="-oProxyCommand=id")]), "-oProxyCommand=id', which is no"),
        (job(w=[task(0, containerIp="10.0.0.1\n")]), r"'10.0.0.1\\n', which is no host"),
        (job(w=[task(0, containerIp="a b")]), "which is no host"),
        (job(w=[task(0, {"ssh": 1, "h\x1b": 2})]),
         r"no task has a port 'debug'; there are h\x1b, ssh. Ask for it under"),
    ],
)  # fmt: skip
def test_a_description_that_makes_no_sense(body: bytes, complaint: str) -> None:
    with pytest.raises(DapMuxError) as caught:
        ranks_of(read_detail(body), DEBUG)
    assert complaint in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


@settings(deadline=None, max_examples=rounds(300))
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["jobStatus", "taskRoles", "taskStatuses", "state", "taskIndex", "taskState",
                 "containerIp", "containerPorts", "debug", "w"]
            ),
            inner,
            max_size=5,
        ),
        max_leaves=25,
    )
)  # fmt: skip
def test_any_description_is_ranks_or_an_error_of_ours(value: object) -> None:
    body = json.dumps(value).encode()
    try:
        found = ranks_of(read_detail(body), DEBUG)
    except DapMuxError as error:
        assert str(error)
        return
    assert all(each.rank is not None and 0 < each.port < 65536 for each in found)


def test_too_few_ports_for_the_ranks_of_a_task() -> None:
    with pytest.raises(UsageError, match=r"task w/0 has not 4 ports debug: ask .*\(debug: 4\)"):
        rows(job(w=[task(0, {"debug": "1,2"})]), PortChoice("debug", 4))
    with pytest.raises(UsageError, match="has not 4 ports"):
        rows(job(w=[task(0, {"debug": 65533})]), PortChoice("debug", 4))


@pytest.mark.parametrize(
    ("body", "state"),
    [
        (job(), ""),
        (job("STOPPING"), ""),
        (job("WAITING", {"subState": "AttemptPreparing"}), "waits (AttemptPreparing)"),
        (job("SUCCEEDED", {"appExitCode": 0}), "is complete"),
        (job("STOPPED", {"appExitCode": -210}), "was stopped: exit code -210"),
        (job("FAILED"), "has failed"),
        (job("FAILED", {"appExitCode": 1, "appExitTriggerTaskRoleName": "ps\n",
                        "appExitTriggerTaskIndex": 2}),
         r"has failed: exit code 1 (first task ps\n/2)"),
    ],
)  # fmt: skip
def test_how_a_job_is(body: bytes, state: str) -> None:
    assert read_detail(body).state == state


def test_a_task_without_a_debugger_is_explained() -> None:
    failed = msgspec.convert(
        task(3, taskState="FAILED", containerExitCode=124, containerLog="http://n/log"), Task
    )
    assert failure_of("train", failed) == (
        "task train/3 has failed: exit code 124 (a rank exits with it when no debugger has "
        "attached within its DEBUG_TIMEOUT); its log: http://n/log"
    )


# The token


def test_a_token_of_a_file_goes_before_that_of_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    assert token_of({"OPENPAI_TOKEN_FILE": str(file), "OPENPAI_TOKEN": "other"}) == TOKEN
    assert token_of({"OPENPAI_TOKEN": f" {TOKEN}\n"}) == TOKEN
    assert token_of({}) == ""


@pytest.mark.parametrize(
    ("text", "mode", "complaint"),
    [
        (TOKEN, 0o644, "other users can read"),
        ("", 0o600, "holds no token"),
        ("two words secret", 0o600, "holds no token"),
        ("secret\r\nX-Evil: 1", 0o600, "holds no token"),
        ("secrét", 0o600, "holds no token"),
        ("secret" * 5000, 0o600, "holds no token"),
    ],
)
def test_a_token_that_is_none(tmp_path: Path, text: str, mode: int, complaint: str) -> None:
    file = tmp_path / "token"
    file.write_text(text, "utf-8")
    file.chmod(mode)
    with pytest.raises(Refused, match=complaint) as caught:
        token_of({"OPENPAI_TOKEN_FILE": str(file)})
    assert "secret" not in str(caught.value)


def test_a_token_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"OPENPAI_TOKEN_FILE: .*cannot be read: No such file"):
        token_of({"OPENPAI_TOKEN_FILE": str(tmp_path / "none")})
    with pytest.raises(Refused, match="OPENPAI_TOKEN holds no token"):
        token_of({"OPENPAI_TOKEN": "a b"})


@pytest.mark.parametrize(
    ("url", "warned"), [("http://pai.example.com", True), (PAI, False), ("http://127.0.0.1", False)]
)
def test_a_token_that_others_could_read_on_its_way(
    url: str, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENPAI_TOKEN", TOKEN)
    told = OpenPai(SourceSpec("openpai", f"{url}/me/train")).notices()
    assert ["this is http: others on the network can read your token; use https"] * warned == told
