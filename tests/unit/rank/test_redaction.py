"""Secrets by name and by shape are replaced, and ordinary values stay."""

from __future__ import annotations

import random
from time import process_time
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dap_mux.rank.redaction import IN_NAMES, MAX_TEXT, NAMES, SHAPES, kind_of, redacted
from tests.support.planted_secrets import PLANTED, planted

ORDINARY: Final[tuple[str, ...]] = (
    "tensor([0.{n}, 1.5], device='cuda:0')",
    "{n}",
    "'train/{n}.parquet'",
    "step {n}, loss 0.{n}, lr 1e-0{d}",
    "/home/me/project/token_{n}.py",
    "pad_token = '<pad>'",
    "eos_token_id={n}",
    "num_tokens: {n}",
    "{{'tokens': [1, 2, {n}], 'keys': ['a', 'b']}}",
    "commit 9f2c{n}a8be12cd34ef56ab78cd90ef12ab34cd56ef",
    "sha256:{n}0d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4",
    "http://localhost:{n}/metrics?step=3&key=loss",
    "def step(batch, tokenizer, key={n}):",
    "    key, query, value = split(x, {n})",
    "2026-11-29 01:{d}:00 INFO epoch {n} done in 3.2 s",
    "<torch.nn.Linear object at 0x7f{n}>",
    "ValueError: expected {n} tokens, got 3",
    "basic_block_{n}: Sequential(Conv2d(3, 64))",
    "PWD=/home/me/{n}",
    "assert token == {n}  # the next token",
)


def test_of_200_planted_secrets_none_is_shown() -> None:
    for number, (text, secret) in enumerate(planted(PLANTED)):
        shown = redacted(f"rank 3: {text} done" if number % 2 else text)
        assert secret not in shown
        assert "[redacted: " in shown


def test_of_1000_ordinary_texts_few_are_redacted() -> None:
    chance = random.Random(16)
    texts = [
        ORDINARY[number % len(ORDINARY)].format(n=chance.randrange(9999), d=chance.randrange(9))
        for number in range(1000)
    ]
    changed = [text for text in texts if redacted(text) != text]
    assert len(changed) <= 10, changed[:5]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("password", "password"),
        ("self.db_passwd", "password"),
        ("os.environ['AWS_SECRET_ACCESS_KEY']", "secret"),
        ("cfg.clientSecret", "secret"),
        ("hf_token", "token"),
        ("id_token", "token"),
        ("DATABASE_URL", "connection string"),
        ("private_key", "private key"),
        ("pad_token", ""),
        ("valid_tokens", ""),
        ("tokenizer", ""),
        ("PWD", ""),
        ("monkey", ""),
        ("loss", ""),
    ],
)
def test_names(name: str, kind: str) -> None:
    assert kind_of(name) == kind
    value = redacted("'hunter2'", name)
    assert value == (f"[redacted: {kind}]" if kind else "'hunter2'")


@pytest.mark.parametrize("value", ["17", "None", "tensor([1, 2])", "[1, 2, 3]", "<Token at 0x7f>"])
def test_what_can_be_no_secret_is_shown_whatever_its_name(value: str) -> None:
    assert redacted(value, "token") == value


@given(st.one_of([st.from_regex(f"(?i:{pattern})", fullmatch=True) for _, pattern in NAMES]))
def test_each_name_has_a_word_by_which_texts_are_chosen(name: str) -> None:
    assert any(word in name.casefold() for word in IN_NAMES)


def test_there_are_rules_enough() -> None:
    assert len(NAMES) + len(SHAPES) >= 30


@pytest.mark.parametrize("text", ["a=", "aA", "eyJ", "x.", "a://", "password='", "key", "-", "\\'"])
def test_the_time_that_a_long_text_takes_grows_with_its_length(text: str) -> None:
    def taken(length: int) -> float:
        begin = process_time()
        redacted((text * length)[:length])
        return process_time() - begin

    taken(100)
    assert taken(16_384) < 0.1 + 16 * taken(2_048), "eight times as long; a square would be 64"
    assert len(redacted(text * 20_000)) < 3 * MAX_TEXT


@settings(max_examples=10)
@given(st.tuples(*(st.from_regex(pattern) for _, words, pattern in SHAPES if words)))
def test_each_shape_has_a_word_by_which_texts_are_chosen(texts: tuple[str, ...]) -> None:
    by_words = [words.split(" ") for _, words, _ in SHAPES if words]
    for words, text in zip(by_words, texts, strict=True):
        assert any(word in text.casefold() for word in words), words
