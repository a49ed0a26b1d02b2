"""Secrets of all kinds, as programs have them in values, the environment and their output."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from typing import Final

PLANTED: Final = 200
LETTERS: Final = string.ascii_letters + string.digits
Make = Callable[[random.Random], str]


def word(length: int, letters: str = LETTERS) -> Make:
    return lambda chance: "".join(chance.choices(letters, k=length))


HEX: Final = "0123456789abcdef"
FORMS: Final[tuple[tuple[str, Make], ...]] = (
    ("AKIA{}", word(16, string.ascii_uppercase + string.digits)),
    ("aws_secret_access_key = '{}'", word(40)),
    ("ghp_{}", word(36)),
    ("github_pat_{}", word(50)),
    ("glpat-{}", word(20)),
    ("xoxb-{}", word(30)),
    ("https://hooks.slack.com/services/{}", word(30)),
    ("AIza{}", word(35)),
    ("sk-proj-{}", word(40)),
    ("sk-ant-api03-{}", word(40)),
    ("hf_{}", word(34)),
    ("sk_live_{}", word(24)),
    ("SG.{}.abcdefghijklmnopqrstuv", word(22)),
    ("npm_{}", word(36)),
    ("dckr_pat_{}", word(27)),
    ("dapi{}", word(32, HEX)),
    ("postgresql://me:{}@db.local:5432/x", word(12)),
    ("AccountName=x;AccountKey={}==", word(86)),
    ("Authorization: Bearer {}", word(40)),
    ("eyJ{}.eyJzdWIiOiIxMjM0In0.abc", word(20)),
    ("-----BEGIN RSA PRIVATE KEY-----\n{}", word(64)),
    ("https://x.org/a?access_token={}&b=1", word(20)),
    ('{{"password": "{}"}}', word(12)),
    ("{{'api_key': '{}', 'rate': 3}}", word(12)),
    ("client_secret={}", word(12)),
    ("DB_PASSWORD={}", word(12)),
    ("WANDB_API_KEY={}", word(40, HEX)),
    ("password: {}", word(12)),
    ("    token = '{}'", word(12)),
    ('self.accessToken = "{}"', word(12)),
    ("os.environ['HF_TOKEN'] = '{}'", word(12)),
    ("--password={}", word(12)),
)


def planted(count: int) -> Iterator[tuple[str, str]]:
    """Yield texts with a secret in each, and that secret; every time the same."""
    chance = random.Random(16)
    for number in range(count):
        form, make = FORMS[number % len(FORMS)]
        secret = make(chance)
        yield form.format(secret), secret
