# SPDX-License-Identifier: Apache-2.0
"""The all-gather by which a communicator is made, over a c10d Store."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any


def life(store: Any, rank: int) -> int:
    """How many groups of this rank have met in `store`, this one counted: a Store may outlive them, and when all are destroyed and
    made again torch gives them the same names, so that what was said in one life would be read in the next."""
    return int(store.add(f"coset/lives/{rank}", 1))


def store_allgather(store: Any, rank: int, size: int) -> Callable[[bytes, float], bytes]:
    """For Comm.from_callback. `store` is one that no other group uses (init_process_group gives each its own prefix)."""
    calls, this = itertools.count(), life(store, rank)

    def allgather(mine: bytes, timeout: float) -> bytes:
        call = next(calls)
        keys = [f"coset/{this}/{call}/{r}" for r in range(size)]
        store.set(keys[rank], mine)
        if timeout >= 0:
            store.wait(keys, timedelta(seconds=timeout))
        else:
            store.wait(keys)
        return b"".join(bytes(store.get(key)) for key in keys)

    return allgather
