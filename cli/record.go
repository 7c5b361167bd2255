package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/record"
)

func recordCommand() *command {
	return &command{
		name:    "record",
		args:    "[--] PROGRAM [ARGUMENTS]",
		summary: "record a program, processes or the machine",
		about: `Makes a recording, perf.data, of a program, of running processes (-p, -t), of
CPUs (-a, -C) or of a cgroup (-G). Without -e it opens the best evidence about
calls that the machine has, and says which: branch stacks and a counter of
calls, else callchains. Flags come before the program; everything from the
first other word on belongs to it, and its exit status is passed on.`,
		flags: func(fs *flagSet) runFunc {
			r := &recordFlags{}
			r.declare(fs)
			return r.run
		},
	}
}

// recordFlags are the command's flags as given.
type recordFlags struct {
	fs  *flagSet
	opt record.Options

	output, freq, clock, callGraph string
	cpus, cgroup, size             string
	pids, tids                     []int
	chains, branchAny              bool
	branch                         string
	zstd                           int
	all, noInherit, switches       bool
	noSwitches                     bool
	jitter                         float64
	cbs                            string
	tune                           bool
	tuneWith                       record.Tune
	dump                           int
	count                          string
}

func (r *recordFlags) declare(fs *flagSet) {
	r.fs = fs
	fs.argsEndFlags = true
	o := &r.opt
	fs.stringVar(&r.output, "output", "o", "perf.data", "write to `FILE`, - is standard output")
	fs.stringVar(&o.Events, "event", "e", "", "what to count, in perf's notation: cycles:u, {cpu-clock,r1c4}:S (default: the best there is)")
	fs.stringVar(&r.freq, "freq", "F", "", "samples a second `HZ` of running time, or max (default 4000)")
	fs.stringVar(&r.count, "count", "c", "", "a sample every `N` events instead (ns of a clock)")
	fs.boolVar(&r.chains, "callchains", "g", "record callchains: done anyway; this is for the fingers of perf users")
	fs.stringVar(&r.callGraph, "call-graph", "", "", "`MODE` of callchains: fp, dwarf[,BYTES], lbr or no (default: fp, with a small stack dump if there are no branch stacks)")
	fs.intVar(&r.dump, "stack-dump", "", -1, "`BYTES` of user stack beside frame pointers, 0 for none (default 512 where nothing else shows the caller of a function without frame)")
	fs.boolVar(&r.branchAny, "branch-any", "b", "record branch stacks of all taken branches")
	fs.stringVar(&r.branch, "branch-filter", "j", "", "record branch stacks of these `KINDS`: any_call,u,... or no")
	fs.intListVar(&r.pids, "pid", "p", "record these running processes")
	fs.intListVar(&r.tids, "tid", "t", "record these running threads")
	fs.boolVar(&r.all, "all-cpus", "a", "record everything that runs, on all CPUs")
	fs.stringVar(&r.cpus, "cpu", "C", "", "only on these `CPUS`: 0-3,8")
	fs.stringVar(&r.cgroup, "cgroup", "G", "", "record the processes of this cgroup, `NAME`")
	fs.boolVar(&r.noInherit, "no-inherit", "i", "do not record threads and children made later")
	fs.boolVar(&o.UserOnly, "all-user", "", "sample user code only")
	fs.listVar(&o.CountCalls, "count-calls", "", "count the calls of `FUNC` (FILE:FUNC; may have * and ?) and read the count with each sample; can be repeated", false)
	fs.stringVar(&r.cbs, "cbs", "", "", "counter-based sampling `SAMPLES,STRIDE`: after each tick, sample that many calls, that far apart")
	fs.boolVar(&r.tune, "self-tune", "", "let the interval follow the share of samples that find the same call on top")
	r.tuneWith = record.DefaultTune()
	fs.intVar(&r.tuneWith.Every, "tune-every", "", r.tuneWith.Every, "decide after so many `SAMPLES`")
	fs.float64Var(&r.tuneWith.Low, "tune-low", "", 100*r.tuneWith.Low, "shorten the interval below this share, `PERCENT`")
	fs.float64Var(&r.tuneWith.High, "tune-high", "", 100*r.tuneWith.High, "lengthen it above this share, `PERCENT`")
	fs.float64Var(&r.tuneWith.Factor, "tune-factor", "", r.tuneWith.Factor, "by this `FACTOR`")
	fs.uint64Var(&r.tuneWith.Min, "tune-min", "", 0, "never below this period, `N` events (ns of a clock)")
	fs.uint64Var(&r.tuneWith.Max, "tune-max", "", 0, "never above this period, `N` events")
	fs.float64Var(&r.jitter, "jitter", "", -1, "vary the interval by up to `PERCENT` against lockstep with the program (default 10 with -F, 0 with -c)")
	fs.boolVar(&r.switches, "switch-events", "", "record context switches (default without -e)")
	fs.boolVar(&r.noSwitches, "no-switch-events", "", "do not")
	fs.stringVar(&r.clock, "clockid", "k", "", "take times from this `CLOCK`: monotonic, realtime, ...")
	fs.stringVar(&r.size, "mmap-pages", "m", "", "`SIZE` of each CPU's buffer: pages, or 512K, 8M (default 2M, or what the limit of locked memory allows)")
	fs.intVar(&r.zstd, "compression-level", "z", 0, "compress with zstd, `LEVEL` 1 to 22")
	fs.lookup("compression-level").optional = "1"
	fs.durationVar(&o.Duration, "duration", "", 0, "stop after this `TIME`: 10s, 5m (the program is then sent SIGTERM)")
}

func (r *recordFlags) run(ctx context.Context, e *env, args []string) error {
	if err := r.resolve(args); err != nil {
		return err
	}
	if r.output == "-" && term.IsTerminal(int(e.Stdout.Fd())) {
		return usagef("standard output is a terminal: the recording needs a file (-o) or a pipe")
	}
	cfg, err := record.Prepare(r.opt)
	if err != nil {
		return recordError(err)
	}
	for _, w := range cfg.Plan.Warnings {
		e.warn("%s", w)
	}
	e.say("recording %s", cfg.Plan.Line)
	cfg.Output = record.Output{Name: r.output, Zstd: r.zstd}
	cfg.Cmdline, cfg.Version = r.cmdline(args), version()
	cfg.Say = func(format string, args ...any) { e.say(format, args...) }
	bar := e.startBar()
	if bar != nil {
		cfg.Progress = func(c record.Counts, d time.Duration) { bar.show(recordingText(c, d)) }
	}
	res, err := record.Run(context.WithoutCancel(ctx), cfg) // signals are its own matter
	e.stopBar()
	if res != nil {
		r.summary(e, cfg, res)
	}
	if err != nil {
		return recordError(err)
	}
	if res.Status != 0 {
		return &statusError{res.Status}
	}
	return nil
}

// statusError passes on the exit status of a recorded program, which has
// said itself what there was to say.
type statusError struct{ status int }

func (s *statusError) Error() string {
	return fmt.Sprintf("the program ended with status %d", s.status)
}

// recordError gives the hints of package record the form of this one.
func recordError(err error) error {
	var h *record.HintError
	if errors.As(err, &h) {
		return withHint(err, "%s", h.Hint)
	}
	return err
}

// summary is the last line: what was recorded, and how to go on.
func (r *recordFlags) summary(e *env, cfg *record.Config, res *record.Result) {
	c := res.Counts
	if c.Lost+c.LostSamples > 0 {
		e.warn("%s lost: larger buffers (-m 16M) or a lower frequency (-F 999) lose less", count(c.Lost+c.LostSamples, "record"))
	}
	if c.Throttled > 0 {
		e.warn("the kernel throttled sampling %s: a lower frequency (-F 999) keeps its distance even", count(c.Throttled, "time"))
	}
	if c.EndedEarly > 0 {
		e.warn("%s ended before events could be opened on it", count(c.EndedEarly, "thread"))
	}
	next := ""
	if r.output != "-" {
		next = "; next: perfcorrect convert"
		if r.output != "perf.data" {
			next += " " + r.output
		}
	}
	tuned := ""
	if c.PeriodChange > 0 {
		tuned = fmt.Sprintf(", period tuned %s to %d", count(c.PeriodChange, "time"), c.FinalPeriod)
	}
	e.say("%s, %d lost, %s throttled, %s in %s%s%s", count(c.Samples, "sample"), c.Lost+c.LostSamples,
		count(c.Throttled, "time"), size(c.Bytes), r.output, tuned, next)
}

func size(n int64) string {
	if n < 100_000 {
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// show replaces what the bar shows.
func (b *bar) show(text string) {
	b.wipe()
	b.shown = len(text)
	io.WriteString(b.w, text)
}

func recordingText(c record.Counts, d time.Duration) string {
	return fmt.Sprintf("recording %.0f s, %s, %d lost, %s", d.Seconds(), count(c.Samples, "sample"), c.Lost+c.LostSamples, size(c.Bytes))
}

// resolve turns the flags into options.
func (r *recordFlags) resolve(args []string) error {
	o := &r.opt
	o.Target = record.Target{Command: args, PIDs: r.pids, TIDs: r.tids, AllCPUs: r.all, Cgroup: r.cgroup, NoFollow: r.noInherit}
	if r.cpus != "" {
		cpus, err := record.ParseCPUList(r.cpus)
		if err != nil {
			return usagef("-C: %v", err)
		}
		o.Target.CPUs = cpus
	}
	if err := r.checkTarget(); err != nil {
		return err
	}
	for _, f := range []func() error{r.rate, r.stacks, r.branches, r.strategies, r.rest} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (r *recordFlags) checkTarget() error {
	t := &r.opt.Target
	what := 0
	for _, given := range []bool{len(t.PIDs) > 0 || len(t.TIDs) > 0, t.AllCPUs, t.Cgroup != ""} {
		if given {
			what++
		}
	}
	switch {
	case what > 1:
		return usagef("-p and -t, -a and -G exclude each other")
	case what == 0 && len(t.Command) == 0 && len(t.CPUs) == 0:
		return usagef("nothing to record: give a program, or -p, -t, -a, -C or -G")
	case len(t.Command) > 0 && len(t.PIDs)+len(t.TIDs) > 0:
		return usagef("a program and -p or -t exclude each other: with --duration the recording ends by itself")
	}
	return nil
}

func (r *recordFlags) rate() error {
	o := &r.opt
	if r.freq != "" && r.count != "" {
		return usagef("-F and -c exclude each other")
	}
	var err error
	switch {
	case r.freq == "max":
		o.MaxFreq = true
	case r.freq != "":
		if o.Freq, err = number(r.freq); err != nil || o.Freq == 0 {
			return usagef("-F %s: want a number of samples a second, or max", r.freq)
		}
	case r.count != "":
		if o.Count, err = number(r.count); err != nil || o.Count == 0 {
			return usagef("-c %s: want a number of events", r.count)
		}
	}
	o.Jitter = r.jitter / 100
	if r.jitter < 0 {
		o.Jitter = 0
		if o.Count == 0 {
			o.Jitter = record.DefaultJitter
		}
	}
	if o.Jitter > 0.5 {
		return usagef("--jitter: at most 50 percent")
	}
	return nil
}

// number reads 4000, 10k, 2M.
func number(s string) (uint64, error) {
	factor := uint64(1)
	if n := len(s); n > 0 {
		switch s[n-1] {
		case 'k', 'K':
			factor = 1000
		case 'm', 'M':
			factor = 1_000_000
		}
		if factor > 1 {
			s = s[:n-1]
		}
	}
	n, err := strconv.ParseUint(s, 10, 40)
	return n * factor, err
}

func (r *recordFlags) stacks() error {
	o := &r.opt
	mode, bytes, sized := strings.Cut(r.callGraph, ",")
	switch mode {
	case "", "fp", "dwarf", "lbr", "no":
	default:
		return usagef("--call-graph %s: not one of fp, dwarf, lbr, no", mode)
	}
	o.CallGraph = mode
	if sized {
		n, err := strconv.ParseUint(bytes, 10, 16)
		if err != nil || mode != "dwarf" || n == 0 {
			return usagef("--call-graph %s: only dwarf takes a size, 8 to 65528 bytes", r.callGraph)
		}
		o.StackSize = uint32(n)
	}
	switch {
	case r.dump == 0:
		o.NoDump = true
	case r.dump > 0 && mode == "dwarf":
		return usagef("--stack-dump goes with frame pointers; with dwarf: --call-graph dwarf,BYTES")
	case r.dump > 0:
		o.StackSize = uint32(r.dump)
	}
	if o.StackSize > 65528 {
		return usagef("the kernel dumps at most 65528 bytes of stack")
	}
	return nil
}

func (r *recordFlags) branches() error {
	o := &r.opt
	if r.branchAny {
		o.Branch = perfdata.BranchAny
	}
	switch r.branch {
	case "":
	case "no":
		o.BranchOff = true
	default:
		mask, err := record.ParseBranchFilter(r.branch)
		if err != nil {
			return usagef("-j: %v", err)
		}
		o.Branch |= mask
	}
	return nil
}

func (r *recordFlags) strategies() error {
	o := &r.opt
	if r.cbs != "" {
		samples, stride, ok := strings.Cut(r.cbs, ",")
		n, err1 := number(samples)
		d, err2 := number(stride)
		if !ok || err1 != nil || err2 != nil || n == 0 || d == 0 {
			return usagef("--cbs %s: want SAMPLES,STRIDE such as 16,7", r.cbs)
		}
		o.CBS = &record.CBS{Samples: n, Stride: d}
	}
	if r.tune {
		t := r.tuneWith
		t.Low, t.High = t.Low/100, t.High/100
		if t.Low < 0 || t.High > 1 || t.Low >= t.High || t.Factor <= 1 || t.Every < 1 || t.Max != 0 && t.Min > t.Max {
			return usagef("--self-tune: want 0 <= low < high <= 100, a factor above 1, and min not above max")
		}
		o.Tune = &t
	}
	return nil
}

func (r *recordFlags) rest() error {
	o := &r.opt
	switch {
	case r.switches && r.noSwitches:
		return usagef("--switch-events and --no-switch-events exclude each other")
	case r.switches:
		o.Switches = record.On
	case r.noSwitches:
		o.Switches = record.Off
	}
	if r.clock != "" {
		c, ok := record.ParseClock(r.clock)
		if !ok {
			return usagef("-k %s: no such clock", r.clock)
		}
		o.Clock = c
	}
	if r.zstd < 0 || r.zstd > 22 {
		return usagef("-z %d: levels are 1 to 22", r.zstd)
	}
	var err error
	o.RingSize, err = bufferSize(r.size)
	return err
}

// bufferSize reads -m: pages, or bytes with a unit, rounded up to a power of two.
func bufferSize(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	units := map[byte]uint64{'B': 1, 'b': 1, 'K': 1 << 10, 'k': 1 << 10, 'M': 1 << 20, 'm': 1 << 20, 'G': 1 << 30, 'g': 1 << 30}
	page := uint64(os.Getpagesize())
	unit, digits := page, s
	if u, ok := units[s[len(s)-1]]; ok {
		unit, digits = u, s[:len(s)-1]
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n == 0 || n*unit > 1<<30 {
		return 0, usagef("-m %s: want pages, or a size such as 8M, at most 1G", s)
	}
	size := page
	for size < n*unit {
		size *= 2
	}
	return int(size), nil
}

// cmdline is what the recording says how it was made. Values stand with their
// flags, so that readers who look for the first other word find the program.
func (r *recordFlags) cmdline(args []string) []string {
	out := []string{os.Args[0], "record"}
	for _, f := range r.fs.flags {
		switch {
		case !f.given || f.name == "quiet":
		case f.boolean && f.short != "":
			out = append(out, "-"+f.short)
		case f.boolean:
			out = append(out, "--"+f.name)
		default:
			out = append(out, "--"+f.name+"="+f.String())
		}
	}
	if len(args) > 0 {
		out = append(out, "--")
	}
	return append(out, args...)
}
