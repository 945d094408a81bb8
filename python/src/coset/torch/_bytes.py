# SPDX-License-Identifier: Apache-2.0
"""Tensors as the flat pieces of memory that collectives take."""
from __future__ import annotations

from collections.abc import Sequence

import torch

from ..errors import UnsupportedError


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """Refuses what has no elements in this process's memory; a view that negates other memory becomes a copy."""
    if tensor.layout != torch.strided:
        raise UnsupportedError("sparse tensors: densify them first")
    if tensor.device.type != "cpu":
        raise UnsupportedError(f"a tensor on {tensor.device}: the coset process group works on CPU tensors; for GPUs use "
                               "coset.torch.lattice_hook over the process group of the device")
    return tensor.detach().resolve_neg()


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """One dimension; a view if the tensor is contiguous, else a copy."""
    one = dense(tensor).contiguous()
    # view(-1) would keep the stride of a single element, which need not be 1, and which view(dtype) does not like.
    return one.as_strided((one.numel(),), (1,))


def direct(tensor: torch.Tensor) -> torch.Tensor:
    """flat() for what only looks at addresses: a contiguous tensor as it is, which costs nothing."""
    plain = tensor.layout == torch.strided and tensor.is_contiguous() and tensor.is_cpu and not tensor.is_neg()
    return tensor if plain else flat(tensor)


def raw(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor, flat; a view if it is contiguous."""
    one = flat(tensor)
    return one if one.dtype == torch.uint8 else one.view(torch.uint8)


def is_view(part: torch.Tensor, tensor: torch.Tensor) -> bool:
    """Whether flat() or raw() of `tensor` was a view."""
    return part.data_ptr() == tensor.data_ptr()


def write_back(part: torch.Tensor, tensor: torch.Tensor) -> None:
    """Where flat() or raw() of `tensor` had to copy: the result goes where it belongs."""
    if tensor.numel() and not is_view(part, tensor):
        tensor.detach().copy_(part.view(tensor.dtype).view(tensor.shape))


def spread(data: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    """Writes bytes into several tensors, one after the other."""
    offset = 0
    for tensor in tensors:
        part = raw(tensor)
        part.copy_(data[offset:offset + part.numel()])
        write_back(part, tensor)
        offset += part.numel()


def same_sizes(tensors: Sequence[torch.Tensor]) -> bool:
    return len({t.numel() * t.element_size() for t in tensors}) == 1
