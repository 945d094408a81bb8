#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hosts.sh N RATE SCRIPT [ARGUMENT...]: one rank of SCRIPT on each of N hosts, network namespaces behind one bridge whose
# links carry RATE (1gbit, 100mbit) each way. As root. PYTHON names the interpreter.
set -eu
n=$1 rate=$2
shift 2
id=c$$
python=${PYTHON:-python3}
clean() {
  for ((i = 0; i < n; i++)); do ip netns del "$id-$i" 2>/dev/null || true; done
  ip netns del "$id-s" 2>/dev/null || true
}
trap clean EXIT
shape() { ip netns exec "$1" tc qdisc add dev "$2" root tbf rate "$rate" burst 128kb latency 20ms; }

ip netns add "$id-s"
ip netns exec "$id-s" ip link add br0 type bridge
ip netns exec "$id-s" ip link set br0 up
for ((i = 0; i < n; i++)); do
  ip netns add "$id-$i"
  ip link add eth0 netns "$id-$i" type veth peer name "p$i" netns "$id-s"
  ip netns exec "$id-s" ip link set "p$i" master br0 up
  ip netns exec "$id-$i" ip addr add "10.78.0.$((i + 1))/24" dev eth0
  ip netns exec "$id-$i" ip link set eth0 up
  ip netns exec "$id-$i" ip link set lo up
  shape "$id-$i" eth0
  shape "$id-s" "p$i"
done
export WORLD_SIZE=$n MASTER_ADDR=10.78.0.1 MASTER_PORT=29500 GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1
pids=()
for ((i = 0; i < n; i++)); do
  RANK=$i ip netns exec "$id-$i" "$python" "$@" &
  pids+=($!)
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
exit $status
