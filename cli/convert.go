package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/perfcorrect/perfcorrect/correct"
	"github.com/perfcorrect/perfcorrect/formats"
	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/perfdata"
)

func convertCommand() *command {
	return &command{
		name:    "convert",
		args:    "[perf.data...]",
		summary: "correct a recording and write it for pprof, flame graphs and other tools",
		about: `Reads recordings of perf record, estimates how often each call was made, and
writes a profile. Several recordings are merged; without one, perf.data is read.
Without -o the profile goes to standard output, or to perfcorrect.pb.gz if that
is a terminal and the format binary.

Graphs and their formats:
  stacks   call stacks with samples and calls into the leaf: pprof, folded
  dcg      call edges with their call sites: pprof, jsonl

Methods:
  auto     the best of the following the recording allows
  calls    samples of an event that counts calls are calls
  lbr      calls in branch stacks, weighed by the time until the next ones;
           a counter of calls in the group of the sampling event sharpens it
  flow     callchains and the program's control flow
  density  calls counted since the last tick, less for late ticks (Lee 2015);
           needs a counter of calls in the group of the sampling event
  lee      the same for each branch stack: its calls share them
  cbs      bursts of calls from branch stacks, each one call (Arnold, Grove 2005)
  none     every sample is a call of its leaf: what other tools show`,
		flags: func(fs *flagSet) runFunc {
			c := new(convert)
			c.declare(fs)
			return c.run
		},
	}
}

// convert is the command's flags.
type convert struct {
	inputFlags
	filter
	graph, method, format, latency *string

	output        string
	event         string
	callEvent     string
	lambda, alpha float64
	alphaSet      func() bool
	labels        []string
	noInline      bool
}

func (c *convert) declare(fs *flagSet) {
	c.graph = choice(fs, "graph", "what to write", formats.Graphs()...)
	c.method = choice(fs, "method", "how calls are estimated", correct.Methods()...)
	c.format = choice(fs, "format", "as what to write it", "pprof", "folded", "jsonl")
	fs.stringVar(&c.output, "output", "o", "", "write to `FILE`; - is standard output")
	c.inputFlags.declare(fs)
	c.declareNames(fs)
	fs.stringVar(&c.event, "event", "", "", "use the samples of event `NAME`; default the first that has some")
	fs.stringVar(&c.callEvent, "call-event", "", "", "the event that counts calls, by `NAME` or code; default is recognised")
	c.latency = choice(fs, "latency", "what tells how late a tick was", "auto", "off", "overshoot", "sched")
	fs.float64Var(&c.lambda, "lambda", "", 0, "sampling period `N` in Lee's formula, in units of the event; default the recorded one")
	fs.float64Var(&c.alpha, "alpha", "", 1000, "weight `N` of latency against lambda in Lee's formula")
	c.alphaSet = func() bool { return fs.given("alpha") }
	c.filter.declare(fs)
	fs.listVar(&c.labels, "label", "", "label pprof samples with any of `thread,pid,tid`", true)
	fs.boolVar(&c.noInline, "no-inline", "", "do not show inlined calls as frames")
}

func (c *convert) run(ctx context.Context, e *env, args []string) error {
	write, opt, err := c.check()
	if err != nil {
		return &usageError{err: err}
	}
	names, err := c.names(args)
	if err != nil {
		return err
	}
	var total correct.Estimator
	var span timeSpan
	for _, name := range names {
		est, err := c.read(ctx, e, name, opt, &span)
		if err != nil {
			return err
		}
		if total == nil {
			total = est
		} else if err := total.Merge(est); err != nil {
			return withHint(fmt.Errorf("merging %s: %w", name, err), "--method none merges all recordings")
		}
	}
	res := total.Result()
	for _, w := range res.Warnings {
		e.warn("%s", w)
	}
	if err := c.someSamples(res); err != nil {
		return err
	}
	e.unused(res)
	e.say("%s", res.Summary)
	if res.Overlap > 0 {
		e.say("expected overlap with the true call graph %.1f %%, bias left aside; the error of %.3g independent calls", res.Overlap, res.EffectiveSamples)
	}
	return c.write(ctx, e, write, res, span)
}

// check looks at the flags before anything is read.
func (c *convert) check() (formats.Writer, correct.Options, error) {
	opt := correct.Options{Event: c.event, CallEvent: c.callEvent, Lambda: c.lambda}
	write, err := formats.Lookup(*c.graph, *c.format)
	if err != nil {
		return nil, opt, err
	}
	if opt.Latency, err = correct.ParseLatency(*c.latency); err != nil {
		return nil, opt, err
	}
	if c.alphaSet() {
		opt.Alpha = &c.alpha
	}
	if c.lambda < 0 || c.alpha < 0 {
		return nil, opt, errors.New("--lambda and --alpha cannot be negative")
	}
	for _, l := range c.labels {
		switch l {
		case "thread":
		case "pid":
			opt.LabelPID = true
		case "tid":
			opt.LabelTID = true
		default:
			return nil, opt, fmt.Errorf("unknown label %q: have thread, pid, tid", l)
		}
	}
	return write, opt, nil
}

// read feeds one recording to an estimator and says what was wrong with it.
func (c *convert) read(ctx context.Context, e *env, name string, opt correct.Options, span *timeSpan) (correct.Estimator, error) {
	in, err := c.open(e, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	opt.Meta, opt.Store = in.reader.Meta(), c.store
	var est correct.Estimator
	for s, err := range in.samples(ctx, e) {
		if err != nil {
			return nil, err
		}
		// The first sample is the first moment at which all of a pipe's
		// events are known.
		if est == nil {
			if est, err = c.estimator(opt); err != nil {
				return nil, err
			}
		}
		if c.keep(s) {
			est.Add(s)
		}
	}
	for _, n := range in.notes() {
		e.warn("%v", n)
	}
	if est == nil { // no samples at all, said later
		est, _ = correct.New("none", opt)
	}
	span.add(in)
	return est, nil
}

// estimator returns one for the method asked for. Method auto is decided by
// each recording; they must have the same evidence.
func (c *convert) estimator(opt correct.Options) (correct.Estimator, error) {
	est, err := correct.New(*c.method, opt)
	if err != nil {
		return nil, withHint(err, "--method auto takes what the recording allows; perfcorrect info says what that is")
	}
	return est, nil
}

// someSamples is an error if there is nothing to write.
func (c *convert) someSamples(res *correct.Result) error {
	if res.Used > 0 {
		return nil
	}
	err := errors.New("no samples")
	switch {
	case c.dropped > 0:
		return withHint(err, "%s", c.hint())
	case len(res.Unused) > 0:
		var names []string
		for _, u := range res.Unused {
			names = append(names, u.Event)
		}
		return withHint(err, "the recording has samples of %s", atMost(names, 10))
	}
	return withHint(err, "perfcorrect info shows what is in the recording")
}

// unused says which samples are not in the profile. The scheduler's events
// are recorded for the sake of the others.
func (e *env) unused(res *correct.Result) {
	var total int64
	var list []string
	for _, u := range res.Unused {
		if strings.HasPrefix(u.Event, "sched:") {
			continue
		}
		total += u.Samples
		list = append(list, fmt.Sprintf("%s %d", u.Event, u.Samples))
	}
	if total > 0 {
		e.warn("%s of other events not used: %s; --event NAME takes those of one", count(total, "sample"), atMost(list, 10))
	}
}

func (c *convert) write(ctx context.Context, e *env, write formats.Writer, res *correct.Result, span timeSpan) error {
	p := &formats.Profile{
		Store: c.store, Method: res.Method, Stacks: res.Stacks,
		Start: span.start, Duration: span.duration, Period: int64(res.Period),
		Comments: []string{res.Summary}, Inline: !c.noInline,
	}
	p.EventName, p.EventUnit = formats.EventType(res.Event)
	p.ThreadLabels = slices.Contains(c.labels, "thread")
	if *c.graph == "dcg" {
		p.DCG = res.DCG(c.store)
		n, what := observations(p.DCG), "samples"
		if n != res.Used {
			what = "observations"
		}
		for reason, v := range p.DCG.Dropped {
			if v.Samples > 0 {
				e.warn("%s of %d %s gave no call edge: %v", share(uint64(v.Samples), uint64(n)), n, what, graph.Reason(reason))
			}
		}
	}
	name := e.outputName(c.output, *c.format == "pprof")
	if err := e.writeOutput(ctx, name, func(w io.Writer) error { return write(w, p) }); err != nil {
		return err
	}
	for _, n := range symbolNotes(c.store) {
		e.warn("%v", n)
	}
	if name != "-" {
		e.say("wrote %s", name)
	}
	return nil
}

// observations counts what an estimator made a graph of: samples, or branch
// records of calls.
func observations(g *graph.DCG) (n int64) {
	for _, v := range g.All() {
		n += v.Samples
	}
	for _, v := range g.Dropped {
		n += v.Samples
	}
	return n
}

// timeSpan is when the recordings were made.
type timeSpan struct {
	start    int64 // ns since 1970, 0 if not known
	duration int64 // ns, of all together
}

func (t *timeSpan) add(in *input) {
	st := in.session.Stats()
	t.duration += int64(st.Last - st.First)
	if start := wallClock(in.reader.Meta(), st.First); start > 0 && (t.start == 0 || start < t.start) {
		t.start = start
	}
}

// wallClock turns a time of the recording's clock into one since 1970, which
// perf makes possible with -k CLOCK.
func wallClock(m *perfdata.Meta, t uint64) int64 {
	c := m.ClockData
	if c == nil || c.WallClockNS == 0 {
		return 0
	}
	return int64(c.WallClockNS + t - c.ClockIDTimeNS)
}
