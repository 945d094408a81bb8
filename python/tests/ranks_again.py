# SPDX-License-Identifier: Apache-2.0
"""Run by torchrun, whose Store outlives the groups: everything is ended and begun again, three times. Not collected by pytest."""
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from coset.torch import LatticeState, lattice_hook

for life in range(3):
    dist.init_process_group("coset")
    state, ddp = LatticeState(objective="bits"), DistributedDataParallel(torch.nn.Linear(64, 64))
    ddp.register_comm_hook(state, lattice_hook)
    for step in range(3 + life):
        if step == 3 and dist.get_rank() == 1:
            time.sleep(1.2)  # long enough for the others to look who has left
        ddp(torch.randn(8, 64)).square().mean().backward()
    state.close()
    dist.destroy_process_group()
    print(f"life {life} passed", flush=True)
