# SPDX-License-Identifier: Apache-2.0
"""For scripts that torchrun starts: their functions case_*, one after the other on all ranks; rank 0 says which have passed."""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch.distributed as dist


def run_cases(names: dict[str, Any], chosen: Sequence[str] = ()) -> None:
    """`names`: of the script, globals(); `chosen`: words in the names of cases, all without. Ends the process group."""
    rank = dist.get_rank()
    cases: list[tuple[str, Callable[[], None]]] = [(n, c) for n, c in names.items() if n.startswith("case_")]
    for name, case in cases:
        if chosen and not any(word in name for word in chosen):
            continue
        try:
            case()
        except BaseException as error:
            print(f"{name} failed on rank {rank}: {error!r}", file=sys.stderr, flush=True)
            raise
        dist.barrier()
        if rank == 0:
            print(name, "passed", flush=True)
    dist.destroy_process_group()
