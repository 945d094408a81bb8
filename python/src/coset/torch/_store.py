# SPDX-License-Identifier: Apache-2.0
"""The all-gather by which a communicator is made, over a c10d Store."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any


def store_allgather(store: Any, rank: int, size: int) -> Callable[[bytes, float], bytes]:
    """For Comm.from_callback. `store` is one that no other group uses (init_process_group gives each its own prefix)."""
    calls = itertools.count()

    def allgather(mine: bytes, timeout: float) -> bytes:
        call = next(calls)
        keys = [f"coset/{call}/{r}" for r in range(size)]
        store.set(keys[rank], mine)
        if timeout >= 0:
            store.wait(keys, timedelta(seconds=timeout))
        else:
            store.wait(keys)
        return b"".join(bytes(store.get(key)) for key in keys)

    return allgather
