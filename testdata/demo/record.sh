#!/usr/bin/env bash
# record.sh DIR CALLS ITERATIONS builds the two demo programs in DIR and
# records each with its calls counted:
#
#   DIR/call-density-bias.data   call-density-bias CALLS
#   DIR/latency-bias.data        latency-bias 4 ITERATIONS
#
# The calls of compute are counted by a uprobe in the group of the sampling
# event, read with every sample ({...}:S). It needs no PMU, but root.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
dir=$1 calls=$2 iterations=$3
mkdir -p "$dir"
cd "$dir"

for program in call-density-bias latency-bias; do
	cp "$here/$program.c" .
	gcc -O2 -g -fno-omit-frame-pointer -ffile-prefix-map="$PWD=." -pthread -o $program $program.c
	rm $program.c
done

# Probes are global and perf wants their names to be new, whatever the group. A
# probe belongs to the file's inode, so it comes after the build.
density=demo_density latency=demo_latency
if perf probe -l 2>&1 | grep -q ":demo_"; then # another demo is running
	density+=_$$ latency+=_$$
fi
trap 'perf probe -q --del "probe_call:$density" --del "probe_latency:$latency"' EXIT
perf probe -x "$PWD/call-density-bias" $density=compute
perf probe -x "$PWD/latency-bias" $latency=compute

# perf does not let the events of a {...}:S group be inherited, so threads
# made later would not be counted. Figure 1 has one thread.
perf record -o call-density-bias.data \
	-e "{cpu-clock:u,probe_call:$density}:S" -c 1000000 -g \
	./call-density-bias "$calls"

# Figure 3 has several: perf attaches to those that wait, one event each
# (--per-thread; -a would see all processes of the machine). perf starts its
# workload, which lets the threads go, when all events count; it ends it with
# SIGTERM when the threads are gone.
./latency-bias 4 "$iterations" wait &
pid=$!
while (($(ls /proc/$pid/task | wc -l) < 5)); do sleep .05; done
perf record -o latency-bias.data --per-thread --timestamp \
	-e "{cpu-clock:u,probe_latency:$latency}:S" -c 1000000 -g -p $pid \
	sh -c "trap exit TERM; kill -USR1 $pid; while kill -0 $pid 2>/dev/null; do sleep .1; done"
wait $pid
