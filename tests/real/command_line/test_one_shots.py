"""`list`, `sessions` and `config show` where there is none, one or several sessions."""

from __future__ import annotations

import json

import pytest

from dap_mux.pure.rank_sets import STATES
from tests.support.processes.commands import User
from tests.support.processes.proc_net import free_ports

pytestmark = pytest.mark.real


@pytest.mark.heavy
async def test_none_one_or_two_sessions(user: User) -> None:
    done = await user.does("list", "--json")
    assert (done.code, done.out) == (3, "")
    assert "you have no running session on this machine; start one with" in done.err

    base = free_ports(3)  # nobody listens there, which a session can wait for
    one = await user.start("attach", f":{base}")
    first = (await one.session())["port"]
    body = json.loads((await user.does("list", "--json")).out)
    assert body["counts"] == {state: int(state == "waiting") for state in STATES}
    assert (await user.does("list")).out.splitlines()[-1] == "1 rank: 1 waiting"

    two = await user.start("attach", f"b=:{base + 1}+2")
    second = (await two.session())["port"]
    done = await user.does("list")
    assert done.code == 3
    assert (
        f"2 sessions are running; say which one: 127.0.0.1:{first}, 127.0.0.1:{second}" in done.err
    )
    for word in (f"127.0.0.1:{second}", str(two.session_path)):
        body = json.loads((await user.does("list", word, "--json")).out)
        assert [(entry["group"], entry["rank"]) for entry in body["ranks"]] == [("b", 0), ("b", 1)]

    shown = json.loads((await user.does("sessions", "--json")).out)
    assert [(entry["session"], entry["pid"], entry["groups"]) for entry in shown] == [
        (f"127.0.0.1:{first}", one.process.pid, ["job"]),
        (f"127.0.0.1:{second}", two.process.pid, ["b"]),
    ]
    assert set(shown[0]) == {"session", "host", "port", "unix", "pid", "groups", "started"}

    one.process.kill()
    await one.ends()
    assert one.session_path.exists(), "nobody was left to remove it"
    body = json.loads((await user.does("list", "--json")).out)
    assert [entry["group"] for entry in body["ranks"]] == ["b", "b"]
    done = await user.does("list", str(one.session_path))
    assert done.code == 3
    assert "has ended" in done.err
