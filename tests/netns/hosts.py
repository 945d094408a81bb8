# SPDX-License-Identifier: Apache-2.0
"""Hosts for tests: network namespaces joined by a bridge, each link limited by a token bucket. Needs root, ip and tc.

    with hosts.Hosts(2, "1gbit") as h:
        h.start(0, ["program"], env)

Host i has 10.77.0.(i+1) and fd77::(i+1) on eth0. Everything goes when the block ends, and what a killed run has left
goes when the next one begins.
"""
import json
import os
import re
import shutil
import subprocess
import time

PREFIX = "cosettest"
# Smaller buckets than this keep both directions of a link from reaching its rate at once (measured).
BURST = "128kb"


def missing():
    """Why there can be no hosts here; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool in ("ip", "tc"):
        if not shutil.which(tool):
            return f"no '{tool}' (Debian: iproute2)"
    name = f"{PREFIX}{os.getpid()}x"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode:
        return f"no network namespaces: {made.stderr.strip()}"
    try:
        for command in (["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"],
                        ["tc", "qdisc", "add", "dev", "v0", "root", "tbf", "rate", "1gbit", "burst", BURST, "latency", "20ms"]):
            tried = subprocess.run(["ip", "netns", "exec", name, *command], capture_output=True, text=True)
            if tried.returncode:
                return f"'{' '.join(command)}' fails: {tried.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return None


def remove_leftovers():
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    for name in re.findall(rf"^({PREFIX}\d+\w)", listed, re.MULTILINE):
        pid = re.match(rf"{PREFIX}(\d+)", name).group(1)
        if not os.path.exists(f"/proc/{pid}"):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


class Hosts:
    def __init__(self, count, rate=None):
        self.count = count
        self.rate = rate
        self.switch = f"{PREFIX}{os.getpid()}s"
        self.names = [f"{PREFIX}{os.getpid()}{'abcdefgh'[i]}" for i in range(count)]
        self.processes = []

    def inside(self, name, *command):
        run("ip", "netns", "exec", name, *command)

    def __enter__(self):
        remove_leftovers()
        try:
            run("ip", "netns", "add", self.switch)
            self.inside(self.switch, "ip", "link", "add", "br0", "type", "bridge")
            self.inside(self.switch, "ip", "link", "set", "br0", "up")
            for i, name in enumerate(self.names):
                run("ip", "netns", "add", name)
                run("ip", "link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", f"p{i}", "netns", self.switch)
                self.inside(self.switch, "ip", "link", "set", f"p{i}", "master", "br0", "up")
                self.inside(name, "ip", "addr", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
                self.inside(name, "ip", "addr", "add", f"fd77::{i + 1}/64", "dev", "eth0", "nodad")
                self.inside(name, "ip", "link", "set", "eth0", "up")
                self.inside(name, "ip", "link", "set", "lo", "up")
            if self.rate:
                self.limit(self.rate)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe:
                    pipe.close()
        for name in [*self.names, self.switch]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def limit(self, rate):
        """Both directions of every host's link."""
        for i, name in enumerate(self.names):
            for space, device in ((name, "eth0"), (self.switch, f"p{i}")):
                self.inside(space, "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", BURST,
                            "latency", "20ms")

    def sent_bytes(self, host):
        """What a host has sent through its link since it was made."""
        shown = subprocess.run(["ip", "-n", self.names[host], "-s", "-j", "link", "show", "eth0"], capture_output=True, text=True)
        return json.loads(shown.stdout)[0]["stats64"]["tx"]["bytes"]

    def link(self, host, state):
        """Cuts ("down") or mends ("up") the link of a host without a word to it: at the switch."""
        self.inside(self.switch, "ip", "link", "set", f"p{host}", state)

    def start(self, host, command, env=None, **kwargs):
        """A process on a host. It is killed at the end if it has not ended."""
        full = {k: v for k, v in os.environ.items() if not k.startswith("COSET_")}
        full.update(env or {})
        process = subprocess.Popen(["ip", "netns", "exec", self.names[host], *command], env=full, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        self.processes.append(process)
        return process

    def start_ranks(self, command, per_host=1, env=None, port=29501, root="10.77.0.1"):
        """One process per rank, ranks of a host one after the other; returns the list of processes."""
        size = self.count * per_host
        ranks = []
        for r in range(size):
            own = {"COSET_RANK": str(r), "COSET_SIZE": str(size), "COSET_LOCAL_RANK": str(r % per_host),
                   "COSET_LOCAL_SIZE": str(per_host), "COSET_ROOT": f"{root}:{port}", "COSET_JOB": "netns"}
            own.update(env or {})
            ranks.append(self.start(r // per_host, command, own))
        return ranks


    def start_mpi(self, kind, command, per_host=1, env=None, launcher=None):
        """mpirun of `kind` ("openmpi" or "mpich") on host 0, which starts a rank of `command` for each place on every
        host, ranks of a host one after the other. Ranks get env."""
        env = env or {}
        size = self.count * per_host
        addresses = [f"10.77.0.{i + 1}" for i in range(self.count)]
        agent = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent.sh")
        if kind == "openmpi":
            # the TCP engine of Open MPI's own, since a namespace has no other network; nothing but eth0. Version 5 finds no
            # way over eth0 between two ranks of a host. It also counts one slot on the host it starts from, so ppr places.
            engines = "tcp,self" if open_mpi_major(launcher or "mpirun.openmpi") < 5 else "tcp,self,sm"
            start = [launcher or "mpirun.openmpi", "-np", str(size), "--host", ",".join(f"{a}:{per_host}" for a in addresses),
                     "--bind-to", "none", "--map-by", f"ppr:{per_host}:node:OVERSUBSCRIBE", "--mca", "plm_rsh_agent", agent,
                     "--mca", "plm_rsh_no_tree_spawn", "1",
                     "--mca", "oob_tcp_if_include", "eth0", "--mca", "pml", "ob1", "--mca", "btl", engines,
                     "--mca", "btl_tcp_if_include", "eth0"]
            start += [word for name in env for word in ("-x", name)]
        else:
            start = [launcher or "mpirun.mpich", "-launcher", "ssh", "-launcher-exec", agent, "-iface", "eth0",
                     "-hosts", ",".join(addresses), "-ppn", str(per_host), "-n", str(size)]
        full = {**env, "TEST_HOSTS_SPACE": self.names[0][:-1], "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0",
                "MPIR_CVAR_NOLOCAL": "1"}
        # a host name of its own: launchers tell hosts apart by name
        named = ["unshare", "-u", "sh", "-c", 'hostname "$0"; exec "$@"', self.names[0]]
        return self.start(0, [*named, *start, *command], full)


def open_mpi_major(launcher):
    shown = subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout
    return int(re.search(r"(\d+)\.\d+", shown)[1])


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
