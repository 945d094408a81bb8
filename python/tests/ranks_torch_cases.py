# SPDX-License-Identifier: Apache-2.0
"""Run by torchrun: the test cases that PyTorch has for gloo, as they lie in its wheel, on the process group "coset".

Arguments: patterns, of which one must be found in a case's name; all cases without. Each case gets a process group of its own.
Not collected by pytest.
"""
import os
import re
import sys
import tempfile
import time
import unittest
import warnings
from datetime import timedelta
from pathlib import Path

os.environ["BACKEND"] = "gloo"  # whose cases these are
os.environ["TEMP_DIR"] = os.path.join(tempfile.gettempdir(), f"coset-cases-{os.environ['TORCHELASTIC_RUN_ID']}")
for name in ("barrier", "test_dir", "init_dir"):
    Path(os.environ["TEMP_DIR"], name).mkdir(parents=True, exist_ok=True)
warnings.simplefilter("ignore")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.testing._internal.common_distributed import TEST_SKIPS  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

import coset.torch  # noqa: E402, F401

# What these cases are about the process group does not have, or the machine; the guide names the former.
EXCLUDED = {
    "cuda|mixed_backend|isend_irecv_op_err": "needs a GPU",
    "SyncBatchNorm_process_group": "needs torchvision",
    "monitored_barrier": "torch allows it for gloo only",
    "sparse": "sparse tensors are refused",
    "any_source": "only between two ranks",
    "get_backend$": "expects the name gloo",
    "barrier_timeout_full_group": "expects gloo's words",
    "barrier_timeout_global": "begins a job over again, which these ranks cannot",
    "new_subgroups_with_group_param": "names four ranks",
}
torch.set_num_threads(1)
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
SKIPS = {skip.exit_code for skip in TEST_SKIPS.values()}


class Cases(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """run_one() takes the place of the processes that the base class starts for each case."""


def run_one(name: str, store: dist.Store) -> str:
    case = Cases(name)
    case.rank = RANK
    torch.manual_seed(0)
    dist.init_process_group("coset", store=dist.PrefixStore(name, store), rank=RANK, world_size=SIZE,
                            timeout=timedelta(seconds=60))
    try:
        getattr(case, name)()
        return "passed"
    except unittest.SkipTest as why:
        return f"skipped: {why}"
    except SystemExit as ended:
        return "skipped" if ended.code in SKIPS else f"FAILED: exit {ended.code}"
    except BaseException as error:
        if "VERBOSE" in os.environ:
            raise
        return f"FAILED: {type(error).__name__}: {' '.join(str(error).split())[:300]}"


def main() -> None:
    words = sys.argv[1:]
    excluded = re.compile("|".join(pattern for pattern in EXCLUDED if SIZE > 2 or pattern != "any_source"))
    names = [n for n in unittest.defaultTestLoader.getTestCaseNames(Cases)
             if not excluded.search(n) and (not words or any(re.search(word, n) for word in words))]
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), SIZE, False)
    for name in names:
        start = time.monotonic()
        result = run_one(name, store)
        print(f"[{RANK}] {name} {result} ({time.monotonic() - start:.1f} s)", flush=True)
        # No rank leaves before the others are through: some cases let one wait for ranks that do not come.
        store.set(f"{name}/ended/{RANK}", result)
        store.wait([f"{name}/ended/{r}" for r in range(SIZE)], timedelta(seconds=120))
        if dist.is_initialized():
            dist.destroy_process_group()


if __name__ == "__main__":
    main()
