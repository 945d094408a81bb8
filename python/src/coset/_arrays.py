# SPDX-License-Identifier: Apache-2.0
"""numpy arrays and torch CPU tensors as C buffers, without copies."""
from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._library import ffi, lib
from .errors import ArgumentError, UnsupportedError

# By name, so that bfloat16 of ml_dtypes and of torch are found alike. bool moves and compares as a byte.
DTYPES: dict[str, int] = {
    "float32": lib.COSET_F32, "float64": lib.COSET_F64, "float16": lib.COSET_F16, "bfloat16": lib.COSET_BF16,
    "int8": lib.COSET_I8, "uint8": lib.COSET_U8, "int32": lib.COSET_I32, "uint32": lib.COSET_U32,
    "int64": lib.COSET_I64, "uint64": lib.COSET_U64,
}
OPS: dict[str, int] = {"sum": lib.COSET_SUM, "avg": lib.COSET_AVG, "min": lib.COSET_MIN, "max": lib.COSET_MAX,
                       "prod": lib.COSET_PROD}


@dataclass(slots=True)
class Buffer:
    """Where an array's elements are. `owner` keeps them alive."""
    owner: Any
    pointer: Any
    count: int
    dtype: int
    itemsize: int


_VOID = ffi.typeof("void *")
_of_torch: dict[Any, int] = {}  # DTYPES by torch's own objects, as they come


def is_tensor(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _dtype(name: str) -> int:
    try:
        return DTYPES[name]
    except KeyError:
        raise UnsupportedError(f"dtype {name}: known are {', '.join(DTYPES)}") from None


def _of_tensor(tensor: Any) -> Buffer:
    if not tensor.is_cpu:
        raise UnsupportedError(f"a tensor on {tensor.device}: only CPU memory can be used; copy it with .cpu() first")
    if not tensor.is_contiguous() or tensor.is_sparse:
        raise ArgumentError("the tensor is not contiguous: its elements must lie in memory in order")
    if tensor.is_neg():
        raise ArgumentError("the tensor is a view that negates other memory: pass tensor.resolve_neg()")
    kind = tensor.dtype
    code = _of_torch.get(kind)
    if code is None:
        code = _of_torch[kind] = _dtype(str(kind)[6:])
    return Buffer(tensor, ffi.cast(_VOID, tensor.data_ptr()), tensor.numel(), code, kind.itemsize)


def buffer(array: Any, *, write: bool = False) -> Buffer:
    """ArgumentError if `array` is neither, is not contiguous, or is read-only and shall be written."""
    if is_tensor(array):
        return _of_tensor(array)
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"expected a numpy array or a torch tensor, not {type(array).__name__}")
    if not array.flags.c_contiguous:
        raise ArgumentError("the array is not contiguous: pass numpy.ascontiguousarray(array)")
    if not array.dtype.isnative:
        raise ArgumentError("the array's byte order is not this machine's")
    if write and not array.flags.writeable:
        raise ArgumentError("the array is read-only")
    return Buffer(array, ffi.cast(_VOID, array.ctypes.data), array.size, _dtype(array.dtype.name), array.itemsize)


def empty_like(array: Any, shape: tuple[int, ...]) -> Any:
    """A new array of the same kind and dtype."""
    if is_tensor(array):
        return array.new_empty(shape)
    return np.empty(shape, array.dtype)


def op_code(op: str) -> int:
    try:
        return OPS[op]
    except KeyError:
        raise ArgumentError(f"op {op!r}: known are {', '.join(OPS)}") from None
