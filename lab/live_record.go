package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	frames bool // useless without frame pointers
	chains bool // callchains of the kernel are among what is recorded
	// command records at a rate into a file; the program follows.
	command  func(l *live, hz int, file string) []string
	readings []reading
}

// A reading is what is made of the stacks of a recording.
type reading struct {
	name  string
	leave bool // callchains are left as recorded
}

func kinds() []kind {
	perf := func(graph string) func(*live, int, string) []string {
		return func(_ *live, hz int, file string) []string {
			return []string{"perf", "record", "-q", "-N", "-m", "32M", "-e", "cpu-clock:u", "-F", strconv.Itoa(hz),
				"--call-graph", graph, "-o", file, "--"}
		}
	}
	return []kind{
		{frames: true, chains: true, command: perf("fp"), readings: []reading{
			{name: "frame pointers, as recorded", leave: true}, {name: "frame pointers"},
		}},
		{frames: true, chains: true, readings: []reading{{name: "frame pointers + 512 bytes"}}, command: func(l *live, hz int, file string) []string {
			return []string{l.recorder, "record", "--quiet", "-e", "cpu-clock:u", "-F", strconv.Itoa(hz),
				"--call-graph", "fp", "--stack-dump", "512", "-o", file, "--"}
		}},
		{readings: []reading{{name: "DWARF"}}, command: perf("dwarf,8192")},
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
	// Missing: the immediate caller of the leaf is another than the one in
	// the callchain as recorded, or there was none. -1 if there are no
	// callchains to compare with.
	Missing float64 `json:"missing"`
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

// liveRun is what is known of a program when it is recorded.
type liveRun struct {
	args   []string
	output string // digest of what it prints
	truth  *accuracy.Profile
	reader *accuracy.Reader
	store  *image.Store // the same files for all recordings
}

// record makes, scores and removes one recording; r says which.
func (l *live) record(ctx context.Context, r liveRecording, k kind, p *liveRun) error {
	file := filepath.Join(l.dir, "live.data")
	defer os.Remove(file)
	out := sha256.New()
	command := append(k.command(l, r.Hz, file), p.args...)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var said bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = l.inputs(), l.env, out, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, said.String())
	}
	if got := hex.EncodeToString(out.Sum(nil)); got != p.output {
		return errors.New("printed something else than when it was counted")
	}
	var recorded []image.Loc
	if k.chains {
		var err error
		if recorded, err = recordedCallers(file, p.store); err != nil {
			return err
		}
	}
	for _, how := range k.readings {
		r.Stacks = how.name
		if err := l.score(file, r, how, recorded, p); err != nil {
			return fmt.Errorf("%s: %w", how.name, err)
		}
	}
	return nil
}

// score compares what every method makes of a recording with the truth.
func (l *live) score(file string, r liveRecording, how reading, recorded []image.Loc, p *liveRun) error {
	e, err := l.estimate(file, &r, how, recorded, p.store)
	if err != nil {
		return err
	}
	for i, m := range e.methods {
		got, err := e.profile(i, p.reader)
		if err != nil {
			return err
		}
		c, err := accuracy.Compare(p.truth, got, 0)
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
			r.edges(p.truth, got)
		}
	}
	l.result.Recordings = append(l.result.Recordings, r)
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

// noCaller stands for the caller of a stack that has none.
const noCaller = ^image.Loc(0)

func caller(s *session.Sample) image.Loc {
	if len(s.Stack) < 2 {
		return noCaller
	}
	return s.Stack[1]
}

// recordedCallers returns the caller of the leaf of each sample, as the
// kernel's callchain has it.
func recordedCallers(file string, store *image.Store) (callers []image.Loc, err error) {
	f, err := perfdata.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ses := session.New(f, store)
	ses.LeaveChains()
	for s, err := range ses.Samples() {
		if err != nil {
			return nil, err
		}
		c := caller(s)
		if len(s.Raw.Callchain) <= 2 { // marker and ip: the stack dump, if any, has stepped in
			c = noCaller
		}
		callers = append(callers, c)
	}
	return callers, nil
}

// estimate reads a recording with every method it has the evidence for.
func (l *live) estimate(file string, r *liveRecording, how reading, recorded []image.Loc, store *image.Store) (*estimates, error) {
	f, err := perfdata.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e := &estimates{store: store}
	ses := session.New(f, store)
	if how.leave {
		ses.LeaveChains()
	}
	n, cut, missing := 0, 0, 0
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
		if n < len(recorded) && recorded[n] != caller(s) {
			missing++
		}
		n++
	}
	if d := f.Stats().Damage; d != nil {
		return nil, fmt.Errorf("%s: damaged: %v", file, d)
	}
	if e.est == nil {
		return nil, fmt.Errorf("%s: no samples", file)
	}
	st := ses.Stats()
	r.Samples, r.Lost = st.Samples, st.LostSamples+st.LostRecords
	r.Cut, r.Missing = 100*float64(cut)/float64(n), 100*float64(missing)/float64(n)
	if recorded == nil || how.leave {
		r.Missing = -1
	}
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
			l.result.LeftOut[m.name] = lacks(err)
			continue
		}
		e.methods, e.est = append(e.methods, m), append(e.est, est)
	}
}

// lacks is the fact in an error of correct.New, without its advice.
func lacks(err error) string {
	_, text, _ := strings.Cut(err.Error(), ": ")
	fact, _, _ := strings.Cut(text, ";")
	return fact
}
