# SPDX-License-Identifier: Apache-2.0
"""Run by torchrun with a backend, and perhaps "hook" and "exit": rank 1 kills itself (or ends as if all were done) in the middle of
training; the others must be told within seconds. Not collected by pytest."""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

import coset.torch

signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun ends the others as soon as it sees the death
dist.init_process_group(sys.argv[1])
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(500, 500))
if "hook" in sys.argv:
    model.register_comm_hook(coset.torch.LatticeState(objective="bits"), coset.torch.lattice_hook)
for step in range(1000):
    if rank == 1 and step == 3:
        if "exit" in sys.argv:
            sys.exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    try:
        model(torch.randn(8, 500)).sum().backward()
        dist.barrier()
    except RuntimeError as error:
        text = str(error).replace("\n", " ")
        print(f"rank {rank} told by {type(error).__name__} after {time.monotonic() - start:.1f} s: {text}", flush=True)
        os._exit(3)
