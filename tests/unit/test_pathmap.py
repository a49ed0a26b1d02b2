"""`pathMappings`: what a user writes, what each rank gets, and paths both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.pathmap import BadMapping, Place, RankPaths, parse
from dap_mux.pure.rank_sets import Mesh, World

WORLD = World(
    ranks=tuple(("job", rank) for rank in range(4)),
    meshes={"job": Mesh((("dp", 2), ("tp", 2)))},
    states={},
    names={},
)
HOME = "/home/me/proj"


def paths(value: object, rank: int = 0, *, folder: str = "", **more: object) -> RankPaths:
    place = Place(("job", rank), **more)  # type: ignore[arg-type]
    return parse(value, folder).for_rank(place, WORLD)


def mapping(local: str, remote: str, **more: object) -> dict[str, object]:
    return {"localRoot": local, "remoteRoot": remote, **more}


def test_no_mapping_changes_nothing() -> None:
    nothing: object
    for nothing in (None, []):
        assert paths(nothing).plain == []
        assert paths(nothing).to_remote("/a/b.py") == "/a/b.py"
        assert paths(nothing).to_local("/a/b.py") == "/a/b.py"


def test_a_root_is_swapped_both_ways_and_a_neighbour_is_not() -> None:
    mapped = paths([mapping(HOME, "/data/x")])
    assert mapped.to_remote(f"{HOME}/src/train.py") == "/data/x/src/train.py"
    assert mapped.to_local("/data/x/src/train.py") == f"{HOME}/src/train.py"
    assert mapped.to_remote("/home/me/proj2/train.py") == "/home/me/proj2/train.py"
    assert mapped.to_local("/data/xy/train.py") == "/data/xy/train.py"
    assert mapped.to_remote(HOME) == "/data/x"


def test_debugpy_is_told_with_slashes_because_it_compares_text() -> None:
    assert paths([mapping(HOME, "/data/x/")]).plain == [
        {"localRoot": f"{HOME}/", "remoteRoot": "/data/x/"}
    ]


@pytest.mark.parametrize("local", ["C:\\proj", "c:/proj/", "C:\\Proj\\"])
def test_windows_roots_ignore_case_and_slashes(local: str) -> None:
    mapped = paths([mapping(local, "/data/x")])
    assert mapped.to_remote("c:\\proj\\src\\train.py") == "/data/x/src/train.py"
    assert mapped.to_remote("C:/PROJ/train.py") == "/data/x/train.py"
    assert (
        mapped.to_local("/data/x/src/train.py")
        == local.replace("/", "\\").rstrip("\\") + "\\src\\train.py"
    )


def test_a_share_is_windows_too() -> None:
    mapped = paths([mapping("\\\\nas\\code\\proj", "/data/x")])
    assert mapped.to_remote("\\\\NAS\\code\\proj\\a.py") == "/data/x/a.py"
    assert mapped.plain[0]["localRoot"] == "\\\\nas\\code\\proj\\"


def test_the_longest_root_wins_both_ways_in_any_order() -> None:
    entries = [mapping("/w", "/opt/all"), mapping("/w/libs", "/usr/libs")]
    nested_there = [mapping("/home/me/long/name", "/opt"), mapping("/libs", "/opt/libs")]
    for order in (1, -1):
        mapped = paths(entries[::order])
        assert mapped.to_remote("/w/libs/a.py") == "/usr/libs/a.py"
        assert mapped.to_remote("/w/a.py") == "/opt/all/a.py"
        mapped = paths(nested_there[::order])
        assert mapped.to_local("/opt/libs/a.py") == "/libs/a.py"
        assert mapped.to_local("/opt/a.py") == "/home/me/long/name/a.py"


def test_crossed_roots_go_by_the_local_ones() -> None:
    mapped = paths([mapping("/a", "/x/y"), mapping("/a/b", "/x")])
    assert mapped.to_remote("/a/b/f.py") == "/x/f.py"


def test_hosts_are_names_or_patterns_of_the_endpoint() -> None:
    value = [mapping(HOME, "/n1", hosts=["node1"]), mapping(HOME, "/gpu", hosts="GPU-*")]
    assert paths(value, hosts=("10.0.0.1", "node1")).to_remote(f"{HOME}/a.py") == "/n1/a.py"
    assert paths(value, hosts=("gpu-17",)).to_remote(f"{HOME}/a.py") == "/gpu/a.py"
    assert paths(value, hosts=("node10",)).plain == []


@pytest.mark.parametrize(
    ("ranks", "chosen"),
    [("0-1", {0, 1}), ("ranks(tp=1)", {1, 3}), (2, {2}), ("all - 0", {1, 2, 3})],
)
def test_ranks_are_a_rank_set(ranks: object, chosen: set[int]) -> None:
    value = [mapping(HOME, "/data", ranks=ranks)]
    assert {rank for rank in range(4) if paths(value, rank).plain} == chosen


def test_the_more_exact_of_equal_local_roots_wins() -> None:
    value = [
        mapping(HOME, "/all"),
        mapping(f"{HOME}/", "/node2", hosts=["node2"]),
        mapping(HOME, "/three", ranks="3"),
    ]
    assert paths(value, 0).to_remote(f"{HOME}/a.py") == "/all/a.py"
    assert paths(value, 2, hosts=("node2",)).to_remote(f"{HOME}/a.py") == "/node2/a.py"
    assert paths(value, 3, hosts=("node2",)).to_remote(f"{HOME}/a.py") == "/three/a.py"
    assert len(paths(value, 3).plain) == 1


def test_two_remote_roots_for_one_local_root_map_back_from_both() -> None:
    mapped = paths([mapping(HOME, "/a"), mapping(HOME, "/a/b")])
    assert mapped.to_remote(f"{HOME}/f.py") == "/a/f.py"
    mapped = paths([mapping(HOME, "/a"), mapping(HOME, "/c")])
    assert mapped.to_local("/c/f.py") == mapped.to_local("/a/f.py") == f"{HOME}/f.py"


def test_a_ranks_file_names_the_root_of_one_rank() -> None:
    value = [mapping("/libs", "/opt/libs"), mapping("${workspaceFolder}", "/data")]
    mapped = paths(value, folder=HOME, remote_root="/mnt/r3")
    assert mapped.to_remote(f"{HOME}/a.py") == "/mnt/r3/a.py"
    assert mapped.to_remote("/libs/a.py") == "/opt/libs/a.py"
    assert paths(value[:1], remote_root="/mnt").to_remote("/libs/a.py") == "/mnt/a.py"
    assert paths(None, folder=HOME, remote_root="/mnt").to_remote(f"{HOME}/a.py") == "/mnt/a.py"
    assert paths(None, remote_root="/mnt").plain == []  # nobody knows the local side


def test_a_rank_may_run_in_a_copy_of_a_folder_other_than_the_workspace() -> None:
    value = [mapping("/libs", "/opt/libs"), mapping("${workspaceFolder}", ".")]
    mapped = paths(value, folder=HOME, remote_root="/tmp/copy", local_root=f"{HOME}/src")
    assert mapped.to_remote(f"{HOME}/src/a.py") == "/tmp/copy/a.py"
    assert mapped.to_local("/tmp/copy/a.py") == f"{HOME}/src/a.py"
    assert mapped.to_remote("/libs/a.py") == "/opt/libs/a.py"


def test_a_dot_is_where_the_rank_runs() -> None:
    value = [mapping(HOME, ".")]
    assert paths(value).plain == [{"localRoot": f"{HOME}/", "remoteRoot": "."}]
    assert paths(value).to_remote(f"{HOME}/a.py") is None
    assert paths(value).to_local("/job/a.py") == "/job/a.py"
    assert paths(value, cwd="/job").to_remote(f"{HOME}/a.py") == "/job/a.py"
    assert paths(value, cwd="/job").to_local("/job/a.py") == f"{HOME}/a.py"


def test_the_workspace_stands_for_variables_dots_and_relative_roots() -> None:
    for local in ("${workspaceFolder}", ".", "${workspaceRoot}", "./"):
        assert paths([mapping(local, "/x")], folder=HOME).to_remote(f"{HOME}/a.py") == "/x/a.py"
    assert paths([mapping("src", "/x")], folder=HOME).to_remote(f"{HOME}/src/a.py") == "/x/a.py"
    remote = "/workspaces/${workspaceFolderBasename}"
    mapped = paths([mapping("${workspaceFolder}", remote)], folder=HOME)
    assert mapped.to_remote(f"{HOME}/a.py") == "/workspaces/proj/a.py"
    windows = paths([mapping("${workspaceFolder}/src", "/x")], folder="C:\\proj")
    assert windows.to_remote("c:\\proj\\src\\a.py") == "/x/a.py"


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"localRoot": "/a", "remoteRoot": "/b"}, "pathMappings must be a list such as"),
        (["/a:/b"], 'entry 1: must be an object as in [{"localRoot"'),
        ([mapping("/a", "/b"), {"localRoot": "/a"}], "entry 2: remoteRoot is missing"),
        ([mapping("", "/b")], 'entry 1: localRoot is "": it must be a path'),
        ([mapping("/a", "data")], 'entry 1: remoteRoot is "data": give the full path, or "."'),
        (
            [mapping("${workspaceFolder}", "/b")],
            'entry 1: localRoot is "${workspaceFolder}": it cannot be resolved here',
        ),
        ([mapping("~/proj", "/b")], "give the full path"),
        ([mapping("${env:HOME}", "/b")], "your editor did not resolve ${env:HOME}"),
        ([mapping("/a", "/b", hosts=7)], "entry 1: hosts is 7: it must be a list of names"),
        ([mapping("/a", "/b", hosts=[])], "it names no host"),
        ([mapping("/a", "/b", ranks="tp=0")], "entry 1: ranks: unknown word 'tp'"),
        ([mapping("/a", "/b", ranks=[1])], "entry 1: ranks is [1]: it must be a rank set"),
    ],
)
def test_what_is_wrong_is_named(value: object, complaint: str) -> None:
    with pytest.raises(BadMapping) as refused:
        parse(value)
    assert complaint in str(refused.value)


NAMES = st.sampled_from(["a", "b", "src", "my lib", "x.y"])
PARTS = st.lists(NAMES, min_size=1, max_size=3)
ROOTS = st.builds(lambda parts: "/" + "/".join(parts), PARTS)


@given(
    pairs=st.lists(st.tuples(ROOTS, ROOTS), max_size=5, unique_by=(lambda p: p[0], lambda p: p[1])),
    path=st.builds(lambda parts: "/" + "/".join(parts), st.lists(NAMES, min_size=1, max_size=6)),
)
def test_translation_is_what_debugpy_makes_of_the_plain_list(
    pairs: list[tuple[str, str]], path: str
) -> None:
    """debugpy's own rule, as read in its source: the first root the path begins with."""
    mapped = paths([mapping(*pair) for pair in pairs])
    plain = [(each["localRoot"], each["remoteRoot"]) for each in mapped.plain]
    file = f"{path}/train.py"
    there = next((r + file[len(loc) :] for loc, r in plain if file.startswith(loc)), file)
    assert mapped.to_remote(file) == there
    back = next((loc + there[len(r) :] for loc, r in plain if there.startswith(r)), there)
    assert mapped.to_local(there) == back
    longest = max((loc for loc, _ in plain if file.startswith(loc)), key=len, default="")
    assert mapped.root_of(file) == longest.rstrip("/")


KEYS = st.sampled_from(["localRoot", "remoteRoot", "hosts", "ranks"])
JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
)


@given(value=JSON)
def test_whatever_is_written_is_read_or_refused(value: object) -> None:
    try:
        parse(value, HOME).for_rank(Place(("job", 0)), WORLD)
    except BadMapping as error:
        assert str(error).startswith("pathMappings")
