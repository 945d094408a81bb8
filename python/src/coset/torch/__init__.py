# SPDX-License-Identifier: Apache-2.0
"""Coset for PyTorch: compressed gradients for DDP, and the process group "coset" (importing this registers it)."""
from .averager import Averager
from .lattice import LatticeState, lattice_hook
from .process_group import ProcessGroup, register

register()

__all__ = ["Averager", "LatticeState", "ProcessGroup", "lattice_hook"]
