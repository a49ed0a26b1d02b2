"""Secrets in texts, by the name that they have and by their shape: `[redacted: aws key]`.

One table for what leaves a job: the end of a job, and the answers of an agent's tools. Standard
library only, because ranks use it. The rules are compiled when first needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

MAX_TEXT: Final = 65_536
"""Characters of a text that are looked at; what is behind them is left out."""

SHORTEST: Final = 4
MORE: Final = r"(?=\Z|[_\d])"
"""Behind a name: `password_of_admin` is one, too."""

# Names: of variables, attributes, keys, fields of the environment. Parts are separated by `_`, `-`
# or an upper case letter; `PWD` is a folder, and a tokenizer's `pad_token` is no secret.
NAMES: Final[tuple[tuple[str, str], ...]] = (
    (
        "password",
        r"[a-z]{0,12}pass_?(?:word|wd|phrase|code)s?|(?:db|user|root|my|pg|ssh|sudo)_?(?:pass|pwd)",
    ),
    ("secret", r"secret(?:s|_?key|_?id|_?value)?|client_?secret|shared_?secret"),
    ("credentials", r"credentials?|creds"),
    ("api key", r"(?:api|app|access|account|auth|subscription|license|master|webhook)_?keys?"),
    ("private key", r"(?:private|signing|encryption|ssh|rsa|deploy|hmac|aes)_?keys?"),
    ("authorization", r"(?:proxy_?)?authorization|auth_?header|basic_?auth|http_?auth"),
    ("cookie", r"(?:set_?)?cookies?|session_?(?:id|key|token)|csrf_?token|xsrf_?token"),
    (
        "connection string",
        r"(?:connection|conn)_?str(?:ing)?|(?:database|db|redis|mongo)_?ur[il]|dsn",
    ),
    ("webhook", r"webhook_?url"),
    ("one-time code", r"otp|totp_?(?:secret|seed)|mfa_?code|recovery_?codes?"),
    (
        "token",
        (
            r"(?<!pad_)(?<!eos_)(?<!bos_)(?<!unk_)(?<!sep_)(?<!cls_)(?<!mask_)(?<!next_)(?<!last_)"
            r"(?<!image_)(?<!special_)(?<!first_)(?<!prev_)(?<!stop_)(?<!start_)(?<!end_)token"
            r"|(?:access|auth|bearer|refresh|id|bot|api)_?tokens?|jwt"
        ),
    ),
)
# Shapes: the kind, what all of its texts have one of in small letters ("" for any), the pattern. Of
# a group only that part is replaced.
SHAPES: Final[tuple[tuple[str, str, str], ...]] = (
    ("aws key", "akia asia abia acca agpa aida aroa anpa",
     r"\b(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}\b"),
    ("aws secret key", "aws secret",
     r"(?i:aws|secret).{0,30}?\W([0-9a-zA-Z/+]{40})(?![0-9a-zA-Z/+=])"),
    ("github token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
     r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,})"),
    ("gitlab token", "glpat- gldt- glrt- glcbt- glptt- glft- glsoat-",
     r"\bgl(?:pat|dt|rt|cbt|ptt|ft|soat)-[\w-]{20,}"),
    ("slack token", "xox xapp-", r"\bxox[abeoprs]-[\w-]{10,}|\bxapp-\d-[\w-]{10,}"),
    ("slack webhook", "hooks.slack",
     r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[^\s'\"]+"),
    ("discord webhook", "api/webhooks",
     r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/[^\s'\"]+"),
    ("discord token", ".", r"\b[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}"),
    ("telegram token", ":aa", r"\b\d{8,10}:AA[\w-]{32,}"),
    ("google api key", "aiza", r"\bAIza[\w-]{35}"),
    ("google token", "ya29. gocspx- 1//0",
     r"\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}|\b1//0[\w-]{40,}"),
    ("openai key", "sk-", r"\bsk-(?!ant-)[\w-]{20,}"),
    ("anthropic key", "sk-ant-", r"\bsk-ant-[\w-]{20,}"),
    ("hugging face token", "hf_ api_org_", r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    ("nvidia key", "nvapi-", r"\bnvapi-[\w-]{40,}"),
    ("groq key", "gsk_", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("replicate token", "r8_", r"\br8_[A-Za-z0-9]{30,}"),
    ("databricks token", "dapi", r"\bdapi[0-9a-f]{32}"),
    ("stripe key", "k_live_ k_test_ whsec_",
     r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[\w+/=]{24,}"),
    ("square token", "sq0 eaaa", r"\bsq0(?:atp|csp)-[\w-]{22,}|\bEAAA[\w-]{60}"),
    ("shopify token", "shp", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("sendgrid key", "sg.", r"\bSG\.[\w-]{16,32}\.[\w-]{16,64}"),
    ("mailgun key", "key-", r"\bkey-[0-9a-f]{32}\b"),
    ("mailchimp key", "-us", r"\b[0-9a-f]{32}-us\d{1,2}\b"),
    ("twilio key", "sk", r"\bSK[0-9a-f]{32}\b"),
    ("npm token", "npm_ _authtoken=", r"\bnpm_[A-Za-z0-9]{30,}|_authToken=\S+"),
    ("pypi token", "pypi-", r"\bpypi-[\w-]{40,}"),
    ("docker token", "dckr_", r"\bdckr_(?:pat|oat)_[\w-]{20,}"),
    ("digitalocean token", "_v1_", r"\bdo[opr]_v1_[a-f0-9]{64}"),
    ("azure key", "accountkey= sharedaccess",
     r"(?:AccountKey|SharedAccessKey|SharedAccessSignature)=([^\s;'\"]{20,})"),
    ("vault token", "hvs. hvb. hvr.", r"\bhv[sbr]\.[\w-]{20,}"),
    ("terraform token", ".atlasv1.", r"\b\w{14}\.atlasv1\.[\w-]{60,}"),
    ("grafana token", "glsa_ glc_", r"\bgl(?:sa|c)_[\w=+/]{32,}"),
    ("new relic key", "nrak-", r"\bNRAK-[A-Z0-9]{27}"),
    ("linear key", "lin_api_", r"\blin_api_[A-Za-z0-9]{32,}"),
    ("age key", "age-secret-key-", r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    ("json web token", "eyj", r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?"),
    ("private key", "-----begin",
     (r"(?s:-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?"
      r"(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z))")),
    ("key block", "",  # a line of a key of many, shown by itself
     (r"(?m:^(?:\[[^\]\n]{0,40}\] |\d{1,7}: )?(?=[^\n]*[a-z])(?=[^\n]*[A-Z])"
      r"(?=[^\n]*\d)([A-Za-z0-9+/]{60,}={0,2})$)")),
    ("password hash", "$", r"\$(?:2[aby]|5|6|y|argon2id?)\$[^\s'\"]{20,}"),
    ("connection string", "://", r"\b[a-zA-Z][\w+.-]{0,30}://[^\s:/@'\"]*:([^\s/@'\"]+)@"),
    ("authorization", "bearer basic", r"\b(?i:bearer|basic)\s+((?=\S*[\d=+/])[\w+/=.~-]{12,})"),
    ("url parameter", "=",
     r"(?i:[?&](?:\w{0,20}token|sig|signature|\w{0,20}key|password|secret)=)([^&\s'\"]{6,})"),
)  # fmt: skip
IN_NAMES: Final = (
    *("pass", "pwd", "secret", "cred", "key", "auth", "cookie", "session", "csrf", "xsrf", "conn"),
    *("url", "uri", "dsn", "otp", "mfa", "recovery", "token", "jwt"),
)
"""Each name has one of these in it, in small letters."""

_NAME: Final = "|".join(f"(?:{pattern})" for _, pattern in NAMES)
_START: Final = r"(?:(?<![A-Za-z0-9])|(?<=[a-z])(?=[A-Z]))"
# A value behind its name: `api_key = "..."`, `"password": "..."`, `PASSWORD=...`, `password: ...`.
QUOTED: Final = (
    rf"{_START}(?i:(?P<name>{_NAME}))(?:\\?['\"])?\]?\s*(?::|=>?)\s*[rRbBfFuU]{{0,2}}"
    r"(?P<quote>\\?['\"])(?P<value>(?:(?!(?P=quote))(?:\\.|.))+)"
)
BARE: Final = (
    rf"{_START}(?i:(?P<name>{_NAME}))(?:\s*:\s+|=(?!=))"
    r"(?!['\"\[]|redacted|(?:str|bytes|int|float|bool|None|True|False|Optional|Any|Path|list|dict|"
    r"self|os|args|config|cfg|settings|getpass|the|not|an?)\b|\w+[.(\[])"
    r"(?P<value>[^\s,;'\"()\[\]{}]{4,})"
)
_NUMBER: Final = re.compile(r"[-+.\d]+")
_PLAIN: Final = re.compile(
    r"[-+.\d\seE,()\[\]]*|True|False|None|<.*>|\w*(?:tensor|array)\(.*", re.DOTALL
)


_ESCAPED: Final = re.compile(r"\\[nrt]")
_GAP: Final = "\x1f"
"""White space behind a line's end as `repr` writes it, whose letter is part of no word."""


def redacted(text: str, name: str = "") -> str:
    """Return a text without its secrets; `name`: of the variable or the expression it is of."""
    if len(text) < SHORTEST or _NUMBER.fullmatch(text):
        return text
    kind = kind_of(name)
    if kind and not _PLAIN.fullmatch(text):
        return _mark(kind)
    kept = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... (cut)"
    kept = _ESCAPED.sub(rf"\g<0>{_GAP}", kept)
    # Most values have none of these words: 26 us for 120 characters, 110 where each shape is tried.
    small = kept.casefold()
    for kind, pattern, words in _shapes():
        for word in words:
            if word in small:
                kept = pattern.sub(partial(_replaced, kind), kept)
                break
    if ("=" in small or ":" in small) and any(word in small for word in IN_NAMES):
        for pattern in _behind_names():
            kept = pattern.sub(partial(_replaced, ""), kept)
    return kept.replace(_GAP, "")


def kind_of(name: str) -> str:
    """Return which secret a name speaks of; "" for none. Of an expression any of its names."""
    for word in re.findall(r"\w+", name):
        for kind, pattern in _names():
            if pattern.search(word):
                return kind
    return ""


def map_texts(value: Any, change: Callable[[str, str], str], name: str = "", key: str = "") -> Any:
    """Return a copy of an answer, with every text of it changed.

    `name`: of the variable or the expression that a `value` below is of, which `change` gets.
    """
    if isinstance(value, str):
        return change(value, name if key == "value" else "")
    if isinstance(value, dict):
        name = str(value.get("name") or value.get("expression") or name)
        return {str(key): map_texts(each, change, name, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [map_texts(each, change, name, key) for each in value]
    return value


def _mark(kind: str) -> str:
    return f"[redacted: {kind}]"


def _replaced(kind: str, match: re.Match[str]) -> str:
    """Return a match with its secret replaced; without a `kind` the name in front has it."""
    whole, group = match[0], 1 if kind else "value"
    if kind and not match.re.groups:
        return _mark(kind) + "\n" * whole.count("\n")  # lines of a source keep their numbers
    if "[redacted: " in match[group]:
        return whole
    kind = kind or kind_of(match["name"]) or "secret"
    start, end = (at - match.start() for at in match.span(group))
    return f"{whole[:start]}{_mark(kind)}{whole[end:]}"


@lru_cache(1)
def _names() -> list[tuple[str, re.Pattern[str]]]:
    ends = {"token": r"\Z"}  # `token_count` is none
    return [
        (kind, re.compile(rf"{_START}(?i:{pattern}){ends.get(kind, MORE)}"))
        for kind, pattern in NAMES
    ]


@lru_cache(1)
def _shapes() -> list[tuple[str, re.Pattern[str], list[str]]]:
    return [(kind, re.compile(pattern), words.split(" ")) for kind, words, pattern in SHAPES]


@lru_cache(1)
def _behind_names() -> tuple[re.Pattern[str], ...]:
    return re.compile(QUOTED), re.compile(BARE)
