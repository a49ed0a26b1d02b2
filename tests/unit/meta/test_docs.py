"""The documents are true: commands parse, links lead somewhere, tables match the code."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from PIL import Image, ImageSequence

from dap_mux.engine.state.selection import SCOPES
from dap_mux.frontends.cli.commands import BY_NAME
from dap_mux.frontends.cli.entry import parse
from dap_mux.pure import pathmap
from dap_mux.system.config import OPTIONS, Option
from tests.support.processes.pythons import OLDEST, TOO_OLD, VERSIONS

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("vscode-extension/*.md"),
        *ROOT.glob("vscode-extension/walkthrough/*.md"),
        ROOT / "llms.txt",
    ]
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?(?:dap-mux|python -m dap_mux) +(.*)$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]+\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def name(path: Path) -> str:
    """A page's name for test ids and messages."""
    return str(path.relative_to(ROOT))


def commands() -> Iterator[tuple[str, str]]:
    """Every command line of ours in a code block: page and words."""
    for page in PAGES:
        for _, block in FENCE.findall(page.read_text(encoding="utf-8")):
            yield from ((name(page), words) for words in COMMAND.findall(block))


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as the usual renderers make them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize(("page", "words"), list(commands()))
def test_every_command_in_a_code_block_parses(page: str, words: str) -> None:
    assert parse(shlex.split(words, comments=True)).name in BY_NAME


def test_the_main_pages_show_commands() -> None:
    assert {"README.md", "docs/command-line.md"} <= {page for page, _ in commands()}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_named_in_a_sentence_exists(page: Path) -> None:
    named = re.findall(r"`dap-mux ([a-z]+)", page.read_text(encoding="utf-8"))
    assert set(named) <= set(BY_NAME)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_internal_link_leads_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), target
        assert not anchor or anchor in slugs(path), f"{target}#{anchor}"


def test_every_test_named_on_a_page_exists() -> None:
    named = {
        test for page in PAGES for test in re.findall(r"`(test_\w+)`", page.read_text("utf-8"))
    }
    sources = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    there = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    there |= {test for text in sources for test in re.findall(r"def (test_\w+)\(", text)}
    assert named <= there


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_json_block_is_json(page: Path) -> None:
    for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "json":
            json.loads(block)


def mappings(value: object) -> Iterator[object]:
    """Every `pathMappings` in a JSON value; a list of entries may stand for itself."""
    if isinstance(value, list):
        if any(isinstance(each, dict) and "localRoot" in each for each in value):
            yield value
        else:
            for each in value:
                yield from mappings(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from mappings(each)


def test_every_mapping_shown_can_be_used() -> None:
    blocks = (found for page in PAGES for found in FENCE.findall(page.read_text(encoding="utf-8")))
    shown = [json.loads(block) for language, block in blocks if language == "json"]
    read = [pathmap.parse(each, "/home/me/project") for each in mappings(shown)]
    assert any(entry.hosts for each in read for entry in each.entries)
    assert any(entry.ranks for each in read for entry in each.entries)


def rows(page: str, marker: str) -> list[list[str]]:
    """The cells of the first table after a marker, without its head."""
    text = (ROOT / page).read_text(encoding="utf-8").partition(f"<!-- {marker} -->")[2]
    table = re.search(r"^\|.*?(?:\n(?!\|)|\Z)", text, re.MULTILINE | re.DOTALL)
    assert table is not None, f"{page} has no table after {marker}"
    lines = table[0].strip().splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def default(option: Option) -> str:
    """An option's default as the documents print it."""
    shown = None if option.default is None else option.kind.show(option.default)
    return "" if shown is None else json.dumps(shown).strip('"')


def test_the_table_of_options_is_the_code() -> None:
    expected = [
        [
            each.flag,
            each.attribute,
            each.variable,
            default(each),
            each.kind.allowed,
            each.help,
        ]
        for each in OPTIONS
    ]
    assert rows("docs/command-line.md", "options") == expected


def test_the_readme_leads_to_every_page_and_to_the_concepts_first() -> None:
    pages = (ROOT / "README.md").read_text(encoding="utf-8").partition("## More\n")[2]
    listed = [target for target, _ in LINK.findall(pages) if target.startswith("docs/")]
    assert listed[0] == "docs/concepts.md"
    assert sorted(listed) == sorted(name(page) for page in ROOT.glob("docs/**/*.md"))


def test_the_readme_begins_with_a_short_moving_picture() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    picture = ROOT / re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)[0]
    assert picture.stat().st_size <= 2_000_000
    with Image.open(picture) as frames:
        shown = [each.info["duration"] for each in ImageSequence.Iterator(frames)]
    assert len(shown) > 1
    assert sum(shown) <= 15_000  # ms


def test_every_scope_is_explained() -> None:
    explained = [row[0].split("`")[0] for row in rows("docs/launch-configuration.md", "scopes")]
    assert explained == list(SCOPES)


@pytest.mark.parametrize("example", ["torchrun", "mpi"])
def test_the_launch_configurations_of_examples_are_those_of_their_page(example: str) -> None:
    """The page shows torchrun's; MPI's differs from it in the launcher that the page names."""
    stored = json.loads((ROOT / f"examples/{example}/.vscode/launch.json").read_text("utf-8"))
    page = (ROOT / "docs/launchers.md").read_text(encoding="utf-8")
    (shown,) = [json.loads(block) for language, block in FENCE.findall(page) if language == "json"]
    launch, attach = stored["configurations"]
    assert attach == shown["configurations"][1]
    if example == "torchrun":
        assert stored == shown
    else:
        of_torchrun = dict(shown["configurations"][0], name=launch["name"])
        of_torchrun["launcher"] = launch["launcher"]
        assert launch.items() <= of_torchrun.items()
        assert f"with the launcher `{launch['launcher']}`" in page
    program = launch["program"].replace("${workspaceFolder}", f"examples/{example}")
    assert (ROOT / program).is_file()
    assert f"dap-mux run -- {launch['launcher']} {program}" in page
    assert attach["connect"]["port"] == 5677


def test_the_launch_configuration_of_the_readme_is_the_one_in_the_repository() -> None:
    stored = json.loads((ROOT / ".vscode/launch.json").read_text(encoding="utf-8"))
    [stock] = [each for each in stored["configurations"] if each["type"] == "debugpy"]
    assert stock["name"] == "Remote Attach to Cluster"
    assert (stock["request"], stock["connect"]["port"]) == ("attach", 5677)
    assert stock["pathMappings"] == [{"localRoot": "${workspaceFolder}", "remoteRoot": "."}]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = next(block for language, block in FENCE.findall(readme) if language == "json")
    assert json.loads(shown).items() <= stock.items()


def test_nothing_is_installed_by_a_name_that_is_not_published() -> None:
    """Also not by `dap-mux`, which is another project's name."""
    texts = [
        *PAGES,
        *ROOT.glob("examples/*/*.yaml"),
        *ROOT.glob("examples/*/Dockerfile"),
        *ROOT.glob("dap_mux/**/*.py"),
        *ROOT.glob("vscode-extension/*.md"),
        *ROOT.glob("vscode-extension/walkthrough/*.md"),
        *ROOT.glob("vscode-extension/src/**/*.ts"),
        ROOT / "vscode-extension/package.json",
    ]
    by_name = re.compile(r"""install (?:-\S+ )*[\\"']*dap-mux(?:-cluster)?(?!-)\b""")
    for path in texts:
        assert not by_name.search(path.read_text(encoding="utf-8")), name(path)


def test_no_engine_is_installed_with_us() -> None:
    """A job brings its own; neither a plain install nor any extra needs another."""
    required = metadata.requires("dap-mux-cluster") or []
    names = {re.split(r"[^\w.-]", each)[0] for each in required}
    assert {"debugpy", "pygls", "pytest"} <= names
    assert not names & {"dask", "distributed", "monarch", "ray", "torch", "torchmonarch"}


def test_the_table_of_versions_is_what_tests_install() -> None:
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|", page, re.MULTILINE))
    assert table["Python of the ranks"] == ", ".join(VERSIONS)
    for release in (OLDEST, *TOO_OLD):
        assert release in table["debugpy"]
    engines = (ROOT / "tests/launchers/install").read_text(encoding="utf-8")
    [torch] = re.findall(r"torch==([\d.]+)", engines)
    assert f"torch {torch} " in table["PyTorch"]
    code_server = (ROOT / "tests/vscode/install").read_text(encoding="utf-8")
    [code] = re.findall(r"^VERSION=.* # VS Code ([\d.]+)", code_server, re.MULTILINE)
    package = json.loads((ROOT / "vscode-extension/package.json").read_text(encoding="utf-8"))
    assert table["VS Code"].startswith(f"{code},")
    assert package["engines"]["vscode"] == "^1.90.0"
    assert "the extension accepts 1.90 and newer" in table["VS Code"]
