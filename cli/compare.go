package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/perfcorrect/perfcorrect/accuracy"
	"github.com/perfcorrect/perfcorrect/image"
)

func compareCommand() *command {
	return &command{
		name:    "compare",
		args:    "TRUTH GOT",
		summary: "measure how well a profile agrees with the truth",
		about: `Compares two profiles of the same run and prints one metric a line, all of them
percentages that are 100 for a profile compared with itself: degree of overlap,
hot-edge coverage at thresholds from 0.05 to 0.95, correlation of the calls into
each function, and for branches and paths the metrics of path profiling. The
call edges that cost most of the overlap go to standard error.

A profile is what convert writes as pprof or jsonl, what the accuracy lab writes
as truth, or the output of valgrind --tool=callgrind --dump-instr=yes.`,
		flags: func(fs *flagSet) runFunc {
			c := new(compare)
			fs.boolVar(&c.json, "json", "", "print one JSON object, with the costliest edges in it")
			fs.intVar(&c.top, "top", "", 10, "show the `N` call edges that cost most")
			fs.stringVar(&c.symfs, "symfs", "", "", "look for the files callgrind names under `DIR`")
			return c.run
		},
	}
}

// compare is the command's flags.
type compare struct {
	json  bool
	top   int
	symfs string
}

func (c *compare) run(ctx context.Context, e *env, args []string) error {
	if len(args) != 2 {
		return usagef("want two profiles, TRUTH and GOT")
	}
	r := accuracy.Reader{FileOffset: fileOffsets(image.NewStore(image.Options{Symfs: c.symfs}))}
	var p [2]*accuracy.Profile
	for i, name := range args {
		var err error
		if p[i], err = r.ReadFile(name); err != nil {
			return err
		}
		if n := p[i].Unplaced; n > 0 {
			e.warn("%s: %.0f calls left out: their caller or callee lies in a file that is not here; --symfs says where", name, n)
		}
	}
	res, err := accuracy.Compare(p[0], p[1], max(0, c.top))
	if err != nil {
		return err
	}
	if err := e.writeOutput(ctx, "-", func(w io.Writer) error { return c.print(w, res) }); err != nil {
		return err
	}
	if !c.json {
		for _, l := range res.Costliest {
			if l.Cost < 0.01 {
				break
			}
			e.say("%.2f points: %s -> %s at %s: truth %.2f %%, got %.2f %%", l.Cost, l.Caller, l.Callee, l.Site, l.Truth, l.Got)
		}
	}
	return nil
}

func (c *compare) print(w io.Writer, res *accuracy.Comparison) error {
	if c.json {
		return json.NewEncoder(w).Encode(res)
	}
	for _, m := range res.Metrics {
		if _, err := fmt.Fprintf(w, "%s %s\n", m.Name, strconv.FormatFloat(math.Round(1e4*m.Value)/1e4, 'f', -1, 64)); err != nil {
			return err
		}
	}
	return nil
}

// fileOffsets finds where in their files the addresses of callgrind lie.
func fileOffsets(s *image.Store) accuracy.FileOffset {
	return func(file string, vaddr uint64) (uint64, bool) {
		return s.Image(image.Key{Kind: image.File, Path: file}).FileOffset(vaddr)
	}
}
