//go:build ignore

// Edges prints the calls of compute from two call graphs of one recording,
// raw and corrected, beside the truth, which is that both call sites call it
// equally often:
//
//	go run edges.go RAW.jsonl CORRECTED.jsonl FIRST SECOND
//
// FIRST and SECOND are the names of the call sites, in the order of their
// addresses.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

type edge struct {
	SiteOffset int64 `json:"site_offset"`
	Caller     string
	Callee     string
	Samples    int64
	Calls      float64
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: edges RAW.jsonl CORRECTED.jsonl FIRST SECOND")
		os.Exit(2)
	}
	raw, err := read(os.Args[1])
	corrected, err2 := read(os.Args[2])
	if err := errors.Join(err, err2); err != nil {
		fmt.Fprintln(os.Stderr, "edges:", err)
		os.Exit(1)
	}
	print(raw, corrected, os.Args[3:])
}

// read returns the edges into compute that have at least a hundredth of its
// samples: the others are of ticks in its first instructions, where the stack
// lacks the caller.
func read(name string) ([]edge, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var edges []edge
	var samples int64
	for d := json.NewDecoder(f); ; {
		var e edge
		switch err := d.Decode(&e); {
		case err == io.EOF:
			edges = slices.DeleteFunc(edges, func(e edge) bool { return e.Samples*100 < samples })
			slices.SortFunc(edges, func(a, b edge) int { return int(a.SiteOffset - b.SiteOffset) })
			if len(edges) != 2 {
				return nil, fmt.Errorf("%s: %d call sites of compute, want 2", name, len(edges))
			}
			return edges, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case e.Callee == "compute":
			edges = append(edges, e)
			samples += e.Samples
		}
	}
}

func print(raw, corrected []edge, labels []string) {
	fmt.Printf("  %-24s %8s %8s %10s %6s\n", "call site", "samples", "raw", "corrected", "true")
	rawTotal, correctedTotal := raw[0].Calls+raw[1].Calls, corrected[0].Calls+corrected[1].Calls
	var rawOverlap, correctedOverlap float64
	for i, label := range labels {
		r, c := raw[i].Calls/rawTotal, corrected[i].Calls/correctedTotal
		rawOverlap += math.Min(r, 0.5)
		correctedOverlap += math.Min(c, 0.5)
		fmt.Printf("  %-24s %8d %6.1f %% %8.1f %%   50 %%\n", label+": "+raw[i].Caller+" -> compute", raw[i].Samples, 100*r, 100*c)
	}
	fmt.Printf("  %-24s %8s %6.1f %% %8.1f %%\n", "overlap with the truth", "", 100*rawOverlap, 100*correctedOverlap)
}
