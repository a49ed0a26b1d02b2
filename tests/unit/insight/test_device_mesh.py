"""Ranks say which meshes they are in; one mesh comes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.insight.device_mesh import mesh_of, united
from dap_mux.pure.rank_sets import Mesh


def reports(names: list[str], grid: Any, *, parts: bool = False) -> dict[int, list[Any]]:
    """What each rank says of a mesh; with `parts` of each dimension's own mesh as well."""
    said = {}
    for place, rank in np.ndenumerate(grid):
        at = [int(index) for index in place]
        said[int(rank)] = [[names, list(grid.shape), at]]
        if parts:
            for name, size, index in zip(names, grid.shape, at, strict=True):
                said[int(rank)].insert(0, [[name], [size], [index]])
    return said


def test_a_row_major_mesh_is_just_its_dimensions() -> None:
    said = reports(["dp", "tp"], np.arange(8).reshape(2, 4), parts=True)
    assert mesh_of(said, range(8)) == Mesh.parse("dp=2,tp=4")


def test_who_says_nothing_has_a_place_in_a_row_major_mesh() -> None:
    said = reports(["dp", "tp"], np.arange(8).reshape(2, 4))
    del said[5]
    mesh = mesh_of(said, range(8))
    assert mesh is not None
    assert mesh.coords(5) == {"dp": 1, "tp": 1}


@given(order=st.permutations(range(6)), silent=st.integers(0, 5))
def test_any_order_of_ranks(order: list[int], silent: int) -> None:
    grid = np.array(order).reshape(2, 3)
    said = reports(["dp", "tp"], grid, parts=True)
    mesh = mesh_of(said, range(6))
    assert mesh is not None
    for place, rank in np.ndenumerate(grid):
        assert mesh.coords(int(rank)) == dict(zip(["dp", "tp"], map(int, place), strict=True))
    others = mesh_of({rank: said[rank] for rank in range(6) if rank != silent}, range(6))
    assert others is not None
    assert all(others.coords(rank) == mesh.coords(rank) for rank in range(6) if rank != silent)


def test_flattened_dimensions_and_second_meshes_are_known_too() -> None:
    said = reports(["dp", "cp", "tp"], np.arange(8).reshape(2, 2, 2))
    for rank, meshes in said.items():
        meshes.append([["dp_cp"], [4], [rank // 2]])
        meshes.append([["ep"], [8], [rank]])
    mesh = mesh_of(said, range(8))
    assert mesh is not None
    assert str(mesh) == "dp=2,cp=2,tp=2,ep=8,dp_cp=4"
    assert mesh.coords(5) == {"dp": 1, "cp": 0, "tp": 1, "ep": 5, "dp_cp": 2}


def test_a_part_of_another_size_does_not_count() -> None:
    """An old mesh that something still holds."""
    said: dict[int, Any] = {
        rank: [[["dp"], [2], [0]], [["dp", "tp"], [1, 4], [0, rank]]] for rank in range(4)
    }
    assert mesh_of(said, range(4)) == Mesh.parse("dp=1,tp=4")


def test_ranks_outside_of_the_mesh_have_no_place() -> None:
    said: dict[int, Any] = {
        0: [[["tp"], [2], [0]]],
        1: [[["tp"], [2], [1]]],
        2: [[["tp"], [2], None]],
    }
    mesh = mesh_of(said, range(3))
    assert mesh is not None
    assert [rank in mesh for rank in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    "report",
    [
        None, {}, 3, "x", [], [[]], [[1, 2, 3]], [[["dp"], [0], [0]]], [[["d p"], [1], [0]]],
        [[["dp", "dp"], [1, 1], [0, 0]]], [[["dp"], [True], [0]]], [[["dp"], [1, 2], [0]]],
        [[[], [], []]],
    ],
)  # fmt: skip
def test_nonsense_is_no_mesh(report: object) -> None:
    assert mesh_of({0: report}, range(1)) is None


def test_united() -> None:
    given_one, found = Mesh.parse("hosts=2,gpus=2"), Mesh.parse("dp=2,tp=2")
    both = united(given_one, found, range(4))
    assert both is not None
    assert str(both) == "hosts=2,gpus=2,dp=2,tp=2"
    assert both.coords(3) == {"hosts": 1, "gpus": 1, "dp": 1, "tp": 1}
    assert united(given_one, None, range(4)) == united(None, given_one, range(4)) == given_one
    other = Mesh((("gpus", 4), ("hosts", 1)))
    assert united(given_one, other, range(4)) == given_one
