"""The program of Monarch's page, by the names of release 0.7: it ends once all have returned."""

import sys

from monarch.actor import this_host
from my_actors import DebugeeActor  # type: ignore[import-not-found]  # beside it

if __name__ == "__main__":
    size = int(sys.argv[1]) if sys.argv[1:] else 4
    process_mesh = this_host().spawn_procs({"hosts": size, "gpus": size})
    debugee_mesh = process_mesh.spawn("debugee", DebugeeActor)
    res = debugee_mesh.to_debug.call()
    print(len(list(res.get().values())), "have returned")
