package vpmu

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Result is what a run did.
type Result struct {
	ExitCode  int
	Threads   []ThreadTotals
	Total     ThreadTotals
	Cycles    []float64 // of all threads, for each recording: its cost model's
	Samples   []int     // written to each recording
	Lost      []int     // dropped from each, by Recording.Lost and Throttle
	Odd       map[string]uint64
	Registers bool          // the emulator's registers could be read
	Log       string        // the event stream, with Config.KeepLog
	Elapsed   time.Duration // of the emulation
	User      time.Duration // processor time of it
}

// oddNames are the plugin's ODD_* counts.
var oddNames = []string{
	"returns not to their caller", "unexpected successors", "frames left without return", "signals", "frames beyond depth limit",
	"processes forked and not followed", "turns taken from a stalled thread", "", "paths beyond limit", "contexts beyond limit",
}

const oddN = 10

// DefaultEnv is the environment of programs unless Config.Env says otherwise.
var DefaultEnv = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C", "TZ=UTC", "MAGICK_THREAD_LIMIT=1", "GOMAXPROCS=1"}

// Run runs the program once and writes its recordings and truth. If a
// recording wants a number of samples, the program is run before that to
// count; counts are kept in WorkDir.
func Run(ctx context.Context, c Config) (*Result, error) {
	if err := c.defaults(); err != nil {
		return nil, err
	}
	specs, count, timeLane := lanes(c.Recordings)
	if len(specs) > lanesMax || len(c.Recordings) > 64 {
		return nil, fmt.Errorf("vpmu: %d recordings with %d clocks are more than one run can take", len(c.Recordings), len(specs))
	}
	totals, err := c.counted(ctx, specs)
	if err != nil {
		return nil, err
	}
	conf := newConf(&c, specs)
	for i := range c.Recordings {
		r := &c.Recordings[i]
		if r.Period <= 0 {
			r.Period = totals[count[i]] / float64(r.Samples)
		}
		if r.Jitter == 0 { // a counter is set to a whole number
			r.Period = math.Max(1, math.Round(r.Period))
		}
		line, err := r.samplerLine(count[i], timeLane[i], r.Period)
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(conf, line)
	}
	if c.TruthDir != "" || needStack(c.Recordings) {
		fmt.Fprintln(conf, "truth 1")
	}
	if c.TruthDir != "" && !c.NoCCT {
		fmt.Fprintln(conf, "cct 1")
	}
	if c.TruthDir != "" && c.Paths {
		fmt.Fprintln(conf, "paths 1")
	}
	start := time.Now()
	log, ps, err := c.emulate(ctx, conf, laneWidth(specs))
	if err != nil {
		return nil, err
	}
	res := &Result{ExitCode: ps.ExitCode(), Elapsed: time.Since(start), User: ps.UserTime()}
	if c.KeepLog {
		res.Log = log
	} else {
		defer os.Remove(log)
	}
	return res, c.harvest(log, specs, count, timeLane, res)
}

func needStack(recs []Recording) bool {
	for i := range recs {
		if recs[i].Branch != "none" || recs[i].Callchain == "exact" || recs[i].Defer {
			return true
		}
	}
	return false
}

func (c *Config) defaults() error {
	if len(c.Program) == 0 {
		return errors.New("vpmu: no program")
	}
	path, err := exec.LookPath(c.Program[0])
	if err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	// The emulator would do the same, and mappings show what it opened.
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	c.Program = append([]string{c.Program[0], path}, c.Program[1:]...) // argv[0], then the file
	if c.QEMU == "" {
		c.QEMU = "qemu-x86_64"
	}
	if c.Env == nil {
		c.Env = DefaultEnv
	}
	if c.Stdin == "" {
		c.Stdin = os.DevNull
	}
	if c.Slice == 0 {
		c.Slice = 4_000_000
	}
	if c.WorkDir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			base = os.TempDir()
		}
		c.WorkDir = filepath.Join(base, "perfcorrect-vpmu")
	}
	c.Recordings = append([]Recording(nil), c.Recordings...)
	for i := range c.Recordings {
		if err := c.Recordings[i].check(); err != nil {
			return err
		}
	}
	return os.MkdirAll(c.WorkDir, 0o700)
}

func newConf(c *Config, specs []laneSpec) *bytes.Buffer {
	conf := new(bytes.Buffer)
	fmt.Fprintf(conf, "slice %d\n", c.Slice)
	if c.singleStep() {
		fmt.Fprintln(conf, "singlestep 1")
	}
	for _, l := range specs {
		fmt.Fprintf(conf, "lane %d %g %d\n", l.Kind, l.Sigma, l.Seed)
	}
	return conf
}

func (c *Config) singleStep() bool {
	for i := range c.Recordings {
		if c.Recordings[i].singleStep() {
			return true
		}
	}
	return false
}

func laneWidth(specs []laneSpec) int { return (len(specs) + 3) / 4 * 4 }

// emulate runs the program under QEMU and returns the event stream's file.
func (c *Config) emulate(ctx context.Context, conf *bytes.Buffer, width int) (log string, ps *os.ProcessState, err error) {
	so, err := buildPlugin(c.WorkDir, width)
	if err != nil {
		return "", nil, err
	}
	f, err := os.CreateTemp(c.WorkDir, "events-")
	if err != nil {
		return "", nil, err
	}
	f.Close()
	log = f.Name()
	defer func() {
		if err != nil {
			os.Remove(log)
		}
	}()
	fmt.Fprintf(conf, "out %s\n", log)
	confFile := log + ".conf"
	if err := os.WriteFile(confFile, conf.Bytes(), 0o600); err != nil {
		return "", nil, err
	}
	defer os.Remove(confFile)
	args := append([]string{"-seed", "1"}, c.QEMUFlags...)
	if c.singleStep() {
		args = append(args, "-singlestep")
	}
	args = append(args, "-plugin", so+",conf="+confFile, "-0", c.Program[0])
	cmd := exec.CommandContext(ctx, c.QEMU, append(args, c.Program[1:]...)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, c.Stdout, c.Stderr
	in, err := os.Open(c.Stdin)
	if err != nil {
		return "", nil, err
	}
	defer in.Close()
	cmd.Stdin = in
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return log, cmd.ProcessState, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("vpmu: %s: %w", c.QEMU, err)
	}
	return log, cmd.ProcessState, nil
}

// counted returns the run's total on each lane, from the cache if the same
// program was counted with the same arguments before. It returns nil if no
// recording needs it.
func (c *Config) counted(ctx context.Context, specs []laneSpec) ([]float64, error) {
	need := false
	for i := range c.Recordings {
		need = need || c.Recordings[i].Period <= 0
	}
	if !need {
		return nil, nil
	}
	key, err := c.countKey(specs)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(c.WorkDir, "count-"+key+".json")
	var totals []float64
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &totals) == nil && len(totals) == len(specs) {
		return totals, nil
	}
	quiet := *c
	quiet.Stdout, quiet.Stderr = nil, nil
	log, _, err := quiet.emulate(ctx, newConf(c, specs), laneWidth(specs))
	if err != nil {
		return nil, err
	}
	defer os.Remove(log)
	res := new(Result)
	if err := res.read(log, laneWidth(specs), nil); err != nil {
		return nil, err
	}
	for i := range specs {
		totals = append(totals, float64(res.Total.Cycles[i]))
	}
	b, err := json.Marshal(totals)
	if err != nil {
		return nil, err
	}
	return totals, os.WriteFile(file, b, 0o600)
}

// countKey changes with everything that may change how long the program runs,
// as far as it is visible: files it opens are not.
func (c *Config) countKey(specs []laneSpec) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %v %v\n", c.Program, c.Dir, c.Env, c.QEMUFlags, specs, c.singleStep())
	for _, f := range append([]string{c.Stdin}, c.Program[1:]...) {
		if st, err := os.Stat(filepath.Join(c.Dir, f)); err == nil && st.Mode().IsRegular() {
			fmt.Fprintln(h, f, st.Size(), st.ModTime().UnixNano())
		} else if st, err := os.Stat(f); err == nil && st.Mode().IsRegular() {
			fmt.Fprintln(h, f, st.Size(), st.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12]), nil
}

// read goes through an event stream for totals, threads and truth.
func (res *Result) read(log string, width int, truth *truthData) error {
	f, err := os.Open(log)
	if err != nil {
		return err
	}
	defer f.Close()
	return newDecoder(bufio.NewReader(f), width).run(sink{truth: truth, event: func(e any) error {
		switch e := e.(type) {
		case exitEvent:
			res.add(e.totals)
		case endEvent:
			res.add(e.totals)
		}
		return nil
	}})
}

func (res *Result) add(t ThreadTotals) {
	res.Threads = append(res.Threads, t)
	for i, v := range t.Cycles {
		res.Total.Cycles[i] += v
	}
	res.Total.Instructions += t.Instructions
	res.Total.Calls += t.Calls
	res.Total.Branches += t.Branches
}
