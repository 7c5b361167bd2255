package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("dir", "build/lab", "work in `DIR`")
	out := flag.String("o", "docs/accuracy", "write `FILE`.md and FILE.json")
	quick := flag.Bool("quick", false, "two programs, one setting, one seed, and no files")
	leeOnly := flag.Bool("lee", false, "only the experiments of Lee 2015, and no files")
	only := flag.String("program", "", "run only this one")
	seeds := flag.Int("seeds", 3, "record with this many different `N` seeds")
	isLive := flag.Bool("live", false, "the live table: programs run natively; written to docs/accuracy-live unless -o says otherwise")
	flag.Parse()

	work, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *isLive {
		return liveCommand(ctx, *only)
	}
	l := &lab{dir: work, settings: grid(), evidence: evidences(), log: os.Stderr}
	for _, e := range l.evidence {
		l.methods = append(l.methods, e.methods...)
	}
	for i := range *seeds {
		l.seeds = append(l.seeds, uint64(i+1))
	}
	ps := programs()
	if *quick {
		l.settings, l.seeds = []setting{{2000, 0.7, 3}}, []uint64{1}
		ps = slices.DeleteFunc(ps, func(p program) bool { return p.name != "bc" && p.name != "m4" })
	}
	if *only != "" {
		ps = slices.DeleteFunc(ps, func(p program) bool { return p.name != *only })
	}
	if *leeOnly {
		ps = nil
	}
	if err := writeInputs(filepath.Join(work, "inputs")); err != nil {
		return err
	}
	var scores []score
	for _, p := range ps {
		s, err := l.run(ctx, p)
		if err != nil {
			return err
		}
		scores = append(scores, s...)
	}
	t := newTables(scores, l)
	if *only == "" && !*quick {
		for _, e := range experiments() {
			f, err := l.lee(ctx, e, "testdata/demo")
			if err != nil {
				return err
			}
			t.findings = append(t.findings, f)
		}
	}
	if *quick || *leeOnly || *only != "" {
		return t.markdown(os.Stdout)
	}
	return t.write(*out)
}
