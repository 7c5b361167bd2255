package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/perfcorrect/perfcorrect/accuracy"
	"github.com/perfcorrect/perfcorrect/correct"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// A kind is a way to record stacks.
type kind struct {
	name   string
	frames bool // useless without frame pointers
	// command records at a rate into a file; the program follows.
	command func(l *live, hz int, file string) []string
}

func kinds() []kind {
	perf := func(graph string) func(*live, int, string) []string {
		return func(_ *live, hz int, file string) []string {
			return []string{"perf", "record", "-q", "-N", "-m", "32M", "-e", "cpu-clock:u", "-F", strconv.Itoa(hz),
				"--call-graph", graph, "-o", file, "--"}
		}
	}
	return []kind{
		{name: "frame pointers", frames: true, command: perf("fp")},
		{name: "frame pointers + 512 bytes", frames: true, command: func(l *live, hz int, file string) []string {
			return []string{l.recorder, "record", "--quiet", "-e", "cpu-clock:u", "-F", strconv.Itoa(hz),
				"--call-graph", "fp", "--stack-dump", "512", "-o", file, "--"}
		}},
		{name: "DWARF", command: perf("dwarf,8192")},
	}
}

// liveRecording is one native run under the sampler. Shares are percent of
// the samples.
type liveRecording struct {
	Program string `json:"program"`
	Built   bool   `json:"built"`
	Stacks  string `json:"stacks"`
	Hz      int    `json:"hz"`
	Repeat  int    `json:"repeat"`

	Samples uint64 `json:"samples"`
	Lost    uint64 `json:"lost"`
	// PutBack: the callchain lacked the caller next to the leaf, and it was
	// found in the registers and the stack dump.
	PutBack float64 `json:"put_back"`
	// Cut: outer frames are known to be missing.
	Cut float64 `json:"cut"`
	// NoEdge: no caller in the stack.
	NoEdge float64 `json:"no_edge"`
	// Untrue: the leaf edge is one that the program never executes.
	Untrue float64 `json:"untrue"`
}

// liveScore is one method's result on one recording.
type liveScore struct {
	Program string             `json:"program"`
	Built   bool               `json:"built"`
	Stacks  string             `json:"stacks"`
	Hz      int                `json:"hz"`
	Repeat  int                `json:"repeat"`
	Method  string             `json:"method"`
	Metrics map[string]float64 `json:"metrics"`
}

// record makes, scores and removes one recording.
func (l *live) record(ctx context.Context, r *liveRecording, k kind, args []string, t *liveTruth, truth *accuracy.Profile, reader *accuracy.Reader, store *image.Store) error {
	file := filepath.Join(l.dir, "live.data")
	defer os.Remove(file)
	out := sha256.New()
	command := append(k.command(l, r.Hz, file), args...)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var said bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = l.inputs(), l.env, out, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, said.String())
	}
	if got := hex.EncodeToString(out.Sum(nil)); got != t.output {
		return fmt.Errorf("printed something else than when it was counted")
	}
	e, err := l.estimate(file, r, store)
	if err != nil {
		return err
	}
	for i, m := range e.methods {
		got, err := e.profile(i, reader)
		if err != nil {
			return err
		}
		c, err := accuracy.Compare(truth, got, 0)
		if err != nil {
			return err
		}
		s := liveScore{r.Program, r.Built, r.Stacks, r.Hz, r.Repeat, m.name, map[string]float64{}}
		for _, x := range c.Metrics {
			if !strings.Contains(x.Name, "_hot_") {
				s.Metrics[x.Name] = x.Value
			}
		}
		l.result.Scores = append(l.result.Scores, s)
		if m.use == "none" {
			r.edges(truth, got)
		}
	}
	l.result.Recordings = append(l.result.Recordings, *r)
	return nil
}

// edges notes how many samples have no leaf edge, or a false one.
func (r *liveRecording) edges(truth, got *accuracy.Profile) {
	all, untrue := 0.0, 0.0
	for k, v := range got.Calls {
		all += v
		if truth.Calls[k] == 0 {
			untrue += v
		}
	}
	n := float64(max(1, r.Samples))
	r.NoEdge, r.Untrue = 100*(1-all/n), 100*untrue/n
}

// estimate reads a recording with every method it has the evidence for.
func (l *live) estimate(file string, r *liveRecording, store *image.Store) (*estimates, error) {
	f, err := perfdata.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e := &estimates{store: store}
	ses := session.New(f, store)
	cut := 0
	for s, err := range ses.Samples() {
		if err != nil {
			return nil, err
		}
		if e.est == nil {
			l.choose(e, f.Meta())
		}
		for _, est := range e.est {
			est.Add(s)
		}
		if s.Outcome.Cut() {
			cut++
		}
	}
	if d := f.Stats().Damage; d != nil {
		return nil, fmt.Errorf("%s: damaged: %v", file, d)
	}
	if e.est == nil {
		return nil, fmt.Errorf("%s: no samples", file)
	}
	st := ses.Stats()
	n := float64(st.Samples)
	r.Samples, r.Lost = st.Samples, st.LostSamples+st.LostRecords
	r.PutBack, r.Cut = 100*float64(st.Repaired)/n, 100*float64(cut)/n
	return e, nil
}

// choose makes the estimators; methods without evidence are left out, with
// what they lack.
func (l *live) choose(e *estimates, meta *perfdata.Meta) {
	for _, m := range l.methods {
		opt := correct.Options{Meta: meta, Store: e.store}
		if m.opt != nil {
			m.opt(&opt)
		}
		est, err := correct.New(m.use, opt)
		if err != nil {
			if l.result.LeftOut == nil {
				l.result.LeftOut = map[string]string{}
			}
			l.result.LeftOut[m.name] = err.Error()
			continue
		}
		e.methods, e.est = append(e.methods, m), append(e.est, est)
	}
}
