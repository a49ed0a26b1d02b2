"""A report is bounded and without secrets; its page shows hostile texts as texts."""

from __future__ import annotations

import json
import random
import string
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, sync_playwright

from dap_mux.frontends.report.page import page_of
from dap_mux.frontends.report.report_file import (
    MAX_STOPS,
    VERSION,
    At,
    Contents,
    Failure,
    Frame,
    Printed,
    Report,
    Stop,
    Thread,
    Variable,
    read,
)
from dap_mux.frontends.report.writer import MAX_BYTES, write
from dap_mux.pure.protocol.messages import Body
from tests.vscode.code_server import Missing, chromium

PATH: Final = "/job/<b>train</b>.py"
HOSTILE: Final = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e&amp;\"'</pre>"
TREE: Final[Body] = {
    "ranks": "0-63",
    "ends": "0-63",
    "stopped": "0-63",
    "branches": [],
    "frames": [{"path": PATH, "name": HOSTILE, "line": 3, "library": False}],
}


def at(rank: int, values: Iterator[str]) -> At:
    """A rank that is stopped, whose values no other rank has."""
    frames = tuple(
        Frame(
            f"function_{depth}",
            PATH if depth < 5 else f"/usr/lib/python3/site-packages/torch/module_{depth}.py",
            depth + 1,
            tuple(Variable(f"name_{each}", next(values), "str") for each in range(20))
            if depth < 5
            else (),
            depth >= 5,
        )
        for depth in range(40)
    )
    failure = Failure("ValueError", HOSTILE, HOSTILE) if rank == 2 else None
    return At(str(rank), "stopped", HOSTILE, "", (Thread("MainThread", frames),), failure)


def contents(ranks: int, stops: int, length: int = 60) -> Contents:
    """What `record` keeps of so many ranks."""
    chance = random.Random(1)

    def texts() -> Iterator[str]:
        while True:
            yield HOSTILE + "".join(chance.choices(string.ascii_letters, k=length))

    values = texts()
    seen = tuple(
        Stop(
            float(number),
            HOSTILE,
            tuple(at(rank, values) for rank in range(ranks)),
            {HOSTILE: {"values": [{"ranks": "0", "value": HOSTILE, "outlier": True}]}},
            {"threads": [{"name": "MainThread", "branches": [TREE]}], "missing": []},
        )
        for number in range(stops)
    )
    report = Report(
        VERSION, HOSTILE, HOSTILE, ("torchrun", HOSTILE), tuple(range(ranks)), HOSTILE, 1,
        why={"verdict": HOSTILE, "sentence": HOSTILE, "evidence": [HOSTILE]},
        end_block=HOSTILE, states={HOSTILE: HOSTILE},
    )  # fmt: skip
    printed = (Printed(HOSTILE, "stdout", HOSTILE), Printed("\n".join([HOSTILE] * 9), "stderr"))
    return Contents(report, seen, printed, {PATH: f"{HOSTILE}\n" * 9})


@pytest.mark.slow
def test_64_ranks_that_all_differ_are_5_mb(tmp_path: Path) -> None:
    begin = time.perf_counter()
    page = write(tmp_path / "report.dapmux", contents(64, MAX_STOPS))
    took = time.perf_counter() - begin
    data = (tmp_path / "report.dapmux").read_bytes()
    print(f"{len(data):,} bytes, page {page.stat().st_size:,}, {took:.1f} s")
    assert 1_000_000 < len(data) <= MAX_BYTES
    assert page.stat().st_size <= MAX_BYTES
    found = read(data, "it")
    assert found.stops
    assert found.report.stops_before == MAX_STOPS - len(found.stops)


def test_both_files_are_for_this_user_alone(tmp_path: Path) -> None:
    page = write(tmp_path / "report.dapmux", contents(2, 1))
    assert sorted(tmp_path.iterdir()) == [tmp_path / "report.dapmux", page]
    assert [each.stat().st_mode & 0o777 for each in tmp_path.iterdir()] == [0o600, 0o600]


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    """A page of a real Chromium."""
    try:
        program = chromium()
    except Missing as missing:
        pytest.skip(str(missing))
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running.new_page()
        running.close()


def test_nothing_of_a_hostile_job_runs_or_loads(tmp_path: Path, browser: Page) -> None:
    said: list[str] = []
    browser.on("console", lambda message: said.append(message.text))
    browser.on("dialog", lambda dialog: said.append(dialog.message))
    browser.on("request", lambda request: said.append(request.url))
    path = tmp_path / "report.html"
    path.write_text(page_of(contents(4, 2)), "utf-8")
    browser.goto(path.as_uri())
    assert said == [path.as_uri()]
    elements = browser.evaluate(
        "[...new Set([...document.querySelectorAll('body *')].map(each => each.localName))]"
    )
    known = "div h1 h2 h3 p b pre table tbody tr th td details summary code mark".split()
    assert {*elements} <= {*known}, elements
    text = browser.inner_text("body")
    assert "<script>alert(1)</script>" in text
    assert "\\x1b[2J\\u202e" in text
    assert not [one for one in text if not one.isprintable() and one not in "\n\t"]
    assert browser.evaluate("getComputedStyle(document.body).maxWidth") != "none"  # its own style


def test_what_differs_is_marked(tmp_path: Path, browser: Page) -> None:
    ranks = (("0-1,3", "1.0"), ("2", "11.0"))
    ats = tuple(
        At(named, "stopped", "breakpoint", "", (Thread("MainThread", (frame,)),))
        for named, value in ranks
        for frame in [Frame("step", "/job/train.py", 2, (Variable("loss", value, "float"),))]
    )
    report = Report(VERSION, "dap-mux", "now", (), (0, 1, 2, 3), "the job ended", 0)
    source = {"/job/train.py": "def step():\n    return 1\n"}
    path = tmp_path / "report.html"
    path.write_text(page_of(Contents(report, (Stop(1.0, "here", ats),), (), source)), "utf-8")
    browser.goto(path.as_uri())
    assert browser.locator("tr.out").all_inner_texts() == ["loss\t2\t11.0"]
    assert browser.locator("mark").all_inner_texts() == ["    2      return 1"]
    assert browser.locator("h3").all_inner_texts()[0].startswith("ranks 0-3: stopped at train.py:2")
    assert json.dumps(browser.evaluate("document.title")) == '"the job ended"'
