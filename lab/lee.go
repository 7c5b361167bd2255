package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfcorrect/perfcorrect/accuracy"
	"github.com/perfcorrect/perfcorrect/correct"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
	"github.com/perfcorrect/perfcorrect/testdata/vpmu"
)

// An experiment is one of the two motivating programs of Lee 2015 (Figures 1
// and 3) under the sampler it was written for: ticks of a wall clock, each
// taken at the next call of the thread once it runs (the yield points of a
// Java VM).
type experiment struct {
	name, title string
	source      string
	defines     []string
	args        []string
	clock       string
	deferred    bool
	samples     int
}

func experiments() []experiment {
	return []experiment{
		{
			name: "call-density-bias", title: "Unequally spaced calls (Lee 2015, Figure 1): C and D call equally often",
			source: "call-density-bias.c", defines: []string{"-DSTEPS=300"}, args: []string{"100000"},
			clock: "thread", deferred: true, samples: 10000,
		},
		{
			name: "latency-bias", title: "Unequally spaced sampling actions (Lee 2015, Figure 3): A and B call equally often",
			source: "latency-bias.c", defines: []string{"-DSTEPS=3000"}, args: []string{"4", "150"},
			clock: "wall", deferred: true, samples: 4000,
		},
	}
}

// tick is what one sample tells of bias.
type tick struct {
	calls, clock uint64
	latency      float64
}

// finding is what an experiment showed.
type finding struct {
	experiment
	overlap map[string]float64 // by method
	shares  map[string][]float64
	threads []threadTicks
}

type threadTicks struct {
	tid   int32
	ticks []tick
}

// lee runs one experiment: source is the folder of the two programs.
func (l *lab) lee(ctx context.Context, e experiment, source string) (*finding, error) {
	out := filepath.Join(l.dir, "lee")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	bin := filepath.Join(out, e.name)
	gcc := append([]string{"gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-pthread", "-o", bin}, e.defines...)
	if err := compile(append(gcc, filepath.Join(source, e.source))...)("."); err != nil {
		return nil, err
	}
	r := vpmu.DefaultRecording()
	r.Output = bin + ".data"
	r.Samples, r.Clock, r.Defer, r.Jitter = e.samples, e.clock, e.deferred, 0
	r.Branch = "any_call"
	c := vpmu.Config{
		Program: append([]string{bin}, e.args...), TruthDir: bin + ".truth", WorkDir: filepath.Join(l.dir, "vpmu"),
		Recordings: []vpmu.Recording{r}, NoCCT: true, Stdout: io.Discard, Stderr: os.Stderr,
	}
	if _, err := vpmu.Run(ctx, c); err != nil {
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	f := &finding{experiment: e, overlap: map[string]float64{}, shares: map[string][]float64{}}
	if err := f.score(c, methods()); err != nil {
		return nil, err
	}
	return f, f.readTicks(r.Output)
}

// computeCalls keeps the edges into compute, whose call sites are the point.
func computeCalls(p *accuracy.Profile) accuracy.Weights[accuracy.Call] {
	w := accuracy.Weights[accuracy.Call]{}
	for k, v := range p.Calls {
		if _, callee := p.Names(k); callee == "compute" {
			w[k] = v
		}
	}
	return w
}

func (f *finding) score(c vpmu.Config, ms []method) error {
	var reader accuracy.Reader
	truth, err := reader.ReadFile(filepath.Join(c.TruthDir, "dcg.jsonl"))
	if err != nil {
		return err
	}
	est, err := estimate(c.Recordings[0].Output, ms, image.NewStore(image.Options{}))
	if err != nil {
		return err
	}
	for i, m := range ms {
		p, err := est.profile(i, &reader)
		if err != nil {
			return err
		}
		want, got := computeCalls(truth), computeCalls(p)
		f.overlap[m.name] = accuracy.Overlap(want, got)
		total := 0.0
		for _, v := range got {
			total += v
		}
		sites := slices.SortedFunc(maps.Keys(want), func(a, b accuracy.Call) int { return cmp.Compare(a.SiteOffset, b.SiteOffset) })
		for _, s := range sites {
			f.shares[m.name] = append(f.shares[m.name], 100*got[s]/total)
		}
	}
	return nil
}

// readTicks collects density and latency of every tick by thread. The latency
// is the time the thread was runnable and did not run before the sample.
func (f *finding) readTicks(file string) error {
	r, err := perfdata.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	counter, _, err := correct.CallEvent(r.Meta().Events, r.Meta(), "")
	if err != nil {
		return err
	}
	byTID := map[int32]int{}
	for s, err := range session.New(r, image.NewStore(image.Options{})).Samples() {
		if err != nil {
			return err
		}
		if s.Interval == nil {
			continue
		}
		i, ok := byTID[s.Thread.TID]
		if !ok {
			i = len(f.threads)
			byTID[s.Thread.TID] = i
			f.threads = append(f.threads, threadTicks{tid: s.Thread.TID})
		}
		calls, _ := s.Interval.Count(counter)
		f.threads[i].ticks = append(f.threads[i].ticks, tick{calls, s.Interval.Clock, float64(s.Interval.WaitedAtEnd)})
	}
	return nil
}

// markdown writes what Lee's section 6.1 shows: overlap before and after,
// density over time (Figures 4 and 5), latency (Figures 6 and 7), Table I.
func (f *finding) markdown(b *strings.Builder, ms []method) {
	fmt.Fprintf(b, "### %s\n\n`%s %s`, %s clock", f.title, f.name, strings.Join(f.args, " "), f.clock)
	if f.deferred {
		b.WriteString(", samples wait for the thread's next call")
	}
	b.WriteString(".\n\n| method | overlap of the calls of compute, % | shares of the call sites, % |\n|---|---|---|\n")
	for _, m := range ms {
		var shares []string
		for _, s := range f.shares[m.name] {
			shares = append(shares, fmt.Sprintf("%.1f", s))
		}
		fmt.Fprintf(b, "| %s | %.1f | %s |\n", m.name, f.overlap[m.name], strings.Join(shares, " / "))
	}
	b.WriteString("\nCalls per million cycles, and latency in cycles (min, median, mean, max); the line shows the density over time:\n\n" +
		"| thread | ticks | density | latency | density over time |\n|---|---|---|---|---|\n")
	for _, t := range f.threads {
		if len(t.ticks) < 10 {
			continue
		}
		var density, latency []float64
		for _, k := range t.ticks {
			density = append(density, 1e6*float64(k.calls)/float64(max(1, k.clock)))
			latency = append(latency, k.latency)
		}
		fmt.Fprintf(b, "| %d | %d | %s | %s | `%s` |\n", t.tid, len(t.ticks), summary(density), summary(latency), sparkline(density, 40))
	}
	b.WriteString("\n")
}

func summary(v []float64) string {
	s := slices.Sorted(slices.Values(v))
	return fmt.Sprintf("%.0f, %.0f, %.0f, %.0f", s[0], s[len(s)/2], mean(s), s[len(s)-1])
}

// sparkline draws the means of n stretches of v, lowest to highest.
func sparkline(v []float64, n int) string {
	marks := []rune("▁▂▃▄▅▆▇█")
	n = min(n, len(v))
	stretch := make([]float64, n)
	for i := range stretch {
		stretch[i] = mean(v[i*len(v)/n : (i+1)*len(v)/n])
	}
	top := slices.Max(stretch)
	var b strings.Builder
	for _, x := range stretch {
		k := 0
		if top > 0 {
			k = min(len(marks)-1, int(x/top*float64(len(marks))))
		}
		b.WriteRune(marks[k])
	}
	return b.String()
}
