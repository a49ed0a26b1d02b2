"""Mesh descriptions, and a rank's place in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import Mesh, RankSetError


def test_parse() -> None:
    mesh = Mesh.parse(" dp=2, tp = 4 ")
    assert mesh.dims == (("dp", 2), ("tp", 4))
    assert mesh.size == 8
    assert str(mesh) == "dp=2,tp=4"


def test_no_dimensions() -> None:
    assert Mesh(()).size == 1
    assert Mesh(()).coords(0) == {}


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4), data=st.data())
def test_coords_are_numpys(sizes: list[int], data: st.DataObject) -> None:
    mesh = Mesh(tuple((f"d{i}", size) for i, size in enumerate(sizes)))
    rank = data.draw(st.integers(0, mesh.size - 1))
    coords = mesh.coords(rank)
    assert list(coords) == [name for name, _ in mesh.dims]
    assert list(coords.values()) == [int(place) for place in np.unravel_index(rank, sizes)]
    assert Mesh.parse(str(mesh)) == mesh


@pytest.mark.parametrize("rank", [-1, 8])
def test_no_coords_outside(rank: int) -> None:
    with pytest.raises(UsageError, match=f"rank {rank} is outside the mesh dp=2,tp=4 of 8"):
        Mesh.parse("dp=2,tp=4").coords(rank)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 0, "expected a dimension and its size"),
        ("dp", 0, "expected a dimension and its size"),
        ("dp=2,", 5, "expected a dimension and its size"),
        ("dp=2,tp=0", 5, "expected a dimension and its size"),
        ("dp=2,tp=-1", 5, "expected a dimension and its size"),
        ("dp=2,3=1", 5, "expected a dimension and its size"),
        ("dp=2,tp=4,dp=2", 10, "the dimension dp is given twice"),
    ],
)
def test_mistakes(text: str, column: int, message: str) -> None:
    with pytest.raises(RankSetError, match=message) as caught:
        Mesh.parse(text)
    assert caught.value.column == column


class TestPlaces:
    """A mesh that is not row-major: which rank is where was read from the ranks."""

    SWAPPED = Mesh(
        (("dp", 2), ("tp", 2)),
        places={
            rank: {"dp": dp, "tp": tp}
            for dp, row in enumerate([[0, 2], [1, 3]])
            for tp, rank in enumerate(row)
        },
    )

    def test_coords(self) -> None:
        assert self.SWAPPED.coords(2) == {"dp": 0, "tp": 1}
        assert 3 in self.SWAPPED
        assert 4 not in self.SWAPPED
        with pytest.raises(UsageError, match="rank 4 is outside the mesh dp=2,tp=2"):
            self.SWAPPED.coords(4)

    def test_a_mesh_is_still_hashable(self) -> None:
        assert hash(self.SWAPPED) == hash(Mesh(self.SWAPPED.dims))
        assert Mesh(self.SWAPPED.dims) != self.SWAPPED
