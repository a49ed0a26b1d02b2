"""What operators bring to a cluster: their kinds of objects, and those that users have made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

Json = dict[str, Any]
# The kinds of each group, as the operators' own definitions name them.
KINDS: Final = {
    "kubeflow.org/v1": {"pytorchjobs": "PyTorchJob", "mpijobs": "MPIJob"},
    "jobset.x-k8s.io/v1alpha2": {"jobsets": "JobSet"},
    "ray.io/v1": {"rayjobs": "RayJob"},
}
VERBS: Final = ["get", "list", "watch"]
OBJECT: Final = "/apis/{group}/{version}/namespaces/{namespace}/{resource}/{name}"


@dataclass
class CustomResources:
    """The kinds that are installed, and their objects."""

    namespace: str
    installed: set[str] = field(default_factory=lambda: set(KINDS))
    allowed: bool = True
    """Whether the user may read them."""
    objects: dict[tuple[str, str], Json] = field(default_factory=dict)

    def put(self, resource: str, name: str, spec: Json, status: Json | None = None) -> None:
        """Create an object, or replace it."""
        version = next(version for version, kinds in KINDS.items() if resource in kinds)
        self.objects[resource, name] = {
            "kind": KINDS[version][resource],
            "apiVersion": version,
            "metadata": {"name": name, "namespace": self.namespace, "uid": name},
            "spec": spec,
            "status": status or {},
        }

    def ends(self, resource: str, name: str, condition: str, reason: str = "") -> None:
        """Its controller says how it has ended, or is, by a condition that is true."""
        said = {"type": condition, "status": "True", "reason": reason}
        self.objects[resource, name]["status"] = {"conditions": [said]}

    def groups(self) -> list[Json]:
        """What `/apis` says of them."""
        found = []
        for each in sorted(self.installed):
            group, _, version = each.partition("/")
            one = {"groupVersion": each, "version": version}
            found.append({"name": group, "versions": [one], "preferredVersion": one})
        return found

    def routes(self) -> Iterable[web.RouteDef]:
        for version in KINDS:
            yield web.get(f"/apis/{version}", self._kinds)
        yield web.get(OBJECT, self._object)

    async def _kinds(self, request: web.Request) -> web.Response:
        version = request.path.removeprefix("/apis/")
        resources = [
            {"name": name, "singularName": kind.lower(), "namespaced": True, "kind": kind,
             "verbs": VERBS}
            for name, kind in KINDS[version].items()
        ]  # fmt: skip
        return web.json_response(
            {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
        )

    async def _object(self, request: web.Request) -> web.Response:
        at = request.match_info
        full = f'{at["resource"]}.{at["group"]} "{at["name"]}"'
        if not self.allowed:
            return refuse(403, "Forbidden", f"{full} is forbidden: User cannot get it")
        found = self.objects.get((at["resource"], at["name"]))
        if found is None or at["namespace"] != self.namespace:
            return refuse(404, "NotFound", f"{full} not found")
        return web.json_response(found)


def refuse(code: int, reason: str, message: str) -> web.Response:
    """The API's way to say no."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return web.json_response(
        {**body, "message": message, "reason": reason, "code": code}, status=code
    )
