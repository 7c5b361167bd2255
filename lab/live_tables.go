package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// write writes NAME.md and NAME.json, each through a temporary file.
func (l *live) write(name string) error {
	var md bytes.Buffer
	if err := l.markdown(&md); err != nil {
		return err
	}
	js, err := json.MarshalIndent(&l.result, "", " ")
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		b    []byte
	}{{name + ".md", md.Bytes()}, {name + ".json", append(js, '\n')}} {
		if err := os.WriteFile(f.name+".tmp", f.b, 0o644); err != nil {
			return err
		}
		if err := os.Rename(f.name+".tmp", f.name); err != nil {
			return err
		}
	}
	return nil
}

const livePreamble = `# Accuracy, live

Written by ` + "`make accuracy-live`" + `; do not edit. %s, Linux %s.

Programs run natively and are sampled by the kernel (cpu-clock:u, no PMU needed). The truth is exact: every call of
the same program on the same input, counted by the virtual PMU (testdata/vpmu). Only user code is scored. Places are
compared by file and offset, so that neither symbols nor addresses matter. A figure is the mean of %d recordings and, after
±, half the distance between the lowest and the highest of them.

*Built*: from Debian's sources with ` + "`" + frames + "`" + `. *Shipped*: Debian's own binaries, stripped, without frame
pointers. So that libc chooses the same variants of its string functions natively and emulated, features that one of the
two processors lacks are masked (glibc.cpu.hwcaps). A recording counts only if the program printed the same natively as when it was counted.

`

// shown are the metrics that get tables.
var shownLive = []struct{ name, title string }{
	{"dcg_overlap", "Call-site level: degree of overlap with the truth, %"},
	{"dcg_function_overlap", "Function level: degree of overlap, %"},
}

func (l *live) markdown(w io.Writer) error {
	r := &l.result
	b := &strings.Builder{}
	fmt.Fprintf(b, livePreamble, r.Processor, r.Kernel, l.repeats)
	why := map[string][]string{} // reason: methods
	for _, m := range slices.Sorted(maps.Keys(r.LeftOut)) {
		why[r.LeftOut[m]] = append(why[r.LeftOut[m]], m)
	}
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		fmt.Fprintf(b, "Left out, because %s: %s.\n\n", reason, strings.Join(why[reason], "; "))
	}
	for _, built := range []bool{true, false} {
		title := "Built with frame pointers"
		if !built {
			title = "As Debian ships them"
		}
		names := r.programs(built)
		if len(names) == 0 {
			continue
		}
		fmt.Fprintf(b, "## %s\n\n", title)
		for _, m := range shownLive {
			for _, hz := range l.rates {
				fmt.Fprintf(b, "### %s; %d Hz\n\n", m.title, hz)
				r.scoreTable(b, names, built, hz, m.name)
			}
		}
	}
	r.stackTable(b, l.rates[len(l.rates)-1])
	r.truthTable(b)
	_, err := io.WriteString(w, b.String())
	return err
}

// programs lists the programs of a group, in the order they were run.
func (r *liveResult) programs(built bool) (names []string) {
	for _, t := range r.Truths {
		if t.Built == built {
			names = append(names, t.Program)
		}
	}
	return names
}

// row is a line of a score table.
type row struct{ stacks, method string }

// scoreTable has a line for each kind of stacks and method, a column for each
// program, and the average.
func (r *liveResult) scoreTable(b *strings.Builder, names []string, built bool, hz int, metric string) {
	var rows []row
	for _, s := range r.Scores {
		if x := (row{s.Stacks, s.Method}); s.Built == built && s.Hz == hz && !slices.Contains(rows, x) {
			rows = append(rows, x)
		}
	}
	fmt.Fprintf(b, "| stacks | method | %s | average |\n|---|---|%s---|\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for _, x := range rows {
		fmt.Fprintf(b, "| %s | %s |", x.stacks, x.method)
		var means []float64
		for _, p := range names {
			var v []float64
			for _, s := range r.Scores {
				if s.Program == p && s.Built == built && s.Hz == hz && s.Stacks == x.stacks && s.Method == x.method {
					v = append(v, s.Metrics[metric])
				}
			}
			if len(v) == 0 {
				b.WriteString(" - |")
				continue
			}
			means = append(means, mean(v))
			fmt.Fprintf(b, " %.1f ±%.1f |", mean(v), spread(v)/2)
		}
		fmt.Fprintf(b, " %.1f |\n", mean(means))
	}
	b.WriteString("\n")
}

// stackTable says what the recordings hold, at one rate.
func (r *liveResult) stackTable(b *strings.Builder, hz int) {
	fmt.Fprintf(b, `## What the stacks are like, %d Hz

*Frame pointers, as recorded*: the kernel's callchain; else the caller that it lacks is put back, by the code alone, or
with registers and the top of the stack. *Caller missing*: the immediate caller of the leaf, so found, was not in the kernel's chain.
*No caller*: nothing but the leaf. *False edge*: the leaf edge is one that the program never executes: a
caller is missing between its two ends, or the function called went on to the leaf by a jump (tail call). *Cut*: outer frames are missing, which call edges do not need. Percent of samples.

| program | | stacks | samples | lost | caller missing | no caller | false edge | cut |
|---|---|---|---|---|---|---|---|---|
`, hz)
	type group struct {
		program string
		built   bool
		stacks  string
	}
	var order []group
	in := map[group][]liveRecording{}
	for _, x := range r.Recordings {
		if x.Hz != hz {
			continue
		}
		g := group{x.Program, x.Built, x.Stacks}
		if in[g] == nil {
			order = append(order, g)
		}
		in[g] = append(in[g], x)
	}
	for _, g := range order {
		avg := func(f func(*liveRecording) float64) float64 {
			var v []float64
			for i := range in[g] {
				v = append(v, f(&in[g][i]))
			}
			return mean(v)
		}
		put := "-"
		if v := avg(func(x *liveRecording) float64 { return x.Missing }); v >= 0 {
			put = fmt.Sprintf("%.1f", v)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %.0f | %.0f | %s | %.1f | %.1f | %.1f |\n", g.program, origin(g.built), g.stacks,
			avg(func(x *liveRecording) float64 { return float64(x.Samples) }),
			avg(func(x *liveRecording) float64 { return float64(x.Lost) }), put,
			avg(func(x *liveRecording) float64 { return x.NoEdge }),
			avg(func(x *liveRecording) float64 { return x.Untrue }),
			avg(func(x *liveRecording) float64 { return x.Cut }))
	}
	b.WriteString("\n")
}

func origin(built bool) string {
	if built {
		return "built"
	}
	return "shipped"
}

// truthTable says what was counted.
func (r *liveResult) truthTable(b *strings.Builder) {
	b.WriteString(`## The truth

*Same work* is the overlap of the call counts of two emulated runs.

| program | | instructions, million | calls, million | call edges | same work, % |
|---|---|---|---|---|---|
`)
	for _, t := range r.Truths {
		fmt.Fprintf(b, "| %s | %s | %.0f | %.2f | %d | %.3f |\n", t.Program, origin(t.Built), float64(t.Instructions)/1e6, float64(t.Calls)/1e6, t.Edges, t.Repeat)
	}
	b.WriteString("\n")
}
