"""The reports of an engine's process, whatever it writes, and which Python it is started with."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest

from dap_mux.cluster.framework_source import FrameworkSource, met_clusters, python_with
from dap_mux.cluster.source import SourceSpec
from dap_mux.pure.errors import DapMuxError, NothingToConnect, UsageError

Engine: TypeAlias = Callable[[str], FrameworkSource]
RANK = {"host": "127.0.0.1", "port": 40001, "rank": 0, "group": "dask", "pid": 7}
SAYS_WHY_LATER = "import os, sys, time; os.close(1); time.sleep(0.3); sys.exit('nothing listens')"
WAITS_FOR_ITS_END = "import sys; sys.stdin.read()"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """Return what makes a source whose Python runs these statements instead of an engine."""

    def make(statements: str) -> FrameworkSource:
        program = tmp_path / "program.py"
        program.write_text(f"def report(line): print(line, flush=True)\n{statements}\n")
        python = tmp_path / "python"
        run = f'case "$1" in -c) exit 0;; *) exec "{sys.executable}" "{program}";; esac'
        python.write_text(f"#!/bin/sh\n{run}\n")
        python.chmod(0o755)
        return FrameworkSource(SourceSpec("dask", "tcp://127.0.0.1:8786", python))

    return make


def line(report: Mapping[str, Any]) -> str:
    return f"report({json.dumps(report)!r})"


async def test_ranks_notices_exits_and_the_end_are_passed_on(engine: Engine) -> None:
    source = engine(
        "\n".join(
            (
                line({"notice": "its dashboard is at :8787"}),
                line({"ranks": [RANK]}),
                line({"exited": {"group": "dask", "rank": 0, "code": -9}}),
                line({"ranks": [{**RANK, "waits": "its nanny restarts it", "port": None}]}),
                line({"end": True}),
            )
        )
    )
    (found,) = await source.discover()
    assert (found.endpoint, found.rank, found.group, found.pid) == ("127.0.0.1:40001", 0, "dask", 7)
    assert found.ready
    assert source.notices() == ["its dashboard is at :8787"]
    reports = [list(ranks) async for ranks in source.watch()]
    assert source.exit_code(found) == -9
    assert [[one.waits for one in ranks] for ranks in reports[-2:]] == [
        ["its nanny restarts it"],
        [],
    ]


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (line({"failed": "no scheduler there", "help": "start one"}), "no scheduler there; start"),
        ("import sys; sys.exit('nothing listens')", "has ended: nothing listens"),
        (SAYS_WHY_LATER, "has ended: nothing listens"),
        ("report('{')", "malformed report"),
        ("report('[]')", "malformed report"),
        ("report('5')", "malformed report"),
        (line({"ranks": 5}), "malformed report"),
        (line({"ranks": ["x"]}), "malformed report"),
        (line({"ranks": [{**RANK, "port": 70000}]}), "port must be a port"),
        (line({"ranks": [{**RANK, "host": 3}]}), "host must be text"),
        (line({"exited": {"group": "dask"}}), "malformed report"),
    ],
)
async def test_a_failure_or_a_malformed_report_is_an_error_in_words(
    engine: Engine, statements: str, message: str
) -> None:
    with pytest.raises(DapMuxError) as caught:
        await engine(statements).discover()
    assert message in str(caught.value)


async def test_the_process_ends_with_its_stdin_and_hears_of_stops(
    engine: Engine, tmp_path: Path
) -> None:
    heard = tmp_path / "heard"
    hear = f"import sys; open({str(heard)!r}, 'w').write(sys.stdin.read())"
    source = engine(f"{line({'ranks': [RANK]})}\n{hear}")
    await source.discover()
    source.paused(stopped=True)
    source.paused(stopped=False)
    with anyio.move_on_after(0):  # as a session that ends
        async for _ in source.watch():
            pass
    lines = heard.read_text().splitlines()
    assert [json.loads(one) for one in lines] == [{"stopped": True}, {"stopped": False}]


async def test_a_python_without_the_engine_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"has no no_such_engine; give the job's Python"):
        await python_with("no_such_engine", Path(sys.executable))


async def test_the_first_python_that_has_the_engine_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = tmp_path / "python"
    without.write_text("#!/bin/sh\nexit 1\n")
    without.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(sys.executable).parent}")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert await python_with("debugpy") == str(Path(sys.executable).with_name("python"))
    with pytest.raises(UsageError, match=f"no Python with no_such_engine found \\(tried {without}"):
        await python_with("no_such_engine")


async def test_our_own_python_comes_last_where_its_environment_is_not_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert await python_with("debugpy") == sys.executable


async def test_no_report_in_time_is_an_error(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dap_mux.cluster.framework_source.FIRST_REPORT_TIMEOUT_S", 0.1)
    with pytest.raises(NothingToConnect, match=r"no response within 0\.1 s"):
        await engine(WAITS_FOR_ITS_END).discover()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}" * 2, "\0"])
async def test_a_file_that_names_no_cluster_keeps_nobody_from_the_next(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "a.cluster").write_text(text)
    (tmp_path / "b.cluster").write_text('{"endpoint": "ray:127.0.0.1:1", "python": "/bin/python"}')
    async for cluster in met_clusters(tmp_path):
        assert cluster.python == Path("/bin/python")
        break
