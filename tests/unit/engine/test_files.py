"""What is said of files that are missing or differ, and the mapping that is proposed."""

from __future__ import annotations

import pytest

from dap_mux.engine.source_files.diagnosis import (
    DIFFERS,
    MISSING,
    NOTHING_WRONG,
    FileNews,
    Others,
    about_file,
)
from dap_mux.pure.pathmap import Fit, Near, Place, fitting, parse
from dap_mux.pure.rank_sets import RankId, World

HOME = "/home/me/proj"


def on(*hosts: str) -> Others:
    """Ranks 0, 1, … on these hosts."""
    return Others({("job", rank): host for rank, host in enumerate(hosts)}, "job")


def news(*ranks: int, **what: object) -> dict[RankId, FileNews]:
    fields = {"kind": MISSING, "path": "/data/x/train.py", **what}
    return {("job", rank): FileNews(**fields) for rank in ranks}  # type: ignore[arg-type]


def said(found: dict[RankId, FileNews], others: Others) -> str:
    return "; ".join(about_file(found, others).sentences)


def test_ranks_are_folded_with_their_hosts() -> None:
    four = on("node1", "node1", "node2", "node2")
    assert said(news(2, 3), four) == "file missing on ranks 2-3 (node2): /data/x/train.py"
    assert said(news(0, 3, kind=DIFFERS), four) == (
        "file differs on ranks 0,3 (node1, node2): /data/x/train.py"
    )
    assert said(news(1), on("h", "h")) == "file missing on rank 1: /data/x/train.py"
    assert said(news(0), on("h")) == "file missing: /data/x/train.py"


def test_each_place_and_kind_is_a_sentence() -> None:
    both = {**news(0, path="/a/t.py"), **news(1, path="/b/t.py"), **news(2, kind=DIFFERS)}
    assert said(both, on("h", "h", "h")).count("; ") == 2
    assert about_file(both, on("h", "h", "h")).missing == {("job", 0), ("job", 1)}


def test_nothing_is_said_of_nothing() -> None:
    assert about_file({}, on("h")) == NOTHING_WRONG


@pytest.mark.parametrize(
    ("hosts", "ranks", "limits"),
    [
        (("h", "h"), (0, 1), ""),
        (("h", "h"), (1,), ', "ranks": "1"'),
        (("a", "a", "b", "b"), (2, 3), ', "hosts": ["b"]'),
        (("a", "a", "b", "b"), (1, 2), ', "ranks": "1-2"'),
        (("a", "b", "c"), (0, 1), ', "hosts": ["a", "b"]'),
    ],
)
def test_a_proposal_is_for_those_that_need_it(
    hosts: tuple[str, ...], ranks: tuple[int, ...], limits: str
) -> None:
    entry = f'{{"localRoot": "{HOME}", "remoteRoot": "/data/x"{limits}}}'
    proposed = said(news(*ranks, fit=(HOME, "/data/x")), on(*hosts))
    assert proposed.endswith(f"add {entry} to pathMappings")


def test_an_entry_that_holds_the_root_already_is_to_be_changed() -> None:
    instead = news(0, 1, fit=(HOME, "/data/x"), instead=True)
    assert said(instead, on("h", "h")).endswith(
        f'in pathMappings use {{"localRoot": "{HOME}", "remoteRoot": "/data/x"}} for this localRoot'
    )
    assert "add {" in said(dict(list(instead.items())[:1]), on("h", "h")), "one for a rank wins"


@pytest.mark.parametrize(
    ("local", "near", "fit"),
    [
        ("/home/me/proj/train.py", [("/data/x/train.py", "d", True)], (HOME, "/data/x")),
        ("/home/me/proj/src/a.py", [("/x/src/a.py", "", False)], (HOME, "/x")),
        ("/home/me/proj/a.py", [("/lib/a.py", "other", False)], None),
        ("/home/me/proj/a.py", [("/lib/a.py", "d", False)], (HOME, "/lib")),
        (
            "/home/me/proj/a.py",
            [("/y/proj/a.py", "other", False), ("/x/a.py", "d", False)],
            (HOME, "/x"),
        ),
        ("c:\\proj\\src\\a.py", [("/x/src/a.py", "d", True)], ("c:\\proj", "/x")),
        ("/a.py", [("/a.py", "d", True)], None),
        ("/proj/a.py", [("/a.py", "d", True)], ("/proj", "/")),
        ("/home/me/proj/a.py", [], None),
    ],
)
def test_roots_that_would_fit(local: str, near: list[Near], fit: Fit | None) -> None:
    found = fitting(local, "d", near, "")
    assert (found and found[0]) == fit
    if fit is not None:
        entry = {"localRoot": fit[0], "remoteRoot": fit[1]}
        paths = parse([entry]).for_rank(Place(("job", 0)), World((), {}, {}, {}))
        assert paths.to_remote(local) in [path for path, _, _ in near]


def test_a_shorter_root_than_the_one_in_force_would_never_be_asked() -> None:
    near = [("/data/me/proj/src/a.py", "d", True)]
    assert fitting(f"{HOME}/src/a.py", "d", near, "") == (("/home", "/data"), False)
    assert fitting(f"{HOME}/src/a.py", "d", near, HOME) == ((HOME, "/data/me/proj"), True)
    assert fitting(f"{HOME}/src/a.py", "d", near, f"{HOME}/") == ((HOME, "/data/me/proj"), True)
    moved = [("/data/a.py", "d", True)]
    assert fitting(f"{HOME}/src/a.py", "d", moved, HOME) == ((f"{HOME}/src", "/data"), False)
