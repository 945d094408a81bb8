# SPDX-License-Identifier: Apache-2.0
"""Coset: the mean of vectors held by many ranks, exact or compressed without bias."""
from ._library import lib as _lib, text as _text
from .comm import Comm, Options, describe, unique_id
from .errors import (AbortedError, ArgumentError, CommunicatorError, CorruptError, Error, LateError, MismatchError,
                     OutOfMemoryError, PeerError, SystemCallError, UnsupportedError)
from ._mean import Mean, MeanOptions, mean, mean_ranks, report
from .request import Request

__version__: str = _text(_lib.coset_version())

__all__ = ["AbortedError", "ArgumentError", "Comm", "CommunicatorError", "CorruptError", "Error", "LateError",
           "Mean", "MeanOptions", "MismatchError", "Options", "OutOfMemoryError", "PeerError", "Request", "SystemCallError", "UnsupportedError",
           "describe", "mean", "mean_ranks", "report", "unique_id"]
