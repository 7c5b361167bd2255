#!/usr/bin/env bash
# record-self.sh DIR CALLS ITERATIONS is record.sh with perfcorrect's own
# recorder instead of perf: the probe is a flag, threads made later are counted,
# and nothing has to be attached to. $PERFCORRECT is the program.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
dir=$1 calls=$2 iterations=$3
perfcorrect=$(realpath "${PERFCORRECT:-./perfcorrect}")
mkdir -p "$dir"
cd "$dir"

for program in call-density-bias latency-bias; do
	cp "$here/$program.c" .
	gcc -O2 -g -fno-omit-frame-pointer -ffile-prefix-map="$PWD=." -pthread -o $program $program.c
	rm $program.c
done

record() { # FILE PROGRAM ARGUMENTS
	"$perfcorrect" record -o "$1" --count-calls compute -e cpu-clock:u -c 1000000 --call-graph fp "${@:2}"
}
record call-density-bias.data ./call-density-bias "$calls"
record latency-bias.data ./latency-bias 4 "$iterations"
