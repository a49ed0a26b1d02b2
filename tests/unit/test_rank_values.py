"""How values of several ranks read side by side."""

from __future__ import annotations

import pytest

from dap_mux.pure.rank_values import RankValue, in_short, side_by_side


def test_outliers_first() -> None:
    values = [RankValue("0-1,3", "0.09038551498866008"), RankValue("2", "340268", outlier=True)]
    assert side_by_side(values) == ["⚠ {2}: 340268", "{0-1,3}: 0.0903855…"]


@pytest.mark.parametrize(
    ("whole", "short"),
    [
        ("340268.32927038794", "340268…"),
        ("12345678.25", "12345678…"),
        ("-0.30000000000000004", "-0.300000…"),
        ("1.2345678e-05", "1.23456…e-05"),
        ("1234567.0", "1234567.0"),
        ("0.25", "0.25"),
        ("123456789012", "123456789012"),
        ("nan", "nan"),
        ("[0.123456789]", "[0.123456789]"),
        ("1." + "0" * 500, "1." + "0" * 500),
        ("", ""),
    ],
)
def test_six_digits_beside_another(whole: str, short: str) -> None:
    assert in_short([whole, "other"]) == [short, "other"]


def test_one_alone_and_those_that_would_look_alike_stay_whole() -> None:
    assert in_short(["0.123456789"]) == ["0.123456789"]
    alike = ["0.1234561", "0.1234562", "0.9876543"]
    assert in_short(alike) == ["0.1234561", "0.1234562", "0.987654…"]
