"""Pictures of the pickers of a cluster: kubectl, and an API server in a network of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tests.support.hosts.private_network import possible
from tests.support.kube_server import cluster, kube_server
from tests.support.processes.commands import User
from tests.vscode.code_server import chromium, serving
from tests.vscode.pictures.camera import PACKAGE, Camera
from tests.vscode.pictures.opening import opener
from tests.vscode.scene import copied_example
from tests.vscode.workbench import browsing

POD_CONFIGURATION: Final = "Remote Attach to Cluster: Pick a Pod"


async def cluster_pickers(folder: Path) -> None:
    """Only root can make the network."""
    if not possible():
        print("no pictures of a cluster: only root can make its network")
        return
    user = User(folder)
    copied_example(user)
    with cluster(folder) as pods:
        sleeping = [
            pods.add(f"train-{number}-x7k2p", labels={"job-name": "train"}) for number in range(3)
        ]
        for pod in sleeping[:2]:
            await pod.start("sleep", "infinity", cwd=user.folder)
            pod.runs()
        kubeconfig = folder / "kubeconfig"
        os.environ["KUBECONFIG"] = str(kubeconfig)  # VS Code's, too: this is the last part
        async with (
            kube_server(pods, kubeconfig) as api,
            serving(folder / "home", packages=[PACKAGE]) as server,
            browsing(chromium()) as browser,
        ):
            camera = Camera(await opener(browser, user)(server))
            await _pickers(camera)
            api.logged_in = False
            await _not_logged_in(camera)
        await user.close()


async def _pickers(camera: Camera) -> None:
    window = camera.window
    await window.open_file("examples/data_parallel.py", 1)
    await window.extension()
    await _start(camera)
    await camera.asked("namespace", ready="training")
    await window.page.locator(".quick-input-list .monaco-list-row", has_text="training").click()
    await camera.asked("pod", ready="job/train")
    await camera.close_picker()


async def _not_logged_in(camera: Camera) -> None:
    await _start(camera)
    toast = camera.window.page.locator(".notification-toast", has_text="kubectl is not logged in")
    await toast.first.wait_for()
    await camera.take("not-logged-in")


async def _start(camera: Camera) -> None:
    """Choose the configuration that asks for a pod, where nothing is configured."""
    row = camera.window.page.locator(".quick-input-list .monaco-list-row")
    await camera.window.command("Debug: Start Debugging")
    await row.filter(has_text=POD_CONFIGURATION).first.click()
