# SPDX-License-Identifier: Apache-2.0
"""The shared library and its declarations. cffi releases the GIL around every call."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from cffi import FFI

_here = Path(__file__).parent
ffi: Any = FFI()
# Made from the public headers when the package was built (declarations.py); these are never written by hand.
ffi.cdef((_here / "_declarations.txt").read_text(encoding="utf-8"))
lib: Any = ffi.dlopen(str(_here / "libcoset.so"))


def text(pointer: Any) -> str:
    """A C string as str; "" for NULL."""
    return "" if pointer == ffi.NULL else ffi.string(pointer).decode("utf-8", "replace")


def struct(name: str) -> Any:
    """A new zeroed option, report or error struct whose struct_size is set."""
    new = ffi.new(f"{name} *")
    new.struct_size = ffi.sizeof(name)
    return new
