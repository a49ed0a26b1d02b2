# The script of docs/openshift.md: its breakpoints are on lines 11, 16 and 20.
import os

import debugpy
import torch

rank = int(os.environ.get("RANK", "0"))
debugpy.listen(("127.0.0.1", int(os.environ.get("DEBUG_PORT", "5678")) + rank))
print("Waiting for debugger to attach...", flush=True)
debugpy.wait_for_client()
print(f"CUDA available: {torch.cuda.is_available()}")
device = "cuda:0" if torch.cuda.is_available() else "cpu"
names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] or ["CPU"] * 4

for i, device_name in enumerate(names):
    print(f"GPU {i}: {device_name}")

x = torch.ones(1000, 1000, device=device)
y = torch.full((1000, 1000), rank + 1.0, device=device)
z = torch.matmul(x, y)
print(f"Result: {tuple(z.shape)} of {z[0, 0].item():.0f}")
