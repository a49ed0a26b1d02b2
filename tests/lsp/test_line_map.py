"""Where lines are after edits, and which text of a file a rank runs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.frontends.lsp.file_versions import MAX_VERSIONS, FileVersions, line_after
from dap_mux.frontends.lsp.launch_json import encoding_problem

BEFORE = """\
def train():
    loss = 0
    for step in range(9):
        loss = loss + 1
    return loss


train()
"""
STEP = 4


def after(*changes: tuple[str, str]) -> str:
    """The text with these replacements."""
    now = BEFORE
    for old, new in changes:
        assert now.count(old) == 1
        now = now.replace(old, new)
    return now


@pytest.mark.parametrize(
    ("now", "line"),
    [
        (BEFORE, 4),
        ("import os\nimport sys\n" + BEFORE, 6),
        (after(("    loss = 0\n", "")), 3),
        (after(("loss + 1\n", "loss + 1\n        print(loss)\n")), 4),
        (after(("loss + 1", "loss + 2  # two")), 4),
        (after(("        loss = loss + 1\n", "        print(step)\n        loss = loss + 2\n")), 5),
        (after(("        loss = loss + 1\n", "")), None),
        (after(("def train():\n", "")) + "\n# the end\n", 3),
        ("import os\n" + after(("    return loss\n", "    return 2 * loss\n")), 5),
        (BEFORE.replace("\n", "\r\n"), 4),
        ("", None),
    ],
    ids=[
        "nothing",
        "inserted above",
        "deleted above",
        "inserted below",
        "the line itself",
        "the line itself and one above",
        "the line is gone",
        "the first and the last line",
        "above and below",
        "other line ends",
        "all is gone",
    ],
)
def test_where_a_line_is(now: str, line: int | None) -> None:
    assert line_after(STEP, BEFORE, now) == line


def test_lines_that_a_text_never_had() -> None:
    found = [line_after(line, BEFORE, "x\n" + BEFORE) for line in (-1, 0, 99)]
    assert found == [None, None, None]


def test_a_form_feed_is_no_line_end() -> None:
    """Python does not count it, and neither does LSP."""
    assert line_after(3, "a\n\x0c\nb\n", "new\na\n\x0c\nb\n") == 4


LINES = st.lists(st.sampled_from(["a", "b", "c", "pass", ""]), max_size=12)


@given(LINES, LINES)
def test_lines_keep_their_order_and_what_is_equal_is_found(
    before: list[str], now: list[str]
) -> None:
    texts = "\n".join(before), "\n".join(now)
    found = [line_after(number, *texts) for number in range(1, len(before) + 1)]
    kept = [line for line in found if line is not None]
    assert kept == sorted(set(kept))
    assert all(1 <= line <= max(len(now), 1) for line in kept)


@given(LINES, LINES)
def test_what_is_inserted_moves_what_is_below(before: list[str], new: list[str]) -> None:
    marked = [f"{number}: {text}" for number, text in enumerate(before)]
    texts = "\n".join(["first", *marked]), "\n".join(["first", *new, *marked])
    assert [line_after(number + 2, *texts) for number in range(len(before))] == [
        number + 2 + len(new) for number in range(len(before))
    ]


@pytest.mark.timeout(30)
def test_a_long_text_that_is_new_altogether() -> None:
    before = "\n".join(f"x{number} = {number}" for number in range(20_000))
    now = "\n".join(f"y{number} = {-number}" for number in range(19_000))
    line_after(1, before, now)


def test_a_text_that_has_not_changed_costs_nothing() -> None:
    assert line_after(99, BEFORE, BEFORE) == 99, "it is not even looked at"


class File:
    """A file whose times are told, not measured."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "train.py"

    def write(self, text: str, at: float) -> None:
        """Save it at a time."""
        self.path.write_text(text, "utf-8")
        os.utime(self.path, (at, at))


def test_a_rank_runs_what_the_file_was_when_it_started(tmp_path: Path) -> None:
    file = File(tmp_path)
    file.write(BEFORE, at=100)
    versions = FileVersions(str(file.path), BEFORE)
    longer = "import os\n" + BEFORE
    assert versions.line_now(STEP, 150, longer) == STEP + 1, "it is not saved"
    file.write(longer, at=200)
    versions.look()
    assert versions.line_now(STEP, 150, longer) == STEP + 1, "the rank has not changed"
    assert versions.line_now(STEP, 250, longer) == STEP, "it has started since"
    assert versions.line_now(STEP, 250, "import sys\n" + longer) == STEP + 1
    assert versions.line_now(STEP, 50, BEFORE) == STEP, "what it ran is not known"


def test_a_file_that_another_program_has_changed(tmp_path: Path) -> None:
    """It may be older than the one that it replaces."""
    file = File(tmp_path)
    file.write(BEFORE, at=100)
    versions = FileVersions(str(file.path), BEFORE)
    before = time.time()
    file.write("\n" + BEFORE, at=50)
    versions.look()
    assert versions.line_now(STEP, before, "\n" + BEFORE) == STEP + 1
    assert versions.line_now(STEP, time.time(), "\n" + BEFORE) == STEP


def test_a_file_that_is_not_here_is_what_was_opened(tmp_path: Path) -> None:
    versions = FileVersions(str(tmp_path / "gone.py"), BEFORE)
    assert versions.line_now(STEP, 1, "\n" + BEFORE) == STEP + 1


def test_the_first_and_the_last_versions_are_kept(tmp_path: Path) -> None:
    file = File(tmp_path)
    file.write(BEFORE, at=1)
    versions = FileVersions(str(file.path), BEFORE)
    for number in range(2, 3 * MAX_VERSIONS):
        file.write("\n" * number + BEFORE, at=number)
        versions.look()
    last = 3 * MAX_VERSIONS - 1
    now = "\n" * last + BEFORE
    assert versions.line_now(STEP, 1, now) == STEP + last
    assert versions.line_now(STEP + last, last, now) == STEP + last
    assert versions.line_now(STEP + last - 9, last - 9, now) == STEP + last


# Files that an editor names and that are no files to read: they are left alone.


@pytest.fixture(params=["FIFO", "device", "folder"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / "odd.py"
    if request.param == "FIFO":
        os.mkfifo(path)
    elif request.param == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    return str(path)


@pytest.mark.timeout(20)
def test_they_are_not_read(odd: str) -> None:
    assert encoding_problem(odd) is None
    assert FileVersions(odd, "opened").line_now(1, 0.0, "opened") == 1
