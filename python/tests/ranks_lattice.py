# SPDX-License-Identifier: Apache-2.0
"""Run by torchrun: lattice_hook over the backend named by the first argument. Not collected by pytest."""
import copy
import os
import sys

import torch
import torch.distributed as dist
from rank_cases import run_cases
from torch.nn.parallel import DistributedDataParallel

import coset.torch
from coset.torch import Averager, LatticeState, _parts, lattice, lattice_hook

torch.set_num_threads(1)
dist.init_process_group(sys.argv[1])
RANK, SIZE = dist.get_rank(), dist.get_world_size()


def mlp(dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(),
                               torch.nn.Linear(128, 32)).to(dtype)


def wrap(model: torch.nn.Module, **options: object) -> tuple[DistributedDataParallel, LatticeState]:
    """Several buckets, always compressed."""
    ddp_options = {k: options.pop(k) for k in ("find_unused_parameters", "gradient_as_bucket_view") if k in options}
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.05, **ddp_options)
    state = LatticeState(**{"objective": "bits", **options})
    ddp.register_comm_hook(state, lattice_hook)
    return ddp, state


def batch(step: int, rank: int = RANK, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(32, 64, generator=torch.Generator().manual_seed(1000 * step + rank)).to(dtype)


def loss_of(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return (model(x) - x[:, :32]).square().mean()


def assert_identical(*tensors: torch.Tensor) -> None:
    """The same bits on all ranks."""
    mine = torch.cat([t.detach().reshape(-1).view(torch.uint8) for t in tensors])
    everyone = [torch.empty_like(mine) for _ in range(SIZE)]
    dist.all_gather(everyone, mine)
    assert all(torch.equal(e, mine) for e in everyone)


def gradients(model: torch.nn.Module) -> list[torch.Tensor]:
    return [p.grad.clone() for p in model.parameters()]


def case_replicas_stay_identical_and_learn() -> None:
    def train(compressed: bool) -> tuple[torch.nn.Module, float]:
        if compressed:
            ddp, state = wrap(mlp())
        else:
            ddp, state = DistributedDataParallel(mlp()), None
        optimizer = torch.optim.Adam(ddp.parameters(), lr=1e-3)
        for step in range(200):
            optimizer.zero_grad()
            loss_of(ddp, batch(step)).backward()
            optimizer.step()
        if state is not None:
            report = state.report()
            # These layers have 1 to 4 blocks each, which do not divide evenly among owners: equal frames are mostly padding.
            assert report["steps"] == 200 and 1 < report["bits_per_coord_sent"] < 16, report
        with torch.no_grad():
            return ddp.module, float(torch.stack([loss_of(ddp.module, batch(5000, r)) for r in range(SIZE)]).mean())

    model, loss = train(True)
    assert_identical(*model.parameters())
    _, exact = train(False)
    assert loss < 1.02 * exact, (loss, exact)


def case_unbiased_within_the_budget() -> None:
    """Over many calls the error's mean vanishes, and its variance is what the budget allows (half as much again: seven
    calls' scatter is far less)."""
    model = mlp()
    ddp, state = wrap(model, error_budget=0.05)
    per_rank = []
    for rank in range(SIZE):
        single = copy.deepcopy(model)
        loss_of(single, batch(1, rank)).backward()
        per_rank.append(torch.cat([g.reshape(-1) for p, g in zip(single.parameters(), gradients(single), strict=True)
                                   if p.dim() > 1]))
    exact = torch.stack(per_rank)
    errors = []
    for _ in range(40):
        ddp.zero_grad()
        loss_of(ddp, batch(1)).backward()
        got = torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.dim() > 1])
        errors.append(got - exact.mean(0))
    error = torch.stack(errors)
    sampling = exact.var(0).sum() / SIZE
    assert error.square().sum(1).mean() < 1.5 * 0.05 * sampling, (error.square().sum(1).mean(), sampling)
    mean_error = error.mean(0).square().sum()
    assert mean_error < 2 * error.square().sum(1).mean() / len(error), "biased"


def case_small_and_one_dimensional_parameters_are_exact() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Linear(128, 4))
    ddp, _ = wrap(model)
    plain = DistributedDataParallel(copy.deepcopy(model))
    loss = lambda m: (m(batch(0)) ** 2).mean()  # noqa: E731
    loss(ddp).backward()
    loss(plain).backward()
    for (name, p), q in zip(model.named_parameters(), plain.parameters(), strict=True):
        if p.dim() < 2 or p.numel() < 1024:  # but for the order of the sum
            assert torch.allclose(p.grad, q.grad, rtol=0, atol=1e-6 * float(q.grad.abs().max())), name


def case_gradient_accumulation() -> None:
    model = mlp()
    ddp, state = wrap(model)
    for step in range(3):
        with ddp.no_sync():
            loss_of(ddp, batch(2 * step)).backward()
        loss_of(ddp, batch(2 * step + 1)).backward()
        assert_identical(*gradients(model))
        ddp.zero_grad()
    assert state.report()["steps"] == 3


class _Branches(torch.nn.Module):
    """Uses one of two layers, by step: parameters without a gradient in this one."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right, self.out = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64), torch.nn.Linear(64, 32)

    def forward(self, x: torch.Tensor, left: bool) -> torch.Tensor:
        return self.out(self.left(x) if left else self.right(x))


def case_unused_parameters() -> None:
    ddp, _ = wrap(_Branches(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for step in range(6):
        optimizer.zero_grad()
        ddp(batch(step), step % 2 == 0).square().mean().backward()
        optimizer.step()
    assert_identical(*ddp.module.parameters())


def case_views_and_every_float() -> None:
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        model = mlp(dtype)
        ddp, _ = wrap(model, gradient_as_bucket_view=True)
        for step in range(3):
            ddp.zero_grad()
            loss_of(ddp, batch(step, dtype=dtype)).backward()
        assert_identical(*gradients(model))
        assert all(torch.isfinite(g).all() for g in gradients(model))


def case_channels_last() -> None:
    """Gradients that lie in memory in another order than their shape says."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(16, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3))
    model = model.to(memory_format=torch.channels_last)
    plain, (ddp, state) = DistributedDataParallel(copy.deepcopy(model)), wrap(model, bits=12)
    x = torch.randn(2, 16, 8, 8, generator=torch.Generator().manual_seed(RANK)).to(memory_format=torch.channels_last)
    for m in (plain, ddp):
        m(x).square().mean().backward()
    assert state.report()["coords"] > 0
    for p, q in zip(ddp.parameters(), plain.parameters(), strict=True):
        # the noise of the estimate is up to a third of a small gradient; another order of coordinates would give 1.4
        assert (p.grad - q.grad).norm() < 0.6 * q.grad.norm()
    assert_identical(*[p.grad.contiguous() for p in ddp.parameters()])


def case_average_without_ddp() -> None:
    model, state = mlp(), LatticeState(objective="bits", bits=12)
    loss_of(model, batch(0)).backward()
    mine = gradients(model)
    state.average(model.parameters())
    for got, own in zip(gradients(model), mine, strict=True):
        dist.all_reduce(own)
        assert (got - own / SIZE).norm() < 0.05 * own.norm()
    assert_identical(*gradients(model))


def case_averager_learns_like_ddp() -> None:
    """Plain loop, several buckets, gradients sent during backward; the replicas stay the same and learn."""
    model = mlp()
    averager = Averager(model.parameters(), LatticeState(objective="bits"), bucket_mb=0.015)
    assert len(averager._buckets) > 2
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for step in range(40):
        optimizer.zero_grad()
        loss = loss_of(model, batch(step))
        loss.backward()
        averager.wait()
        optimizer.step()
        losses.append(loss.item())
    assert_identical(*model.parameters())
    assert losses[-1] < 0.95 * losses[0], losses


def case_averager_gives_the_mean() -> None:
    """12 bits: within 5 % of the exact mean; with accumulation, and with a parameter that only one rank used."""
    model = _Branches()
    averager = Averager(model.parameters(), LatticeState(objective="bits", bits=12))
    for use_left in (True, RANK == 0):
        single = copy.deepcopy(model)
        for m, around in ((single, None), (model, averager.no_sync)):
            m.zero_grad()
            if around is None:
                m(batch(1), use_left).square().mean().backward()
            else:
                with around():
                    m(batch(1), use_left).square().mean().backward()
            m(batch(2), use_left).square().mean().backward()
        averager.wait()
        for p, q in zip(model.parameters(), single.parameters(), strict=True):
            mean = torch.zeros_like(q) if q.grad is None else q.grad.clone()
            dist.all_reduce(mean)
            mean /= SIZE
            assert (p.grad - mean).norm() <= 0.05 * mean.norm(), (p.grad - mean).norm() / mean.norm()
        assert_identical(*gradients(model))
    model.zero_grad()
    model(batch(3), True).square().mean().backward()
    try:
        model(batch(3), True).square().mean().backward()
    except RuntimeError as error:
        assert "no_sync" in str(error), error
    else:
        raise AssertionError("a second backward was taken")
    averager.wait()
    averager.close()


def case_averager_takes_mixed_dtypes() -> None:
    model = torch.nn.Sequential(mlp(), mlp(torch.float64), torch.nn.Linear(8, 8, dtype=torch.bfloat16))
    averager = Averager(model.parameters(), LatticeState(objective="bits"))
    assert len(averager._buckets) == 3
    loss_of(model[0], batch(0)).backward()
    loss_of(model[1], batch(0, dtype=torch.float64)).backward()
    averager.wait()
    for part in model:
        assert_identical(*gradients(part))


def case_homomorphic() -> None:
    """One all_reduce of codes."""
    ddp, state = wrap(mlp(), mode="homomorphic")
    optimizer = torch.optim.Adam(ddp.parameters(), lr=1e-3)
    losses = []
    for step in range(30):
        optimizer.zero_grad()
        loss = loss_of(ddp, batch(step))
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    assert_identical(*ddp.module.parameters())
    assert losses[-1] < 0.95 * losses[0], losses


def case_infinite_gradients_arrive_everywhere() -> None:
    """What GradScaler looks for: one rank overflows, all ranks see it and skip the step."""
    model = mlp()
    ddp, _ = wrap(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = [p.detach().clone() for p in model.parameters()]
    x = batch(0)
    if RANK == SIZE - 1:
        x = x * float("inf")
    scaler.scale(loss_of(ddp, x)).backward()
    assert any(not torch.isfinite(g).all() for g in gradients(model))
    scaler.step(optimizer)
    scaler.update()
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))
    assert scaler.get_scale() < 2.0**10
    optimizer.zero_grad()
    scaler.scale(loss_of(ddp, batch(1))).backward()
    assert all(torch.isfinite(g).all() for g in gradients(model)), "it recovers"
    assert_identical(*gradients(model))


def case_state_is_saved_and_loaded() -> None:
    model = mlp()
    ddp, state = wrap(model)
    for step in range(4):
        loss_of(ddp, batch(step)).backward()
    saved = state.state_dict()
    other, fresh = wrap(mlp())
    fresh.load_state_dict(saved)
    assert fresh.state_dict()["mean"] == saved["mean"]
    loss_of(other, batch(9)).backward()
    assert_identical(*gradients(other.module))
    try:
        fresh.load_state_dict({"size": SIZE + 1, "mean": b""})
    except coset.MismatchError:
        return
    raise AssertionError("a state of another number of ranks was taken")


def case_time_objective_decides_alike() -> None:
    ddp, state = wrap(mlp(), objective="time")
    for step in range(16):
        loss_of(ddp, batch(step)).backward()
    chosen = torch.tensor([float(state.report()["plain"])])
    assert_identical(chosen)
    assert_identical(*gradients(ddp.module))


def case_large_parameters_go_in_parts() -> None:
    """Pieces of one parameter, and several parameters in one part; DDP's future waits for all of them."""
    kept, _parts._SHARE = _parts._SHARE, 8192 // dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 487), torch.nn.ReLU(), torch.nn.Linear(487, 48), torch.nn.ReLU(),
                                torch.nn.Linear(48, 48), torch.nn.Linear(48, 32))
    plain, (ddp, state) = DistributedDataParallel(copy.deepcopy(model)), wrap(model, bits=12)
    for m in (plain, ddp):
        loss_of(m, batch(0)).backward()
    _parts._SHARE = kept
    for p, q in zip(model.parameters(), plain.module.parameters(), strict=True):
        assert (p.grad - q.grad).norm() < 0.05 * q.grad.norm()
    assert_identical(*gradients(model))
    # 31168 elements are 4 parts, 23376 are 3, the others fit into one; two transfers each
    assert state.report()["transfers"] >= 2 * 8, state.report()


class _Elsewhere(torch.Tensor):
    """Says that it is on a GPU. What a test can do without one: the same calls, on the same memory."""

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", 0)


class _Bucket:
    """A GradBucket, as far as the hook looks at it."""

    def __init__(self, parameters: list[torch.nn.Parameter], values: torch.Tensor) -> None:
        self._parameters, self._buffer = parameters, values.as_subclass(_Elsewhere)

    def buffer(self) -> torch.Tensor:
        return self._buffer

    def gradients(self) -> list[torch.Tensor]:
        parts = torch.split(self._buffer, [p.numel() for p in self._parameters])
        return [part.view(p.shape) for part, p in zip(parts, self._parameters, strict=True)]

    def parameters(self) -> list[torch.nn.Parameter]:
        return self._parameters

    def is_last(self) -> bool:
        return True


def case_gradients_on_a_gpu_go_through_the_host_if_asked() -> None:
    parameters = [torch.nn.Parameter(torch.zeros(64, 64)), torch.nn.Parameter(torch.zeros(64))]
    values = torch.randn(64 * 64 + 64, generator=torch.Generator().manual_seed(RANK))
    refused = lattice_hook(LatticeState(objective="bits"), _Bucket(parameters, values.clone()))
    try:
        refused.wait()
    except RuntimeError as error:
        assert "cuda:0" in str(error) and "cuda_staging=True" in str(error), error
    else:
        raise AssertionError("gradients on a GPU were taken unasked")
    asked = []

    def pinned(shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
        asked.append(shape)
        return torch.empty(shape, dtype=dtype)

    kept, lattice._pinned = lattice._pinned, pinned  # pinning needs a GPU
    bucket = _Bucket(parameters, values.clone())
    state = LatticeState(objective="bits", bits=12, cuda_staging=True)
    assert lattice_hook(state, bucket).wait() is bucket.buffer() and len(asked) == 1
    lattice._pinned = kept
    got = bucket.buffer().as_subclass(torch.Tensor)
    dist.all_reduce(values)
    assert (got - values / SIZE).norm() < 0.05 * values.norm() / SIZE
    assert torch.allclose(got[-64:], values[-64:] / SIZE, atol=1e-6), "the one-dimensional one is exact"
    assert_identical(got)


def case_plain_is_the_exact_mean() -> None:
    """What the time objective does where compression does not pay: joined and in place."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 1100), torch.nn.Linear(1100, 32), torch.nn.Linear(32, 32))
    for parameter in model.parameters():
        dist.broadcast(parameter.data, 0)
    plain, (ddp, state) = DistributedDataParallel(copy.deepcopy(model)), wrap(model, objective="time")
    state._trial.plain = True
    for m in (plain, ddp):
        loss_of(m, batch(0)).backward()
    for p, q in zip(model.parameters(), plain.module.parameters(), strict=True):
        assert torch.allclose(p.grad, q.grad, rtol=0, atol=1e-6 * float(q.grad.abs().max()))
    assert_identical(*gradients(model))
    assert state.report()["exact_elements"] == sum(p.numel() for p in model.parameters())


def case_half_precision_needs_room_for_the_mean_only() -> None:
    """Not for the sum, which is more than 65504: in codes, exact, and plain."""
    for plain in (False, True):
        state = LatticeState(objective="time")
        state._trial.plain = plain
        parameters = [torch.nn.Parameter(torch.zeros(*shape, dtype=torch.float16)) for shape in ((64, 64), (64,), (512, 512))]
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, 40000)
        state.average(parameters)
        assert all((p.grad == 40000).all() for p in parameters), plain


def case_one_state_for_one_model_after_another() -> None:
    """Some ranks have freed the last model's memory, in which the next may lie."""
    state, kept = LatticeState(objective="bits"), []
    for _ in range(4):
        model = mlp()
        ddp = DistributedDataParallel(model, bucket_cap_mb=0.05)
        ddp.register_comm_hook(state, lattice_hook)
        for step in range(2):
            loss_of(ddp, batch(step)).backward()
        assert_identical(*gradients(model))
        if RANK:
            kept.append(model)
        del model, ddp


def case_one_state_for_two_models_at_once() -> None:
    state, models = LatticeState(objective="bits"), []
    for _ in range(2):
        models.append(DistributedDataParallel(mlp(), bucket_cap_mb=0.05))
        models[-1].register_comm_hook(state, lattice_hook)
    for step in range(3):
        (loss_of(models[0], batch(step)) + loss_of(models[1], batch(step + 10))).backward()
    for ddp in models:
        assert_identical(*gradients(ddp.module))


def case_sparse_gradients_are_refused() -> None:
    words = torch.nn.Embedding(100, 64, sparse=True)
    state = LatticeState(objective="bits")
    ddp = DistributedDataParallel(copy.deepcopy(words))
    ddp.register_comm_hook(LatticeState(objective="bits"), lattice_hook)
    averager = Averager(words.parameters(), state)
    for step in (lambda: ddp(torch.arange(5)).sum().backward(),
                 lambda: (words(torch.arange(5)).sum().backward(), averager.wait())):
        try:
            step()
        except RuntimeError as error:
            assert "sparse tensors" in str(error), error
        else:
            raise AssertionError("a sparse gradient was taken")


def case_forked_processes_are_refused() -> None:
    """They have no dispatcher: an error, not a wait for ever."""
    model, state = mlp(), LatticeState(objective="bits")
    child = os.fork()
    if child == 0:
        try:
            state.average(model.parameters())
        except RuntimeError as error:
            os._exit(7 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    state.average(model.parameters())


def case_closed_within_a_step() -> None:
    """What is under way gets an error."""
    state, parameter = LatticeState(objective="bits"), torch.nn.Parameter(torch.zeros(64, 64))
    parameter.grad = torch.ones(64, 64)
    bucket = state._submit(parameter, [(parameter, parameter.grad)], False)
    state.close()
    assert bucket.future.done()
    try:
        bucket.future.wait()
    except RuntimeError as error:
        assert "closed within a step" in str(error), error
    else:
        raise AssertionError("half a step was taken for a whole one")


def case_wrong_options() -> None:
    for options in ({"mode": "tree"}, {"objective": "fun"}, {"error_budget": -1.0}, {"codec": "nosuch"}):
        try:
            LatticeState(**options)
        except coset.ArgumentError:
            continue
        raise AssertionError(f"{options} was taken")


def case_different_options() -> None:
    """Told on all ranks; those that decide what is transferred before anything is, since gloo ends the process when sizes differ."""
    for name, values in (("objective", ("bits", "time")), ("min_elements", (1024, 100000))):
        try:
            LatticeState(**{"objective": "bits", name: values[RANK == 1]})
        except coset.MismatchError as error:
            assert "rank 0 has" in str(error) and f"{name}={values[1]}" in str(error), error
            continue
        raise AssertionError(f"different {name} were taken")


if __name__ == "__main__":
    run_cases(globals(), sys.argv[2:])
