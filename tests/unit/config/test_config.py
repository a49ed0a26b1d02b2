"""Options: which place wins, where relative folders are, and what a bad value is told."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import Mesh
from dap_mux.system.config import OPTIONS, Address, Config, Option
from dap_mux.system.config.config import NOT_FOR_PROJECTS
from dap_mux.system.config.options import FILE, FOLDER, PROGRAM, TRUTH

# One good value of each option, as a person would write it, and what it becomes; and a bad one.
# Those of one kind have the same, unless their bounds differ.
GOOD: dict[str, tuple[str, object]] = {
    "listen": ("0.0.0.0:6000", Address("0.0.0.0", 6000)),
    "base_port": ("7000", 7000),
    "dial_listen": ("0.0.0.0:6001", Address("0.0.0.0", 6001)),
    "mesh": ("dp=2,tp=4", Mesh((("dp", 2), ("tp", 4)))),
    "verbosity": ("2", 2),
    "log": ("rank.3=debug,client=info", {"rank.3": logging.DEBUG, "client": logging.INFO}),
    "classes_above": ("8", 8),
    "settle": ("20ms", 0.02),
    "step_grace": ("1.5", 1.5),
    "request_timeout": ("10s", 10.0),
    "release_after": ("30s", 30.0),
    "max_message": ("1MiB", 1024**2),
    "catch_unequal": ("lr[0]", "lr[0]"),
}
BAD = {
    "listen": "70000",
    "base_port": "0",
    "dial_listen": "nowhere",
    "mesh": "dp=0",
    "verbosity": "4",
    "log": "rank.three=debug",
    "classes_above": "0",
    "settle": "11s",
    "step_grace": "-1",
    "request_timeout": "soon",
    "release_after": "never",
    "max_message": "1KiB",
    "catch_unequal": "lr[",
}
for option in OPTIONS:
    if option.kind in (FILE, FOLDER, PROGRAM):
        GOOD[option.name] = f"/a/{option.name}", Path(f"/a/{option.name}")
        BAD[option.name] = "" if option.kind is FILE else " "
    elif option.kind is TRUTH:
        GOOD[option.name] = ("no", False) if option.default else ("yes", True)
        BAD[option.name] = "maybe"
    elif option.kind.metavar.startswith("{"):
        last = option.kind.metavar.strip("{}").rpartition(",")[2]
        GOOD[option.name], BAD[option.name] = (last, last), "some"


def origin(config: Config, name: str) -> str:
    """Where one value came from, as `config show` says it."""
    return next(row.origin for row in config.explain() if row.name == name)


def write(path: Path, text: str) -> Path:
    """Write one file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_each_option_is_one_row_and_one_field() -> None:
    names = [option.name for option in OPTIONS]
    held = [name for name in Config.__struct_fields__ if name != "origins"]
    assert sorted(names) == sorted(held) == sorted(GOOD) == sorted(BAD)
    for column in ("name", "flag", "variable", "attribute"):
        words = [getattr(option, column) for option in OPTIONS]
        assert len(set(words)) == len(words), column


def test_defaults_are_readable_values_of_their_own_kind() -> None:
    for option in OPTIONS:
        if option.default is not None:
            assert option.kind.read(option.kind.show(option.default)) == option.default


def test_without_any_place_all_is_default() -> None:
    config = Config.load()
    assert config.listen == Address("127.0.0.1", 5677)
    assert (config.base_port, config.settle, config.max_message) == (5678, 0.05, 16 * 1024**2)
    assert {row.origin for row in config.explain()} == {"default"}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_can_come_from_every_place(option: Option, tmp_path: Path) -> None:
    name = option.name
    text, value = GOOD[name]
    home, project = tmp_path / "home", tmp_path / "project"
    for path, head in (
        (home / ".config/dap-mux/config.toml", ""),
        (project / "pyproject.toml", "[tool.dap-mux]\n"),
    ):
        write(path, f"{head}{name.replace('_', '-')} = {json.dumps(text)}\n")
    project_label = f"{project / 'pyproject.toml'} [tool.dap-mux]"
    home_label = str(home / ".config/dap-mux/config.toml")
    for config, label in (
        (Config.load(flags={name: text}), f"flag {option.flag}"),
        (Config.load(environ={option.variable: text}), f"variable {option.variable}"),
        (Config.load(launch={option.attribute: text}), f"launch.json {option.attribute}"),
        (Config.load(home=home), home_label),
        *([] if name in NOT_FOR_PROJECTS else [(Config.load(cwd=project), project_label)]),
    ):
        assert getattr(config, name) == value
        assert origin(config, name) == label


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_a_bad_value_is_told_the_option_the_value_the_place_and_what_is_allowed(
    option: Option,
) -> None:
    raw = BAD[option.name]
    with pytest.raises(UsageError) as caught:
        Config.load(flags={option.name: raw})
    for part in (option.name, repr(raw), f"flag {option.flag}", option.kind.allowed):
        assert part in str(caught.value)
    with pytest.raises(UsageError, match=f"launch.json {option.attribute}"):
        Config.load(launch={option.attribute: raw})


@given(places=st.sets(st.sampled_from(["flag", "variable", "launch", "project", "user"])))
def test_the_strongest_place_wins(
    places: set[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("places")
    order = ["flag", "variable", "launch", "project", "user"]
    port = {place: 6000 + number for number, place in enumerate(order)}
    if "user" in places:
        write(root / "home/.config/dap-mux/config.toml", f"base_port = {port['user']}")
    if "project" in places:
        write(root / "here/pyproject.toml", f"[tool.dap-mux]\nbase_port = {port['project']}")
    config = Config.load(
        flags={"base_port": port["flag"] if "flag" in places else None},
        environ={"DAP_MUX_BASE_PORT": str(port["variable"])} if "variable" in places else {},
        launch={"basePort": port["launch"]} if "launch" in places else {},
        cwd=root / "here",
        home=root / "home",
    )
    expected = next((port[place] for place in order if place in places), 5678)
    assert config.base_port == expected


def test_launch_attributes_that_come_later_replace_only_what_is_weaker() -> None:
    config = Config.load(flags={"view": "ranks"}, environ={"DAP_MUX_SCOPE": "all"})
    later = config.with_launch({"view": "classes", "scope": "rank", "settle": 0.1, "justMyCode": 1})
    assert (later.view, later.scope, later.settle) == ("ranks", "all", 0.1)
    assert origin(later, "settle") == "launch.json settle"
    assert origin(later, "view") == "flag --view"
    with pytest.raises(UsageError, match=r"threads = 7 \(launch\.json threads\)"):
        config.with_launch({"threads": 7})


def test_a_weaker_bad_value_harms_nobody() -> None:
    config = Config.load(flags={"view": "ranks"}, environ={"DAP_MUX_VIEW": "nonsense"})
    assert config.view == "ranks"


def test_an_empty_variable_is_unset() -> None:
    assert Config.load(environ={"DAP_MUX_BASE_PORT": ""}).base_port == 5678


def test_folders_are_relative_to_the_place_that_names_them(tmp_path: Path) -> None:
    write(tmp_path / ".config/dap-mux/config.toml", 'log_dir = "logs"')
    below = tmp_path / "src" / "deep"
    below.mkdir(parents=True)
    own = tmp_path / ".config/dap-mux/logs"
    assert Config.load(cwd=below, home=tmp_path).log_dir == own
    assert Config.load(flags={"log_dir": "logs"}, cwd=below).log_dir == below / "logs"


def test_the_nearest_pyproject_counts_even_without_a_table(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", "[tool.dap-mux]\nbase_port = 7000")
    write(tmp_path / "inner/pyproject.toml", '[project]\nname = "x"')
    assert Config.load(cwd=tmp_path / "inner").base_port == 5678


def test_the_users_file_follows_xdg(tmp_path: Path) -> None:
    write(tmp_path / "xdg/dap-mux/config.toml", "verbosity = 1")
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert Config.load(environ=environ, home=tmp_path).verbosity == 1
    assert Config.load(environ={"XDG_CONFIG_HOME": "xdg"}, home=tmp_path).verbosity == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[tool.dap-mux]\nbase-prot = 1", r"no option 'base_prot'; did you mean base_port\?"),
        ("[tool.dap-mux]\nzzz = 1", r"no option 'zzz'; there are against, base_port, "),
        ("[tool]\ndap-mux = 3", "must be a table"),
        ("[tool.dap-mux]\ninsecure = true", r"'insecure' cannot be set by a project; use --ins"),
        ("[tool.dap-mux]\ntoken-file = 'a'", r"'token_file' cannot be set by a project; use"),
        ("[tool.dap-mux]\ntls-ca = 'a'", r"'tls_ca' cannot be set by a project; use --tls-ca"),
        ("[tool.dap-mux]\npython = 'a'", r"'python' cannot be set by a project; use --python"),
        ("[tool.dap-mux]\nlog-dir = 'a'", r"'log_dir' cannot be set by a project; use"),
        ("[tool.dap-mux]\ntls-key = 'a'", r"'tls_key' cannot be set by a project; use"),
        (f"x = {'[' * 100_000}", r"pyproject\.toml cannot be read: it is nested too deeply"),
        ("[tool.dap-mux\n", r"pyproject\.toml cannot be read: "),
        ("[tool.dap-mux]\nbase-port = true", r"base_port = True .*: allowed: a port from 1"),
    ],
)
def test_a_bad_file_is_named_and_explained(tmp_path: Path, text: str, sentence: str) -> None:
    write(tmp_path / "pyproject.toml", text)
    with pytest.raises(UsageError, match=sentence):
        Config.load(cwd=tmp_path)


@pytest.mark.parametrize("word", ["yes", "on", "1", "True", "no", "off", "0"])
def test_words_of_truth(word: str) -> None:
    assert Config.load(flags={"insecure": word}).insecure is (word in ("yes", "on", "1", "True"))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("5677", Address("127.0.0.1", 5677)),
        (":5677", Address("127.0.0.1", 5677)),
        ("0", Address("127.0.0.1", 0)),
        ("node1:80", Address("node1", 80)),
        ("[::1]:5677", Address("::1", 5677)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize("text", ["", "host", "::1:5677", "h:65536", "h:-1", "http://h:1", "a b:1"])
def test_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        Address.parse(text)


@given(st.dictionaries(st.sampled_from(sorted(GOOD)), st.text() | st.integers() | st.floats()))
def test_any_flag_value_is_taken_or_refused_in_words(flags: dict[str, object]) -> None:
    try:
        config = Config.load(flags=flags)
    except UsageError as error:
        assert "allowed: " in str(error)
    else:
        json.dumps([row.value for row in config.explain()])
