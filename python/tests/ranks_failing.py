# SPDX-License-Identifier: Apache-2.0
"""Run by torchrun: one rank fails or leaves in the middle of training, the others are told why. Not collected by pytest."""
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from rank_cases import run_cases
from torch.nn.parallel import DistributedDataParallel

import coset.torch
from coset.torch import Averager, LatticeState, lattice, lattice_hook, process_group

torch.set_num_threads(1)
dist.init_process_group(sys.argv[1])
RANK, SIZE = dist.get_rank(), dist.get_world_size()
CULPRIT = 1
# Far less than the backend's timeout; more than the watch's slices and whatever else the machine is doing.
TOLD_WITHIN = 20.0


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.Linear(128, 32))


def ddp_step(state: LatticeState) -> Callable[[], None]:
    ddp = DistributedDataParallel(model(), bucket_cap_mb=0.03)
    ddp.register_comm_hook(state, lattice_hook)
    return lambda: ddp(torch.randn(8, 64)).square().mean().backward()


def averager_step(state: LatticeState) -> Callable[[], None]:
    net = model()
    averager = Averager(net.parameters(), state, bucket_mb=0.01)

    def step() -> None:
        net(torch.randn(8, 64)).square().mean().backward()
        averager.wait()
    return step


def told(step: Callable[[], None], *words: str) -> None:
    """Steps until an error that has all the words, soon; and again in the next step."""
    start = time.monotonic()
    for _ in range(2):
        try:
            for _ in range(20):
                step()
        except Exception as error:  # noqa: BLE001 - its own rank gets what was raised
            assert time.monotonic() - start < TOLD_WITHIN, f"told after {time.monotonic() - start:.1f} s"
            assert all(word in str(error) for word in words), error
        else:
            raise AssertionError("no rank was told")


def fails(make: Callable[[LatticeState], Callable[[], None]], spoil: Callable[[LatticeState], None], text: str) -> None:
    """Three steps, then one rank is spoiled."""
    state = LatticeState(objective="bits")
    step = make(state)
    for _ in range(3):
        step()
    if RANK == CULPRIT:
        spoil(state)
        told(step, text)
    else:
        told(step, f"rank {CULPRIT}", text)
    dist.barrier()  # the user's group is as it was


def no_memory(state: LatticeState) -> None:
    """In the dispatcher, with transfers under way: the second bucket of a step."""
    begin, calls = state._mean.begin, []

    def second(spans: object) -> object:
        calls.append(None)
        if len(calls) % 2 == 0:
            raise MemoryError("none left")
        return begin(spans)
    state._mean.begin = second


def case_a_dispatcher_that_fails() -> None:
    fails(ddp_step, no_memory, "none left")


def case_a_dispatcher_that_fails_without_ddp() -> None:
    fails(averager_step, no_memory, "none left")


def case_a_hook_that_fails() -> None:
    """On the caller's thread."""
    kept = lattice._flat

    def broken(_gradient: torch.Tensor) -> torch.Tensor:
        raise TypeError("a bad dtype")

    def spoil(_state: LatticeState) -> None:
        lattice._flat = broken
    fails(ddp_step, spoil, "a bad dtype")
    lattice._flat = kept


def case_a_rank_that_closes_its_state() -> None:
    fails(ddp_step, LatticeState.close, "closed")


def case_a_rank_that_stops_training() -> None:
    """It drops model and state, and lives on."""
    state = LatticeState(objective="bits")
    step = ddp_step(state)
    for _ in range(3):
        step()
    if RANK == CULPRIT:
        del step, state
    else:
        told(step, f"rank {CULPRIT} has left")
    dist.barrier()


def case_an_operation_of_the_process_group_that_fails() -> None:
    """Out of memory between two steps of one operation: the others wait in it."""
    group = dist.new_group(backend="coset")
    kept = process_group.raw

    def no_memory(_tensor: torch.Tensor) -> torch.Tensor:
        raise MemoryError("none left")

    def step() -> None:
        dist.all_reduce(torch.zeros(4, dtype=torch.int32), dist.ReduceOp.BXOR, group=group)
    step()
    if RANK == CULPRIT:
        process_group.raw = no_memory
        told(step, "none left")
        process_group.raw = kept
    else:
        told(step, f"rank {CULPRIT}", "none left")


def case_a_rank_with_less_data_joins() -> None:
    """DDP's join(): a rank that has no more data takes part with zeros."""
    state = LatticeState(objective="bits")
    ddp = DistributedDataParallel(model(), bucket_cap_mb=0.03)
    ddp.register_comm_hook(state, lattice_hook)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    with ddp.join():
        for _ in range(3 + 2 * RANK):
            optimizer.zero_grad()
            ddp(torch.randn(8, 64)).square().mean().backward()
            optimizer.step()
    mine = torch.cat([p.detach().reshape(-1) for p in ddp.parameters()])
    everyone = [torch.empty_like(mine) for _ in range(SIZE)]
    dist.all_gather(everyone, mine)
    assert all(torch.equal(e, mine) for e in everyone)


def case_nobody_is_blamed_who_only_ended_first() -> None:
    """States that are dropped after the same number of steps, at different times."""
    for _ in range(5):
        state = LatticeState(objective="bits")
        step = ddp_step(state)
        for _ in range(3):
            step()
        del step, state


if __name__ == "__main__":
    run_cases(globals())
