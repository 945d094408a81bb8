#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same program under every launcher that is installed, and with their variables set by hand."""
import os
import shlex
import shutil
import socket
import subprocess
import sys
import unittest

TOOL, RANK = sys.argv[1:3]
del sys.argv[1:3]
PROGRAM = [RANK, "1000", "0.05"]
FOREIGN = ("COSET_", "OMPI_", "PMI", "SLURM_", "MPI_", "RANK", "WORLD_SIZE", "MASTER_", "LOCAL_", "TORCHELASTIC_")


def clean(**extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
    env.update({k: str(v) for k, v in extra.items()})
    return env


def free_port():
    """A port whose follower is free too."""
    while True:
        with socket.socket() as a, socket.socket() as b:
            a.bind(("", 0))
            port = a.getsockname()[1]
            try:
                b.bind(("", port + 1))
                return port
            except (OSError, OverflowError):
                continue


class Launchers(unittest.TestCase):
    def check(self, outputs, size):
        text = "".join(outputs)
        for r in range(size):
            self.assertIn(f"joined {r} of {size} over ", text)
        self.assertEqual(text.count("done"), size, text)

    def by_hand(self, size, variables):
        ranks = [subprocess.Popen(PROGRAM, env=clean(**variables(r)), stdout=subprocess.PIPE, text=True) for r in range(size)]
        outputs = [p.communicate(timeout=30)[0] for p in ranks]
        self.assertEqual([p.returncode for p in ranks], [0] * size, outputs)
        self.check(outputs, size)

    def under(self, *command, **env):
        if not shutil.which(command[0]):
            self.skipTest(f"no {command[0]}")
        done = subprocess.run([*command, *PROGRAM], env=clean(**env), capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.check([line.split("] ", 1)[-1] for line in done.stdout.splitlines(keepends=True)], 3)

    def test_coset_run(self):
        self.under(TOOL, "run", "-n", "3", "--")
        self.under(TOOL, "run", "-n", "3", "--", COSET_TRANSPORT="tcp")

    def test_coset_run_ignores_a_master_for_others(self):
        self.under(TOOL, "run", "-n", "3", "--", MASTER_ADDR="no-such-host.invalid", MASTER_PORT=1)

    def test_open_mpi(self):
        self.under("mpirun.openmpi", "--oversubscribe", "-np", "3", OMPI_ALLOW_RUN_AS_ROOT=1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)

    def test_mpich(self):
        self.under("mpirun.mpich", "-n", "3")

    def test_mpich_behind_a_shell(self):
        if not shutil.which("mpirun.mpich"):
            self.skipTest("no mpirun.mpich")
        done = subprocess.run(["mpirun.mpich", "-n", "3", "sh", "-c", shlex.join(PROGRAM)], env=clean(), capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check([done.stdout], 3)

    def test_torchrun_variables(self):
        port = free_port()
        self.by_hand(3, lambda r: {"RANK": r, "WORLD_SIZE": 3, "MASTER_ADDR": "localhost", "MASTER_PORT": port})

    def test_slurm_variables(self):
        job = free_port() % 10000
        self.by_hand(3, lambda r: {"SLURM_PROCID": r, "SLURM_NTASKS": 3, "SLURM_JOB_ID": job, "SLURM_STEP_ID": 0,
                                   "SLURM_STEP_NODELIST": "localhost"})

    def test_own_variables(self):
        self.by_hand(3, lambda r: {"COSET_RANK": r, "COSET_SIZE": 3, "COSET_JOB": f"test{os.getpid()}"})

    def test_sixteen_ranks_over_tcp(self):
        done = subprocess.run([TOOL, "run", "-n", "16", "--", *PROGRAM], env=clean(COSET_TRANSPORT="tcp"), capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check([line.split("] ", 1)[-1] for line in done.stdout.splitlines(keepends=True)], 16)


if __name__ == "__main__":
    unittest.main(verbosity=1)
