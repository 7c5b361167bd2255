// Perfcorrect corrects the bias of sampled call graphs: from a Linux
// perf.data recording it estimates how often each call was made, and writes
// what pprof, flame graphs and other tools open.
package main

import (
	"os"

	"github.com/perfcorrect/perfcorrect/cli"
	"github.com/perfcorrect/perfcorrect/record"
)

func main() {
	if record.IsHelper() {
		os.Exit(record.Helper())
	}
	os.Exit(cli.Main(os.Args[1:], cli.System()))
}
