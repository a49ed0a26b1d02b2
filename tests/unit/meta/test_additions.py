"""What an addition costs, as CONTRIBUTING says: each made here, and at these places alone.

A source of somebody else's is in `tests/unit/cluster/test_sources.py`.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path

import pytest

import dap_mux.rank.injected
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.requests import Handler, Route
from dap_mux.engine.routes import ROUTES, Parts
from dap_mux.engine.state.client import ClientRequest
from dap_mux.pure.insight.why import verdicts
from dap_mux.pure.insight.why.evidence import Evidence
from dap_mux.pure.insight.why.picture import Picture
from dap_mux.pure.insight.why.verdict import Verdict
from dap_mux.pure.remote import InjectedSources, call
from tests.engine.scenes import attached
from tests.support.scripted.playbook import Playbook

INJECTED = Path(dap_mux.rank.injected.__file__).parent


def test_a_request_is_a_row_and_its_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    def whoami(parts: Parts) -> Handler:
        def answer(request: ClientRequest) -> None:
            to_clients.respond(book.engine.core, request, {"role": request.client.role})

        return answer

    rows = {**ROUTES, "whoami": Route(whoami, observers=True)}
    monkeypatch.setattr("dap_mux.engine.engine.ROUTES", rows)
    book = Playbook(2)
    assert attached(book).ask("whoami").body == {"role": "controller"}
    assert attached(book, "guest", role="observer").ask("whoami").body == {"role": "observer"}


@pytest.mark.parametrize("folder", ["", "evidence"])
def test_an_injected_module_is_a_file(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(INJECTED, tmp_path / "somebodys_injected")
    added = tmp_path / "somebodys_injected" / folder / "answer.py"
    added.write_text("def answer(by):\n    return 21 * by\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = importlib.import_module("somebodys_injected").folders()
    del sys.modules["somebodys_injected"]  # the next one is imported anew
    assert found[folder]["answer"] == added.read_text()
    assert eval(call(InjectedSources(found)["answer"], "answer", "2")) == 42


def test_a_verdict_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def naps(picture: Picture) -> Verdict | None:
        return None if picture.live else Verdict("no rank is awake")

    nobody = Evidence({})
    before = verdicts.judge(nobody)
    monkeypatch.setattr(verdicts, "ORDER", {**verdicts.ORDER, "naps": naps})
    assert before.name == verdicts.UNDECIDED
    assert verdicts.judge(nobody) == Verdict("no rank is awake", name="naps")
