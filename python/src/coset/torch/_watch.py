# SPDX-License-Identifier: Apache-2.0
"""Waiting that ends when another rank cannot go on.

A backend such as gloo lets the others wait for its timeout, half an hour, when one rank raises instead of starting its next
collective. So a rank that stops writes why into the Store by which the group met, with the number of transfers it had
started; who waits looks there twice a second. Transfers up to that number will end, so they are waited for; later ones
cannot.
"""
from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from ..errors import AbortedError, CommunicatorError, Error, LateError, MismatchError, PeerError
from ._store import life

_SLICE = timedelta(seconds=0.5)
# After a broken link: how long the others have to say that they live.
_GRACE = 1.5

_RAISED, _LEFT, _TOLD = "raised", "left", "told"


def _store(group: dist.ProcessGroup) -> Any:
    """The Store of a group, under a prefix of our own."""
    try:
        base = group.get_group_store()
    except (AttributeError, RuntimeError):  # before torch 2.7
        base = None
    if base is None:  # groups written in Python
        name = dist.distributed_c10d._get_process_group_name(group)
        base = dist.PrefixStore(name, dist.distributed_c10d._get_default_store())
    return dist.PrefixStore("coset-hook", base)


class Watch:
    """Of one rank of `group`. One thread."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._ranks = dist.get_process_group_ranks(group)
        self._rank = self._ranks[dist.get_rank(group)]
        store = _store(group)
        self._store = dist.PrefixStore(str(life(store, self._rank)), store)
        self._said = False
        self._quitting = False
        self.started = 0

    def wait(self, work: Any, number: int) -> None:
        """Waits for the transfer that was the number-th of this rank; raises what ended it."""
        while True:
            try:
                work.wait(_SLICE)
                return
            except Exception as error:  # noqa: BLE001 - backends raise all sorts, also for the end of the slice
                if work.is_completed():
                    self._ended(work, error)
                    return
            if self._quitting:
                raise AbortedError("the interpreter ends with a gradient exchange under way")
            self._look(number)

    def quit(self) -> None:
        """Ends waits within a slice and says nothing more: the broken links will tell. From any thread."""
        self._said = self._quitting = True

    def agree(self, options: str) -> None:
        """Raises on all ranks where some have others: a backend would be asked for different transfers, and gloo for one ends the
        process then. Waits for all; the last to come compares."""
        self._store.set(f"options/{self._rank}", options)
        if self._store.add("options", 1) == len(self._ranks):
            all_of_them = {rank: self._store.get(f"options/{rank}").decode() for rank in self._ranks}
            first = self._ranks[0]
            differing = [f"rank {first} has {all_of_them[first]}, rank {rank} {other}"
                         for rank, other in all_of_them.items() if other != all_of_them[first]]
            self._store.set("options/found", differing[0] if differing else "alike")
        found = self._store.get("options/found").decode()
        if found != "alike":
            raise MismatchError(f"the ranks' LatticeStates differ: {found}", rank=self._rank)

    def raised(self, error: BaseException) -> None:
        """Tells the others, unless they told us."""
        self._say(_RAISED, f"{type(error).__name__}: {error}")

    def left(self) -> None:
        self._say(_LEFT, "its LatticeState was closed or deleted")

    def _say(self, kind: str, text: str) -> None:
        if self._said:
            return
        self._said = True
        entry = json.dumps([kind, self._rank, self.started, text])
        try:
            self._store.set(f"stopped/{self._store.add('stopped', 1)}", entry)
        except Exception:  # noqa: BLE001 - the Store has ended with the job: there is nobody to tell
            pass

    def _entries(self) -> list[tuple[str, int, int, str]]:
        """What ranks have said: (kind, rank, transfers started, text). Nothing if the Store cannot be reached."""
        try:
            keys = [f"stopped/{i + 1}" for i in range(self._store.add("stopped", 0))]
            return [tuple(json.loads(self._store.get(key))) for key in keys if self._store.check([key])]
        except Exception:  # noqa: BLE001
            return []

    def _look(self, number: int) -> None:
        """Raises if the transfer cannot end."""
        stopped = [entry for entry in self._entries() if entry[2] < number]
        if stopped:
            self._raise(stopped, None)

    def _ended(self, work: Any, error: Exception) -> None:
        """The work has ended, perhaps just after the slice."""
        try:
            work.wait()
        except Exception as failed:  # noqa: BLE001
            error = failed
        else:
            return
        stopped = self._entries()
        named = isinstance(error, (PeerError, LateError, MismatchError))
        if named and not any(kind == _RAISED for kind, *_ in stopped):
            self._say(_TOLD, str(error))
            raise error
        self._raise(stopped, error)

    def _raise(self, stopped: list[tuple[str, int, int, str]], error: Exception | None) -> None:
        for kind, rank, _, text in sorted(stopped, key=lambda entry: entry[0] != _RAISED):
            if kind == _RAISED:
                self._said = True
                raise AbortedError(f"rank {rank} failed in its gradient exchange: {text}", rank=self._rank, peer=rank) from error
            if kind == _LEFT:
                self._said = True
                raise PeerError(f"rank {rank} has left: {text}", rank=self._rank, peer=rank) from error
        text = str(error) if error is not None else stopped[0][3]
        self._say(_TOLD, text)
        raise self._missing(text) from error

    def _missing(self, text: str) -> Error:
        """A link broke: who does not say that it lives is gone."""
        end = time.monotonic() + _GRACE
        while True:
            entries = self._entries()
            for kind, rank, _, why in entries:
                if kind == _RAISED:
                    return AbortedError(f"rank {rank} failed in its gradient exchange: {why}", rank=self._rank, peer=rank)
            silent = sorted(set(self._ranks) - {rank for _, rank, _, _ in entries})
            if not silent or time.monotonic() > end:
                break
            time.sleep(0.05)
        if not silent or self._rank in silent:
            return CommunicatorError(text, rank=self._rank)
        names = f"rank {silent[0]}" if len(silent) == 1 else f"ranks {', '.join(map(str, silent))}"
        return PeerError(f"no word from {names}: ended, or cut off ({text})", rank=self._rank,
                         peer=silent[0] if len(silent) == 1 else None)
