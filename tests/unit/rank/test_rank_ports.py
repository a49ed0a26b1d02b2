"""Which port a rank tries first: asked for, named as OpenPAI does, or 5678 + rank."""

from __future__ import annotations

import pytest

from dap_mux.rank.environ import NoSuchPort, Place, first_port, place_of

# What OpenPAI sets in the second task of the role `train`, which asked for `debug: 2`, `http: 1`.
TASK = {
    "PAI_CURRENT_TASK_ROLE_NAME": "train",
    "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
    "PAI_TASK_ROLE_TASK_COUNT_train": "2",
    "PAI_PORT_LIST_train_0_debug": "20001,20002",
    "PAI_PORT_LIST_train_1_debug": "30001,30002",
    "PAI_PORT_LIST_train_1_http": "30003",
}
NAMED = {**TASK, "DEBUG_PORT_NAME": "debug"}
RANK_3 = Place(3, 8)


def test_the_rank_has_a_port_of_its_own() -> None:
    assert first_port({}, Place(), None, None) == 5678
    assert first_port({}, RANK_3, None, None) == 5681
    assert first_port({}, RANK_3, None, 7000) == 7003
    assert first_port(TASK, RANK_3, None, None) == 5681


def test_what_was_asked_for_goes_before_a_name() -> None:
    assert first_port(NAMED, RANK_3, 9, 7000) == 9
    assert first_port(NAMED, RANK_3, 0, None) == 0
    assert first_port(NAMED, RANK_3, None, 7000) == 7003


def test_a_name_is_looked_up_for_this_task() -> None:
    assert first_port(NAMED, place_of(NAMED), None, None) == 30001
    assert first_port({**NAMED, "DEBUG_PORT_NAME": "http"}, Place(1), None, None) == 30003


def test_ranks_of_one_task_take_one_port_each() -> None:
    second = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
    assert first_port(NAMED, place_of({**NAMED, **second}), None, None) == 30002


@pytest.mark.parametrize(
    ("environ", "local_rank", "words"),
    [
        (
            {**NAMED, "DEBUG_PORT_NAME": "ssh"},
            0,
            (
                "DEBUG_PORT_NAME is 'ssh', but PAI_PORT_LIST_train_1_ssh is not set: "
                "ask for it under resourcePerInstance.ports (ssh: 1); it has debug, http"
            ),
        ),
        (
            {"DEBUG_PORT_NAME": "debug"},
            0,
            "that name is looked up on OpenPAI only; elsewhere leave DEBUG_PORT_NAME out",
        ),
        (NAMED, 2, "has 2 port(s), none for local rank 2: ask for one for each rank under"),
        (
            {**NAMED, "PAI_PORT_LIST_train_1_debug": "30001,none"},
            0,
            "PAI_PORT_LIST_train_1_debug is '30001,none', which is not a list of ports",
        ),
    ],
    ids=["no such name", "no such platform", "too few", "no ports"],
)
def test_a_name_that_leads_nowhere_says_what_helps(
    environ: dict[str, str], local_rank: int, words: str
) -> None:
    with pytest.raises(NoSuchPort) as refused:
        first_port(environ, Place(1, local_rank=local_rank), None, None)
    assert words in str(refused.value)
