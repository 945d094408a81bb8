# SPDX-License-Identifier: Apache-2.0
"""Coset for PyTorch: the process group "coset" (importing this registers it)."""
from .process_group import ProcessGroup, register

register()

__all__ = ["ProcessGroup"]
