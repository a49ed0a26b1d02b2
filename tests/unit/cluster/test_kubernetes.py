"""Words that name pods, and what a cluster says of its pods, read into ranks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from dap_mux.cluster.kubernetes.job_kinds import KUBEFLOW_JOB
from dap_mux.cluster.kubernetes.pod_source import MAX_NAMED, MissedPods, PodFailures, read
from dap_mux.cluster.kubernetes.pods import exit_code_of, how_it_failed, missed, name_of, ranks_of
from dap_mux.cluster.kubernetes.tool import POD_NAME, Tool, tool_for
from dap_mux.cluster.source import SourceSpec
from dap_mux.pure.errors import NothingToConnect, UsageError

ONE = range(5678, 5679)
NAMED = ("--field-selector", "metadata.name=")
JOB = ("--selector", "job-name=")


@pytest.mark.parametrize(
    ("rest", "selection", "namespace", "context", "ports"),
    [
        ("trainer-0", (NAMED[0], "metadata.name=trainer-0"), None, None, ONE),
        ("pod/trainer-0", (NAMED[0], "metadata.name=trainer-0"), None, None, ONE),
        ("team/trainer-0:9000", (NAMED[0], "metadata.name=trainer-0"), "team", None,
         range(9000, 9001)),
        ("job/train", (JOB[0], "job-name=train"), None, None, ONE),
        ("team/job/train:5678+4", (JOB[0], "job-name=train"), "team", None, range(5678, 5682)),
        ("team/job/train:5678-5679", (JOB[0], "job-name=train"), "team", None, range(5678, 5680)),
        ("app=train", (JOB[0], "app=train"), None, None, ONE),
        ("team/app=train,tier=gpu:80", (JOB[0], "app=train,tier=gpu"), "team", None, range(80, 81)),
        ("training.kubeflow.org/job-name=ddp", (JOB[0], "training.kubeflow.org/job-name=ddp"),
         None, None, ONE),
        ("team/batch.kubernetes.io/job-name=ddp",
         (JOB[0], "batch.kubernetes.io/job-name=ddp"), "team", None, ONE),
        ("team/ray.io/cluster=ray,ray.io/node-type=worker,tier=gpu@prod",
         (JOB[0], "ray.io/cluster=ray,ray.io/node-type=worker,tier=gpu"), "team", "prod", ONE),
        ("tier=gpu,ray.io/group=a:80", (JOB[0], "tier=gpu,ray.io/group=a"), None, None,
         range(80, 81)),
        ("job/train@prod", (JOB[0], "job-name=train"), None, "prod", ONE),
        ("pytorchjob/ddp", (JOB[0], f"{KUBEFLOW_JOB}=ddp"), None, None, ONE),
        ("team/mpijob/ddp@prod:5678+2",
         (JOB[0], f"{KUBEFLOW_JOB}=ddp"), "team", "prod", range(5678, 5680)),
        ("jobset/js", (JOB[0], "jobset.sigs.k8s.io/jobset-name=js"), None, None, ONE),
        ("team/rayjob/ray", (), "team", None, ONE),  # it has no cluster yet
        ("app=train@nccl-test/api-example-com:6443/me:5678+2", (JOB[0], "app=train"), None,
         "nccl-test/api-example-com:6443/me", range(5678, 5680)),
    ],
)  # fmt: skip
def test_a_word_names_pods(
    rest: str,
    selection: tuple[str, str],
    namespace: str | None,
    context: str | None,
    ports: range,
) -> None:
    wanted = read(SourceSpec("k8s", rest))
    assert wanted.by(Tool(("kubectl",))).arguments == selection
    assert (wanted.namespace, wanted.context, wanted.ports) == (namespace, context, ports)


@pytest.mark.parametrize(
    ("rest", "complaint"),
    [
        ("", "not a selection of pods"),
        ("job/", "not a selection of pods"),
        ("a/b/c/d", "not a selection of pods"),
        ("a=b/c", "not a selection of pods"),
        ("a=b,c/d/e=f", "not a selection of pods"),
        ("job/app=train", "not a selection of pods"),
        ("jobset/", "not a selection of pods"),
        ("Trainer_0", "not a selection of pods"),
        ("--all", "not a selection of pods"),
        ("trainer-0:http", "not a selection of pods"),
        ("trainer-0:0", "0 to 0 is not a range of ports"),
        ("trainer-0:5678+0", "5678 to 5677 is not"),
        ("trainer-0:65535+2", "65535 to 65536 is not"),
    ],
)
def test_a_word_that_names_none(rest: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        read(SourceSpec("oc", rest))
    assert f"oc:{rest}" in str(caught.value)


def test_neither_tool_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NothingToConnect, match="neither is in PATH: install one"):
        tool_for("k8s", None, None)


@pytest.mark.parametrize(
    ("scheme", "there", "taken"),
    [
        ("k8s", "kubectl oc", "kubectl"),
        ("oc", "kubectl oc", "oc"),
        ("k8s", "oc", "oc"),
        ("oc", "kubectl", "kubectl"),
    ],
)
def test_whichever_tool_is_here(
    scheme: str, there: str, taken: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in there.split():
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    tool = tool_for(scheme, "team", "prod")
    assert tool.name == taken
    assert tool.base[1:] == ("--context=prod", "--namespace=team")


# Pods


def pod(
    name: str,
    *,
    phase: str = "Running",
    state: dict[str, Any] | None = None,
    restarts: int = 0,
    rank: str | None = None,
    conditions: list[dict[str, str]] | None = None,
    last: dict[str, Any] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    status = {
        "restartCount": restarts,
        "state": state or {"running": {}},
        "lastState": last or {},
    }
    env = [{"name": "RANK", "value": rank}] if rank else [{"name": "RANK", "valueFrom": {}}]
    return {
        "kind": "Pod",
        "metadata": {"name": name, "uid": f"uid-{name}", **metadata},
        "spec": {"containers": [{"name": "main", "env": env}]},
        "status": {"phase": phase, "containerStatuses": [status], "conditions": conditions or []},
    }


def numbers(*pods: dict[str, Any], ports: range = ONE, by_name: bool = True) -> list[Any]:
    return [(one.rank, one.host, one.port) for one in ranks_of(pods, ports, by_name=by_name)]


def test_the_rank_that_a_pod_says() -> None:
    pods = (pod("a", rank="1"), pod("b", rank="0"))
    assert numbers(*pods) == [(0, "b", 5678), (1, "a", 5678)]
    assert numbers(*pods, by_name=False) == numbers(*pods)


@pytest.mark.parametrize(
    "notes",
    [
        {"annotations": {"batch.kubernetes.io/job-completion-index": "3"}},
        {"labels": {"batch.kubernetes.io/job-completion-index": "3"}},
        {"labels": {"apps.kubernetes.io/pod-index": "3"}, "annotations": None},
    ],
)
def test_the_index_that_a_job_gives(notes: dict[str, Any]) -> None:
    assert numbers(pod("train-x7k", **notes)) == [(3, "train-x7k", 5678)]


def test_several_ranks_in_each_pod_count_on() -> None:
    ports = range(5678, 5680)
    found = numbers(pod("t-1"), pod("t-0"), ports=ports)
    assert [rank for rank, _, _ in found] == [0, 1, 2, 3]
    assert found[2] == (2, "t-1", 5678)


def test_numbers_at_the_end_of_names() -> None:
    assert [rank for rank, _, _ in numbers(pod("t-2"), pod("t-10"))] == [2, 10]
    assert numbers(pod("dev-7"), by_name=False) == [(None, "dev-7", 5678)]
    # two names, so these are no ordinals of one thing
    assert [rank for rank, _, _ in numbers(pod("master-0"), pod("worker-0"))] == [None, None]


def test_else_they_stand_in_the_order_of_their_names() -> None:
    found = numbers(pod("t-10a"), pod("t-9a"), pod("t-1a", rank="4"))
    assert found == [(None, "t-1a", 5678), (None, "t-9a", 5678), (None, "t-10a", 5678)]


def test_who_has_ended_is_left_out() -> None:
    pods = (pod("t-0", phase="Succeeded"), pod("t-1"), pod("t-2", phase="Failed"))
    assert numbers(*pods) == [(1, "t-1", 5678)]


def test_of_two_with_one_number_the_one_that_stays() -> None:
    going = pod("t-a", rank="0", deletionTimestamp="now", creationTimestamp="2026-01-02")
    assert numbers(going, pod("t-b", rank="0", creationTimestamp="2026-01-01"))[0][1] == "t-b"
    older = pod("t-c", rank="0", creationTimestamp="2025-01-01")
    assert numbers(pod("t-b", rank="0", creationTimestamp="2026-01-01"), older)[0][1] == "t-b"


@pytest.mark.parametrize(
    ("how", "waits"),
    [
        ({}, ""),
        ({"phase": "Pending", "state": {"waiting": {"reason": "ImagePullBackOff"}}},
         "pod t-0 is Pending: ImagePullBackOff"),
        ({"state": {"waiting": {"reason": "CrashLoopBackOff"}}},
         "pod t-0 does not run now: CrashLoopBackOff"),
        ({"state": {"terminated": {"exitCode": 1}}},
         "pod t-0 does not run now: its container has ended"),
        ({"phase": "Unknown", "state": {"waiting": {}}}, "pod t-0 is Unknown"),
        ({"phase": "Pending", "state": {"waiting": {}}, "conditions": [
            {"type": "Initialized", "status": "False", "reason": "no"},
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
             "message": "0/3 nodes are available: 3 Insufficient cpu."}]},
         "pod t-0 is Pending: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."),
        ({"state": {"waiting": {"reason": "CrashLoopBackOff"}},
          "last": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}},
         "pod t-0 does not run now: CrashLoopBackOff, after exit code 137 (OOMKilled)"),
    ],
)  # fmt: skip
def test_why_nothing_can_listen_yet(how: dict[str, Any], waits: str) -> None:
    (record,) = ranks_of([pod("t-0", **how)], ONE, by_name=True)
    assert record.waits == waits


def test_each_start_of_a_pod_is_another_process() -> None:
    once, again = (ranks_of([pod("t-0", restarts=n)], ONE, by_name=True)[0] for n in (0, 1))
    assert once.incarnation != again.incarnation


def test_a_pod_that_was_only_just_made_says_little() -> None:
    new = {"metadata": {"name": "t-0"}, "status": {"phase": "Pending"}}
    (record,) = ranks_of([new], ONE, by_name=True)
    assert (record.rank, record.waits) == (0, "pod t-0 is Pending")


JOB_OWNS: dict[str, Any] = {"ownerReferences": [{"kind": "Job", "controller": True}]}


@pytest.mark.parametrize(
    ("now", "why"),
    [(None, "was deleted"), (pod("t-a", phase="Failed", **JOB_OWNS), "has failed")],
)
def test_a_pod_is_missed_until_another_has_its_number(now: dict[str, Any] | None, why: str) -> None:
    before = pod("t-a", rank="0", restarts=2, creationTimestamp="2026-01-01")
    gone = missed(before, now)
    assert gone
    (waiting,) = ranks_of([gone], ONE, by_name=True)
    assert waiting.waits == f"pod t-a {why}; perhaps another will replace it"
    assert waiting.incarnation == ranks_of([before], ONE, by_name=True)[0].incarnation
    (again,) = ranks_of([gone, pod("t-b", rank="0")], ONE, by_name=True)
    assert (again.host, again.waits) == ("t-b", "")


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (pod("t-a", phase="Succeeded"), None),
        (pod("t-a"), pod("t-a", restarts=1)),
        (pod("t-a"), pod("t-a", phase="Succeeded", **JOB_OWNS)),
        (pod("t-a"), pod("t-a", phase="Failed")),
    ],
    ids=["it had ended", "it is there", "it has done its work", "nobody makes another"],
)
def test_a_pod_that_is_not_missed(before: dict[str, Any], now: dict[str, Any] | None) -> None:
    assert missed(before, now) is None


def failed(name: str, **more: Any) -> dict[str, Any]:
    return pod(name, phase="Failed", **JOB_OWNS, **more)


def missing(*looks: dict[str, dict[str, Any]]) -> list[str]:
    """The names of the pods that are waited for after these looks, a second apart."""
    pods = MissedPods()
    for time, (before, now) in enumerate(pairwise([{}, *looks])):
        pods.take(before, now, time)
    return [name_of(each) for each in pods.pods]


def there(*pods: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name_of(each): each for each in pods}


@pytest.mark.parametrize(
    "replacement",
    [pod("t-b", rank="0"), pod("t-b", rank="0", phase="Succeeded"), pod("t-a", rank="0")],
    ids=["another", "one that has ended, too", "itself"],
)
def test_a_pod_is_missed_until_it_is_replaced(replacement: dict[str, Any]) -> None:
    before, gone = there(pod("t-a", rank="0")), there(failed("t-a", rank="0"))
    assert missing(before, gone) == ["t-a"]
    assert missing(before, gone, {**gone, **there(replacement)}) == []
    assert missing(before, there(replacement)) == []


def test_a_pod_whose_replacement_came_first_is_not_missed() -> None:
    """It was still being terminated then."""
    both = there(pod("t-a", rank="0"), pod("t-b", rank="0"))
    assert missing(there(pod("t-a", rank="0")), both, there(pod("t-b", rank="0"))) == []


def test_a_pod_is_missed_whatever_becomes_of_others() -> None:
    before = there(pod("t-a", rank="0"), pod("t-b", rank="1"), pod("t-0", phase="Succeeded"))
    gone = {**before, **there(failed("t-a", rank="0"))}
    assert missing(before, gone, {**gone, **there(pod("t-c", rank="1"))}) == ["t-a"]
    assert missing(before, gone, gone) == ["t-a"]


def test_pods_without_numbers_are_replaced_one_by_one() -> None:
    before = there(pod("t-a"), pod("t-b"), pod("t-7"))
    gone = there(failed("t-a"), failed("t-b"), failed("t-7"))
    once, twice = ({**gone, **there(*more)} for more in ([pod("t-c")], [pod("t-c"), pod("t-d")]))
    assert missing(before, gone, once) == ["t-b", "t-7"]
    assert missing(before, gone, once, twice) == ["t-7"]
    assert missing(before, gone, {**gone, **there(pod("t-7"))}) == ["t-a", "t-b"]


def test_a_pod_is_missed_for_half_a_minute() -> None:
    pods, before, gone = MissedPods(), there(pod("t-a")), there(failed("t-a"))
    pods.take(before, gone, 10)
    assert pods.deadlines == [40]
    pods.take(gone, gone, 39)
    assert pods.pods
    pods.take(gone, gone, 40)
    assert not pods


@pytest.mark.parametrize(
    ("status", "how"),
    [
        ({"containerStatuses": [
            {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
            {"state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]}, "exit code 3 (Error)"),
        ({"containerStatuses": [{"state": {"terminated": {"exitCode": 9}}}]}, "exit code 9"),
        ({"reason": "Evicted", "message": "The node was low on resource: memory.\n"},
         r"Evicted: The node was low on resource: memory.\n"),
        ({}, ""),
    ],
)  # fmt: skip
def test_how_a_pod_has_failed(status: dict[str, Any], how: str) -> None:
    assert how_it_failed({"metadata": {"name": "t"}, "status": status}) == how


def test_the_exit_code_of_a_pod_that_has_ended() -> None:
    failed = pod("t", phase="Failed", state={"terminated": {"exitCode": 3}})
    assert exit_code_of(failed) == 3
    assert exit_code_of(pod("t", state={"terminated": {"exitCode": 3}})) is None
    evicted = {"metadata": {"name": "t"}, "status": {"phase": "Failed", "reason": "Evicted"}}
    assert exit_code_of(evicted) is None


def crashed(state: str = "state") -> dict[str, Any]:
    return {state: {"terminated": {"exitCode": 3, "reason": "Error"}}}


def test_each_failure_is_told_once() -> None:
    news = PodFailures(Tool(("/usr/bin/kubectl", "--namespace=team")))
    failed = pod("t-0", phase="Failed", state=crashed()["state"])
    news.see([failed, pod("t-1"), pod("t-2", phase="Succeeded")])
    assert news.take() == [
        "pod t-0 has failed: exit code 3 (Error); see `kubectl --namespace=team logs t-0`"
    ]
    news.see([failed])
    assert not news
    assert news.take() == []


def test_a_container_that_is_started_again_and_again() -> None:
    """Each time anew; and one that runs again since before we came says nothing."""
    news = PodFailures(Tool(("oc",)))
    waiting: dict[str, Any] = {"waiting": {"reason": "CrashLoopBackOff"}}
    last = crashed("last")["last"]
    news.see([pod("t-0", restarts=1, last=last), pod("t-1", state=waiting, restarts=1, last=last)])
    why = "pod t-1 has ended with exit code 3 (Error), and will be restarted"
    assert news.take() == [f"{why}; see `oc logs --previous t-1`"]
    news.see([pod("t-1", state=waiting, restarts=1, last=last)])
    assert not news
    news.see([pod("t-1", state=waiting, restarts=2, last=last)])
    assert len(news.take()) == 1


def test_the_container_that_comes_first_is_the_one_that_crashed() -> None:
    one = pod("t-0", phase="Pending", state={"waiting": {"reason": "PodInitializing"}})
    one["spec"]["initContainers"] = [{"name": "fetch"}]
    fetch = {"waiting": {"reason": "CrashLoopBackOff"}}
    one["status"]["initContainerStatuses"] = [
        {"name": "fetch", "state": fetch, **crashed("lastState")}
    ]
    (record,) = ranks_of([one], ONE, by_name=True)
    assert record.waits == "pod t-0 is Pending: CrashLoopBackOff, after exit code 3 (Error)"
    news = PodFailures(Tool(("oc",)))
    news.see([one])
    assert news.take()[0].endswith("see `oc logs --previous t-0 -c fetch`")


def test_a_job_of_a_thousand_fails_in_one_way() -> None:
    news = PodFailures(Tool(("oc",)))
    news.see([pod(f"t-{number}", phase="Failed") for number in range(1000)])
    *named, more = news.take()
    assert len(named) == MAX_NAMED
    assert more == f"{1000 - MAX_NAMED} more pods have failed or crashed"


@pytest.mark.parametrize("name", ["train-0", "a.b-c"])
def test_the_name_of_a_pod(name: str) -> None:
    assert POD_NAME.fullmatch(name)


@pytest.mark.parametrize("name", ["-i", "--token=x", "a/b", "A", "a\n", "x" * 254, ""])
def test_what_is_no_name_of_a_pod(name: str) -> None:
    """It would be an argument of `kubectl exec`."""
    assert not POD_NAME.fullmatch(name)
