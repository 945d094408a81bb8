# SPDX-License-Identifier: Apache-2.0
"""torch's reductions in terms of coset's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.distributed import ReduceOp

from .._arrays import DTYPES
from ..errors import UnsupportedError

# By number: torch makes a new object of an operator whenever one asks for it, and comparing those takes longer than a small sum.
_NAMES: dict[int, str] = {kind.value: name for kind, name in (
    (ReduceOp.SUM, "sum"), (ReduceOp.AVG, "avg"), (ReduceOp.MIN, "min"), (ReduceOp.MAX, "max"), (ReduceOp.PRODUCT, "prod"))}
_NATIVE = frozenset(getattr(torch, name) for name in DTYPES if hasattr(torch, name))
# On truth values, as bytes of 0 and 1.
_BOOL = {"sum": "max", "max": "max", "prod": "min", "min": "min"}
_BITS: dict[int, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    ReduceOp.BAND.value: torch.bitwise_and, ReduceOp.BOR.value: torch.bitwise_or, ReduceOp.BXOR.value: torch.bitwise_xor}
_LOCAL: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sum": torch.add, "avg": torch.add, "min": torch.minimum, "max": torch.maximum, "prod": torch.mul}


def _kind(op: Any) -> int:
    """The number of a ReduceOp's, or its RedOpType's, operator."""
    return int(getattr(op, "op", op).value)


def native(op: Any, tensor: torch.Tensor) -> tuple[torch.Tensor, str] | None:
    """The flat tensor and the name of the operator by which coset does this, or None if it cannot."""
    name = _NAMES.get(_kind(op))
    if name is None:
        return None
    if tensor.dtype in _NATIVE:
        return tensor, name
    if tensor.dtype == torch.bool:
        return (tensor.view(torch.uint8), _BOOL[name]) if name in _BOOL else None
    if tensor.is_complex():
        return (torch.view_as_real(tensor).reshape(-1), name) if name in ("sum", "avg") else None
    return None


def in_rank_order(op: Any, parts: torch.Tensor) -> torch.Tensor:
    """Any other operator, on all ranks' vectors (the rows of `parts`)."""
    kind = _kind(op)
    if kind not in _NAMES and kind not in _BITS:
        raise UnsupportedError(f"reduction {op}")
    combine = _BITS[kind] if kind in _BITS else _LOCAL[_NAMES[kind]]
    total = parts[0]
    for part in parts[1:]:
        total = combine(total, part)
    if _NAMES.get(kind) == "avg":
        size = len(parts)
        total = total / size if total.is_floating_point() or total.is_complex() else total.div(size, rounding_mode="trunc")
    return total
