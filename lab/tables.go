package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// tables turns scores into Markdown. Every figure is a mean over seeds.
type tables struct {
	scores   []score
	settings []setting
	seeds    []uint64
	methods  []method
	programs []string
	findings []*finding
}

func newTables(scores []score, l *lab) *tables {
	t := &tables{scores: scores, settings: l.settings, seeds: l.seeds, methods: l.methods}
	for _, s := range scores {
		if !slices.Contains(t.programs, s.Program) {
			t.programs = append(t.programs, s.Program)
		}
	}
	return t
}

// metrics that get tables, in words.
var tabled = []struct{ name, title string }{
	{"dcg_overlap", "Call graph, call-site level: degree of overlap with the truth, %"},
	{"dcg_function_overlap", "Call graph, function level: degree of overlap, %"},
	{"dcg_hot_truth_in_got_0.10", "Hot-edge coverage at T = 0.1 (truly hot edges found), %"},
	{"entry_correlation", "Calls into each function: Pearson correlation, %"},
}

func isTabled(metric string) bool {
	return slices.ContainsFunc(tabled, func(t struct{ name, title string }) bool { return t.name == metric })
}

// write writes NAME.md and NAME.json, each through a temporary file.
func (t *tables) write(name string) error {
	var md bytes.Buffer
	if err := t.markdown(&md); err != nil {
		return err
	}
	js, err := json.Marshal(t.scores)
	if err != nil {
		return err
	}
	for ext, b := range map[string][]byte{".md": md.Bytes(), ".json": append(js, '\n')} {
		if err := os.WriteFile(name+ext+".tmp", b, 0o644); err != nil {
			return err
		}
		if err := os.Rename(name+ext+".tmp", name+ext); err != nil {
			return err
		}
	}
	return nil
}

func (t *tables) markdown(w io.Writer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, preamble, len(t.seeds))
	for _, group := range []struct {
		title  string
		tuning bool
	}{{"Report programs", false}, {"Tuning programs", true}} {
		var names []string
		for _, p := range t.programs {
			if t.isTuning(p) == group.tuning {
				names = append(names, p)
			}
		}
		if len(names) == 0 {
			continue
		}
		fmt.Fprintf(b, "## %s\n\n%s.\n\n", group.title, strings.Join(names, ", "))
		for _, m := range tabled {
			t.averages(b, m.name, m.title, names)
		}
		t.perProgram(b, names)
	}
	if len(t.findings) > 0 {
		b.WriteString("## The experiments of Lee 2015\n\n")
	}
	for _, f := range t.findings {
		f.markdown(b, methods())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const preamble = `# Accuracy

Written by ` + "`go run ./lab -seeds N`" + ` (make accuracy: 3 seeds); do not edit. Every recording and its exact truth come from one and the same run
of an unmodified program on the virtual PMU (testdata/vpmu); figures are means over N = %d seeds. sigma is the spread
of a lognormal cost factor that every block of code gets, skid the number of instructions between a tick and its
sample. Constants of the methods are chosen on the tuning programs only.

`

func (t *tables) isTuning(program string) bool {
	for _, s := range t.scores {
		if s.Program == program {
			return s.Tuning
		}
	}
	return false
}

// values returns a metric for each seed.
func (t *tables) values(program, method string, at setting, metric string) (v []float64) {
	for _, s := range t.scores {
		if s.Program == program && s.Method == method && s.Setting == at {
			v = append(v, s.Metrics[metric])
		}
	}
	return v
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(1, len(v)))
}

func spread(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return slices.Max(v) - slices.Min(v)
}

// averages is a table of methods and settings: mean over programs, and the
// worst program.
func (t *tables) averages(b *strings.Builder, metric, title string, programs []string) {
	fmt.Fprintf(b, "### %s\n\nMean over programs (worst program; largest spread between seeds).\n\n| method |", title)
	for _, s := range t.settings {
		fmt.Fprintf(b, " %s |", shortSetting(s))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(t.settings)) + "\n")
	for _, m := range t.methods {
		fmt.Fprintf(b, "| %s |", m.name)
		for _, s := range t.settings {
			var means []float64
			seeds := 0.0
			for _, p := range programs {
				v := t.values(p, m.name, s, metric)
				means = append(means, mean(v))
				seeds = max(seeds, spread(v))
			}
			fmt.Fprintf(b, " %.1f (%.1f; %.1f) |", mean(means), slices.Min(means), seeds)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

func shortSetting(s setting) string {
	return fmt.Sprintf("%dk σ%g skid %d", s.Samples/1000, s.Sigma, s.Skid)
}

// perProgram shows each program at the harshest settings of either length.
func (t *tables) perProgram(b *strings.Builder, programs []string) {
	var shown []setting
	for _, s := range t.settings {
		if s.Sigma > 0 && s.Skid > 0 {
			shown = append(shown, s)
		}
	}
	rows := slices.DeleteFunc(slices.Clone(t.methods), func(m method) bool { return m.brief })
	for _, s := range shown {
		fmt.Fprintf(b, "### Each program, %s: call-site overlap, %%\n\n| program |", s)
		for _, m := range rows {
			fmt.Fprintf(b, " %s |", m.name)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(rows)) + "\n")
		for _, p := range programs {
			fmt.Fprintf(b, "| %s |", p)
			for _, m := range rows {
				fmt.Fprintf(b, " %.1f |", mean(t.values(p, m.name, s, "dcg_overlap")))
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
}
