#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What MPI launchers take for ssh: agent.sh [OPTION...] HOST COMMAND... runs COMMAND in the namespace of HOST
# (10.77.0.N is the N-th letter of $TEST_HOSTS_SPACE), under a host name of its own.
while :; do
  case $1 in
  -[lpoi]) shift 2 ;;
  -*) shift ;;
  *) break ;;
  esac
done
number=${1##*.}
shift
name="$TEST_HOSTS_SPACE$(printf 'abcdefgh' | cut -c "$number")"
exec ip netns exec "$name" unshare -u sh -c "hostname $name; $*"
