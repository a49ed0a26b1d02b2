"""Addresses of objects, which are of one process and no part of a value."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from dap_mux.pure.insight.compare import common_text, compare, folded, without_addresses
from dap_mux.pure.rank_sets import RankId


class Foo:
    """It has the default `repr`."""

    def method(self) -> None:
        """Be bound."""


def made() -> list[object]:
    """Objects whose `repr` has an address."""
    numbers = (number for number in (1, 2))
    return [Foo(), Foo().method, lambda: None, [Foo(), {"a": Foo()}], numbers, made, object()]


@pytest.mark.parametrize("index", range(len(made())))
def test_two_of_a_kind_are_the_same(index: int) -> None:
    kept = made(), made()
    one, other = (repr(each[index]) for each in kept)
    masked = without_addresses(one)
    assert masked == without_addresses(other)
    assert "0x…" in masked
    assert not re.search(r"0x[0-9a-f]", masked)


@pytest.mark.parametrize(
    "text",
    [
        "31",
        "'loaded at 0x7f00'",
        "<Page 0x7f>",
        "0x7f",
        "{'a': <Kind.B: 2>, 'at': 0x10}",
        "a at 0x1",
    ],
)
def test_what_is_no_address_of_an_object_stays(text: str) -> None:
    assert without_addresses(text) == text


@pytest.mark.timeout(20)
def test_a_text_of_brackets_alone_takes_no_time() -> None:
    assert without_addresses("<a>" * 100_000 + " at 0x") == "<a>" * 100_000 + " at 0x"


def foo(address: int) -> str:
    return f"<job.Foo object at 0x{address:x}>"


def said(*texts: str) -> dict[tuple[str, int], str]:
    return {("job", rank): text for rank, text in enumerate(texts)}


def test_they_are_compared_without() -> None:
    found = compare(said(foo(1), foo(2), foo(1), "<job.Bar object at 0x1>"))
    assert [(one.value, len(one.ranks)) for one in found.groups] == [
        ("<job.Foo object at 0x…>", 3),
        ("<job.Bar object at 0x1>", 1),
    ]
    assert found.outliers == {("job", 3)}


def test_an_address_that_all_share_is_shown() -> None:
    assert [one.value for one in compare(said(foo(7), foo(7))).groups] == [foo(7)]
    assert common_text([foo(7), foo(7)]) == foo(7)


def label(ranks: Iterable[RankId]) -> str:
    return ",".join(str(rank) for _, rank in ranks)


def test_they_are_folded_without_and_so_are_errors() -> None:
    values = {rank: (text, "Foo") for rank, text in said(foo(1), foo(2)).items()}
    body = folded(values, said(f"ValueError: {foo(3)}", f"ValueError: {foo(4)}"), label, id)
    assert [(one["ranks"], one["value"]) for one in body["results"]] == [
        ("0,1", "<job.Foo object at 0x…>")
    ]
    assert [(one["ranks"], one["message"]) for one in body["errors"]] == [
        ("0,1", "ValueError: <job.Foo object at 0x…>")
    ]


def test_equal_texts_of_other_types_stay_apart() -> None:
    values = {("job", 0): ("1", "int"), ("job", 1): ("1", "float")}
    body = folded(values, {}, label, id)
    assert [(one["ranks"], one["type"]) for one in body["results"]] == [
        ("0", "int"),
        ("1", "float"),
    ]
