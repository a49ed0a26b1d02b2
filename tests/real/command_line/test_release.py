"""What a release publishes: the steps of its workflow, as far as they need no account."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest

from tests.support.processes import package_index

pytestmark = [
    pytest.mark.real,
    pytest.mark.heavy,
    pytest.mark.long,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
ROOT: Final = Path(__file__).resolve().parents[3]
PLACE: Final = ".github/workflows/release.yml"
WORKFLOW: Final = (ROOT / PLACE).read_text("utf-8")
AZ: Final = """\
#!/bin/sh
echo '{"accessToken": "by Entra ID", "expires_on": 4102444800, "tokenType": "Bearer"}'
"""
"""Azure's command after its login, as far as it is asked for a token."""
STEP: Final = re.compile(r"^      - run: (.*)$", re.MULTILINE)


@pytest.mark.rest  # by itself longer than a tenth of CI may take
def test_from_a_source_distribution_to_what_is_published(tmp_path: Path) -> None:
    """The first job's steps, in what `sdist` holds: all that a release needs is in there."""
    package_index.require(tmp_path)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    clone = tmp_path / archive.name.removesuffix(".tar.gz")
    jobs = WORKFLOW.partition("\njobs:\n")[2]
    _, first, *others = re.split(r"^  \w+:$", jobs, flags=re.MULTILINE)
    for step in STEP.findall(first):
        run(step, clone)
    run(f".venv/bin/check-jsonschema --builtin-schema vendor.github-workflows {PLACE}", clone)
    names = {each.name for each in (clone / "dist").iterdir()}
    assert names == {
        archive.name,
        "dap-mux-cluster.cdx.json",
        "dap-mux-vsix.cdx.json",
        "dap-mux.vsix",
        "dap_mux_cluster-0.1.0-py3-none-any.whl",
    }
    inside = json.loads((clone / "dist/dap-mux-cluster.cdx.json").read_text("utf-8"))
    found = {each["name"] for each in inside["components"]}
    assert {"anyio", "debugpy", "msgspec", "prompt_toolkit", "rich"} <= found
    assert "pytest" not in found
    # What the others publish of it: PyPI would refuse what is neither a wheel nor a source.
    run(STEP.findall(others[0])[0], clone)
    assert {each.suffix for each in (clone / "packages").iterdir()} == {".whl", ".gz"}
    extension_is_published(STEP.findall(others[1]), clone)


def extension_is_published(steps: list[str], clone: Path) -> None:
    """Run both steps up to the registries' own answers: with a token of this run, and no other."""
    to_open_vsx, to_marketplace = steps
    package = (clone / "dist/dap-mux.vsix").read_bytes()
    with registry() as (url, asked):
        github = {
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{url}/github?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "of-this-run",
        }
        run(to_open_vsx, clone, {**github, "OVSX_REGISTRY_URL": url})
        asked_github, *_ = (each for each in asked if each.path.startswith("/github"))
        exchanged, *_ = (each for each in asked if each.path.endswith("/token"))
        (published,) = (each for each in asked if each.path.startswith("/api/-/publish"))
        assert asked_github.authorization == "Bearer of-this-run"
        assert json.loads(exchanged.body)["token"] == "by GitHub"
        assert (published.authorization, published.body) == ("Bearer for minutes", package)
        # What comes after the first question to the Marketplace is known to Microsoft alone.
        bin_ = clone / "bin"
        bin_.mkdir()
        (bin_ / "az").write_text(AZ, "utf-8")
        (bin_ / "az").chmod(0o700)
        path = f"{bin_}{os.pathsep}{os.environ['PATH']}"
        run(to_marketplace, clone, {"VSCE_MARKETPLACE_URL": url, "PATH": path}, code=1)
        (first,) = (each for each in asked if each.path == "/_apis/gallery")
        scheme, _, secret = first.authorization.partition(" ")
        assert (scheme, base64.b64decode(secret)) == ("Basic", b"OAuth:by Entra ID")


@dataclass(frozen=True)
class Asked:
    """A request that a registry has had."""

    path: str
    authorization: str
    body: bytes


@contextmanager
def registry() -> Iterator[tuple[str, list[Asked]]]:
    """Play GitHub's token service, and a registry that takes whatever comes, on loopback."""
    asked: list[Asked] = []

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def answer(self) -> None:
            authorization = self.headers.get("Authorization", "")
            asked.append(Asked(self.path, authorization, self.body()))
            token = "by GitHub" if self.path.startswith("/github") else "for minutes"
            named = {"namespace": "dap-mux", "name": "dap-mux", "version": "0.1.0"}
            said = json.dumps({**named, "value": token}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = do_OPTIONS = answer

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_marketplace_is_published_to_by_the_program_that_packages() -> None:
    package = json.loads((ROOT / "vscode-extension/package.json").read_text("utf-8"))
    assert f"@vscode/vsce@{package['devDependencies']['@vscode/vsce']} " in WORKFLOW


def test_no_secret_is_kept_and_all_is_attested() -> None:
    assert "secrets." not in WORKFLOW
    for job in ("build", "pypi", "extension"):
        text = WORKFLOW.partition(f"\n  {job}:\n")[2].partition("\n\n")[0]
        assert "id-token: write" in text, job
    for attested in ("subject-path: dist/*\n", "cluster.cdx.json", "vsix.cdx.json"):
        assert attested in WORKFLOW


def run(step: str, folder: Path, variables: dict[str, str] | None = None, *, code: int = 0) -> None:
    """Run a step as the workflow does."""
    environ = {**os.environ, "PYTHON": sys.executable, **(variables or {})}
    done = subprocess.run(
        ["bash", "-e", "-c", step],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, f"{step}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
