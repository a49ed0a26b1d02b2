"""The extension's schema for launch.json, the documents and the code name the same attributes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import debugpy  # noqa: T100  (its sources are read)
import pytest

from dap_mux.pure.errors import UsageError
from dap_mux.session.attach_attributes import COMMON_PARTS, DEFAULT_KIND, attach_endpoints, kinds
from dap_mux.session.launch_attributes import launch_job, launcher_job
from dap_mux.system.config import OPTIONS, Config, Option
from tests.unit.meta.test_docs import ROOT, rows

EXTENSION = ROOT / "vscode-extension"
ADAPTER = [option for option in OPTIONS if "adapter" in option.commands]
# What `launch` does for `run`: started ranks have ports and wait.
LAUNCHED = [option for option in OPTIONS if option.commands == ("run",)]
OF_THE_ENGINE = {"comm", "events", "pathMappings", "role", "token"}
OF_THE_EXTENSION = {"python"}


def schema(request: str) -> dict[str, Any]:
    """The attributes that VS Code offers and checks for `attach` or `launch`."""
    package = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    [debugger] = package["contributes"]["debuggers"]
    properties: dict[str, Any] = debugger["configurationAttributes"][request]["properties"]
    return properties


ATTACH, LAUNCH = schema("attach"), schema("launch")


class Asked(dict[str, Any]):
    """Arguments that remember which of them somebody wanted to see."""

    def __init__(self, **values: Any) -> None:
        super().__init__(values)
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


def asked_by_attach() -> set[str]:
    names: set[str] = set()
    for arguments in (Asked(), Asked(host="h", port=1)):
        try:
            attach_endpoints(arguments)
        except UsageError:
            assert "port" not in arguments
        names |= arguments.names
    return names


def asked_by_launch(folder: Path) -> set[str]:
    names: set[str] = set()
    (folder / "x.py").touch()
    for arguments in (Asked(module="m"), Asked(program="x.py", cwd=str(folder))):
        launch_job(Config.load(), arguments)
        names |= arguments.names
    launched = Asked(launcher="python3", module="m")
    launcher_job(Config.load(), launched)
    return names | launched.names | {"launcher", "report"}


def of_debugpy() -> set[str]:
    """Words that debugpy's debugger reads from its `attach` arguments."""
    bundle = Path(debugpy.__file__).parent / "_vendored" / "pydevd" / "_pydevd_bundle"
    files = ("pydevd_json_debug_options.py", "pydevd_process_net_command_json.py")
    text = "".join((bundle / name).read_text(encoding="utf-8") for name in files)
    own = set(re.findall(r'args(?:\.get\(|\[)"(\w+)"|"(\w+)" in args', text))
    adapter = {"justMyCode", "subProcess", "logToFile"}  # read by its adapter
    return {word for pair in own for word in pair if word} | adapter


STOCK = {  # of the Python extension's configurations, which people bring along
    "attach": {"connect", "listen", "processId", "showReturnValue", "breakOnSystemExitZero"},
    "launch": {"console", "envFile", "gevent", "pythonArgs", "showReturnValue", "sudo"},
}


@pytest.mark.parametrize("request_name", STOCK)
def test_attributes_of_debugpys_configurations_are_known(request_name: str) -> None:
    assert STOCK[request_name] - set(schema(request_name)) == set()
    assert schema(request_name)["showReturnValue"]["default"] is True, "as with that extension"


def test_attach_offers_what_the_adapter_reads() -> None:
    ours = asked_by_attach() | {option.attribute for option in ADAPTER}
    ours |= OF_THE_ENGINE | OF_THE_EXTENSION
    assert ours - set(ATTACH) == set()
    assert set(ATTACH) - ours - of_debugpy() == set()


def test_launch_offers_what_the_adapter_reads(tmp_path: Path) -> None:
    ours = asked_by_launch(tmp_path) | {option.attribute for option in (*ADAPTER, *LAUNCHED)}
    ours |= OF_THE_ENGINE - {"role"} | OF_THE_EXTENSION
    assert ours - set(LAUNCH) == set()
    assert set(LAUNCH) - ours - of_debugpy() == set()


def test_cluster_offers_what_is_read_of_it() -> None:
    offered = ATTACH["cluster"]["properties"]
    read = {
        *COMMON_PARTS,
        *(part for kind in kinds().values() for part in (*kind.names, *kind.others)),
    }
    assert set(offered) == read
    assert offered["kind"]["enum"] == list(kinds())
    assert offered["kind"]["default"] == DEFAULT_KIND


@pytest.mark.parametrize("option", [*ADAPTER, *LAUNCHED], ids=lambda each: each.attribute)
def test_defaults_and_choices_are_the_options(option: Option) -> None:
    offered = LAUNCH[option.attribute]
    if option.default is not None:
        assert offered["default"] == option.kind.show(option.default)
    if option.kind.allowed.startswith("one of"):
        assert option.kind.allowed == f"one of {', '.join(offered['enum'])}"


def attributes() -> list[list[str]]:
    """The lists of attributes: name, request, meaning."""
    page = (ROOT / "docs/launch-configuration.md").read_text("utf-8")
    lists = page.partition("<!-- extension -->")[2].partition("\n## ")[0]
    found = []
    for part in re.split(r"^For ", lists, flags=re.MULTILINE)[1:]:
        request = part.partition(":")[0].strip("`")
        shown = re.findall(r"^- `(\w+)`: (.*)$", part, re.MULTILINE)
        found += [[name, request, meaning] for name, meaning in shown]
    return found


def test_every_attribute_is_described_the_same_everywhere() -> None:
    """On one of two pages: those of our options have their rows in the table of options."""
    names = [*ATTACH, *(name for name in LAUNCH if name not in ATTACH)]
    expected, of_options = [], {}
    for name in names:
        request = "both" if name in ATTACH and name in LAUNCH else ""
        request = request or ("attach" if name in ATTACH else "launch")
        offered = ATTACH.get(name) or LAUNCH[name]
        assert ATTACH.get(name, offered) == LAUNCH.get(name, offered), name
        if name in {option.attribute for option in OPTIONS}:
            of_options[name] = request
        else:
            expected.append([name, request, offered["description"]])
    assert attributes() == sorted(expected, key=lambda row: row[1])
    shown = [row[1] for row in rows("docs/command-line.md", "options")]
    launch, neither = (
        " and ".join(f"`{name}`" for name in part)
        for part in (
            [name for name in shown if of_options.get(name) == "launch"],
            [name for name in shown if name not in of_options],
        )
    )
    told = f"has the attributes {launch} for `launch` alone, and {neither} not at all."
    assert told in (ROOT / "docs/command-line.md").read_text("utf-8")
    assert {of_options[name] for name in shown if name in of_options} == {"both", "launch"}


def test_the_readme_names_the_categories_of_the_commands() -> None:
    package = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    categories = {command["category"] for command in package["contributes"]["commands"]}
    readme = (EXTENSION / "README.md").read_text(encoding="utf-8")
    commands = readme.partition("## Commands and settings\n")[2]
    assert set(re.findall(r" with \*([\w-]+):\*", commands)) == categories


def test_flags_that_the_extension_passes_are_flags_of_the_adapter() -> None:
    text = (EXTENSION / "src/logic/adapterCommand.ts").read_text(encoding="utf-8")
    flags = dict(re.findall(r"^  (\w+): '(--[\w-]+)',$", text, re.MULTILINE))
    known = {option.attribute: option.flag for option in ADAPTER}
    assert flags
    assert flags.items() <= known.items()
