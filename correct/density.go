package correct

import (
	"errors"
	"fmt"
	"strings"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// density weighs each sample by the calls counted since the previous tick of
// the same event, less the later it was taken.
//
// Assumes: what the program did between two ticks is what it did at the
// second; and a sample taken late shows what follows waiting rather than what
// runs most.
//
// Formula: Lee's antibias weight of tick t_i is
//
//	weight(t_i) = calls(t_i) / (lambda/1000 + alpha/1000 * latency(t_i))
//
// with lambda the sampling period, latency in the same unit, and alpha = 1000:
// a latency of lambda/1000 halves a weight. (With lambda = 10,000,000 cycles
// this is his calls/(10,000 + latency).) These weights have meaning only
// against each other. Here each is multiplied by lambda/1000,
//
//	w_i = calls(t_i) / (1 + alpha * latency(t_i) / lambda),
//
// so that without latency a sample stands for the calls of its interval, and
// all are multiplied by sum calls(t_i) / sum w_i, so that the estimates add up
// to the calls that were counted.
//
// Source: Lee, "Adaptive Correction of Sampling Bias in Dynamic Call Graphs",
// ACM TACO 12(4), 2015, section 3.2.
// Unit: calls.
//
// Choices the paper leaves open:
//   - lambda is the recorded period, in the event's unit; where a frequency was
//     asked for, the nominal period of a clock, or the sample's own period, the
//     kernel's estimate of what gives that frequency at that time.
//   - Samples of one thread at the same time belong to one tick and share its
//     weight in equal parts.
//   - Counters that shared the PMU are scaled by enabled/running time.
//   - If records were lost or sampling was throttled, the interval holds ticks
//     that were not recorded. The sample stands for one tick, so its weight is
//     that share of the calls that one period has of the interval; the others
//     spread over all samples by the common factor.
//   - A sample whose interval has no count gets what a tick of its period has
//     on average.
//
// Wrong: within an interval it is the method none, so where callees of
// different cost are called between two ticks, which is most programs, it
// corrects little; counters of a CPU include what other threads did there; and
// alpha was tuned by its author for the yield points of a Java VM, whose
// latencies are some 1,000 cycles.
type density struct {
	selection
	opt   Options
	alpha float64
	how   string // the call counter was recognised

	d    densitySums
	fill []float64 // by stack: what samples without count stand for, in units of the event
	tick tick
}

// densitySums are what the samples of the profile's event add up to.
type densitySums struct {
	calls  float64 // counted, over all intervals with a count
	clock  float64 // over the same, in units of the event
	weight float64 // sum of w_i
	fill   float64 // sum of density.fill

	counted, uncounted           int64 // samples
	multiplexed, torn, throttled int64 // of counted
	shared                       int64 // further samples of a tick
	latencies                    [numEvidence]int64
	latency                      [numEvidence]float64 // sums, in units of the event
	notRead, stopped             int64                // of uncounted: why
}

// tick is the latest one, for the samples that belong to it.
type tick struct {
	thread *session.Thread
	time   uint64
	share  float64 // w_i of each of its samples
	fill   float64
	stacks []int
}

func newDensity(opt Options) (*density, error) {
	var events []*perfdata.Event
	if opt.Meta != nil {
		events = opt.Meta.Events
	}
	counters, how, err := callEvents(events, opt.Meta, opt.CallEvent)
	if errors.Is(err, ErrNoCallEvent) {
		err = fmt.Errorf("method density: %w; record one in the group of the sampling event, as in perf record -e '{cycles,br_inst_retired.near_call}:S'", err)
	}
	if err != nil {
		return nil, err
	}
	d := &density{selection: newSelection(opt, counters), opt: opt, alpha: 1000, how: how}
	if opt.Alpha != nil {
		d.alpha = *opt.Alpha
	}
	if d.alpha < 0 || opt.Lambda < 0 {
		return nil, fmt.Errorf("method density: lambda %g and alpha %g must not be negative", opt.Lambda, d.alpha)
	}
	return d, nil
}

func (e *density) Add(s *session.Sample) {
	switch e.take(s) {
	case leave:
		return
	case restart:
		e.d, e.fill, e.tick = densitySums{}, nil, tick{}
	}
	w, fill := e.weigh(s)
	e.d.weight += w
	e.d.fill += fill
	if t := &e.tick; t.thread == s.Thread && t.time == s.Time && s.Time != 0 {
		e.share(s, w, fill)
		return
	}
	i := e.add(s, w)
	e.addFill(i, fill)
	e.tick = tick{s.Thread, s.Time, w, fill, append(e.tick.stacks[:0], i)}
}

// weigh returns w_i of the sample, or what it stands for if its calls were not
// counted. It keeps the sums of what was counted.
func (e *density) weigh(s *session.Sample) (w, fill float64) {
	late := 1 + e.late(s)
	calls, ok := e.calls(s)
	if !ok {
		e.d.uncounted++
		return 0, float64(s.Period) / late
	}
	i, d := s.Interval, &e.d
	d.counted++
	d.calls += calls
	d.clock += float64(i.Clock)
	if i.Multiplexed() {
		d.multiplexed++
	}
	if i.Throttled {
		d.throttled++
	}
	if i.Lost > 0 {
		d.torn++
	}
	if i.Throttled || i.Lost > 0 {
		if period := float64(s.Period); period > 0 && period < float64(i.Clock) {
			calls *= period / float64(i.Clock)
		}
	}
	return calls / late, 0
}

// late is alpha * latency / lambda.
func (e *density) late(s *session.Sample) float64 {
	l, from := latency(e.opt.Latency, s.Event, s.Interval)
	if from == noEvidence {
		return 0
	}
	e.d.latencies[from]++
	e.d.latency[from] += l
	lambda := e.opt.Lambda
	switch {
	case lambda > 0:
	case !s.Event.Freq():
		lambda = float64(s.Event.SamplePeriod)
	case isClock(s.Event):
		lambda = 1e9 / float64(s.Event.SamplePeriod)
	default:
		lambda = float64(s.Period)
	}
	if !(lambda > 0) {
		return 0
	}
	return e.alpha * l / lambda
}

// calls returns the calls counted in the sample's interval, and false if none
// were.
func (e *density) calls(s *session.Sample) (float64, bool) {
	i := s.Interval
	if i == nil {
		return 0, false
	}
	var n uint64
	read := false
	for _, c := range i.Counts {
		for _, k := range e.counters {
			if c.Event == k || c.Event != nil && c.Event.Name == k.Name {
				n += c.Value
				read = true
				break
			}
		}
	}
	switch {
	case !read || i.Backwards:
		e.d.notRead++
		return 0, false
	case i.Enabled > 0 && i.Running == 0:
		e.d.stopped++
		return 0, false
	case i.Multiplexed():
		return float64(n) * float64(i.Enabled) / float64(i.Running), true
	}
	return float64(n), true
}

// share adds a further sample of the latest tick: its weight and the tick's
// are divided equally among all of them.
func (e *density) share(s *session.Sample, w, fill float64) {
	t := &e.tick
	e.d.shared++
	n := float64(len(t.stacks))
	newShare, newFill := (t.share*n+w)/(n+1), (t.fill*n+fill)/(n+1)
	for _, i := range t.stacks {
		e.stacks.AddAt(i, graph.Values{Calls: newShare - t.share})
		e.addFill(i, newFill-t.fill)
	}
	i := e.add(s, newShare)
	e.addFill(i, newFill)
	t.share, t.fill, t.stacks = newShare, newFill, append(t.stacks, i)
}

func (e *density) addFill(i int, v float64) {
	if v == 0 {
		return
	}
	for len(e.fill) <= i {
		e.fill = append(e.fill, make([]float64, i+1-len(e.fill))...)
	}
	e.fill[i] += v
}

func (e *density) Merge(o Estimator) error {
	x, ok := o.(*density)
	if !ok {
		return fmt.Errorf("cannot merge method %T into density", o)
	}
	switch e.merge(&x.selection) {
	case leave:
		return nil
	case restart:
		e.d, e.fill = densitySums{}, nil
	}
	e.tick = tick{}
	for i := range x.stacks.Len() {
		st, v := x.stacks.At(i)
		j := e.stacks.Add(st.Label, st.Frames, v)
		if i < len(x.fill) {
			e.addFill(j, x.fill[i])
		}
	}
	e.d.add(&x.d)
	return nil
}

func (d *densitySums) add(o *densitySums) {
	d.calls += o.calls
	d.clock += o.clock
	d.weight += o.weight
	d.fill += o.fill
	d.counted += o.counted
	d.uncounted += o.uncounted
	d.multiplexed += o.multiplexed
	d.torn += o.torn
	d.throttled += o.throttled
	d.shared += o.shared
	d.notRead += o.notRead
	d.stopped += o.stopped
	for i := range d.latency {
		d.latencies[i] += o.latencies[i]
		d.latency[i] += o.latency[i]
	}
}

// factors returns what w_i and fills are to be multiplied by to be calls.
func (e *density) factors() (scale, mean float64) {
	d := &e.d
	switch {
	case d.counted == 0 && d.fill > 0: // nothing known of calls: as many as samples
		return 0, float64(d.uncounted) / d.fill
	case d.weight == 0:
		return 0, 0
	case d.clock == 0:
		return d.calls / d.weight, 0
	}
	return d.calls / d.weight, d.calls / d.clock
}

func (e *density) Result() *Result {
	r := e.result("density")
	scale, mean := e.factors()
	if scale != 1 || e.d.fill > 0 {
		r.Stacks = e.stacks.Map(func(i int, v graph.Values) graph.Values {
			v.Calls *= scale
			if i < len(e.fill) {
				v.Calls += mean * e.fill[i]
			}
			return v
		})
	}
	r.Warnings = append(r.Warnings, e.warnings()...)
	r.Summary = e.summary()
	return r
}

func (e *density) summary() string {
	d := &e.d
	late := "off"
	if e.opt.Latency != LatencyOff {
		late = "none"
		for from := fromOvershoot; from < numEvidence; from++ {
			if n := d.latencies[from]; n > 0 {
				late = fmt.Sprintf("%s, %d samples, mean %.0f", evidenceNames[from], n, d.latency[from]/float64(n))
			}
		}
	}
	return fmt.Sprintf("density: %d samples of %s, %.0f calls counted by %s, latency: %s",
		e.used, eventName(e.event), d.calls, e.how, late)
}

func (e *density) warnings() []string {
	d := &e.d
	var out []string
	say := func(n int64, format string, args ...any) {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d samples ", n)+fmt.Sprintf(format, args...))
		}
	}
	if d.counted == 0 && e.used > 0 {
		out = append(out, fmt.Sprintf("no sample of %s was read together with %s: every sample weighs the same; record both in one group, as in -e '{A,B}:S'",
			eventName(e.event), e.how))
	} else {
		say(d.uncounted, "have no count of calls in their interval and get the mean density (%s)", e.why())
	}
	say(d.multiplexed, "have a call count that covers part of the interval (multiplexed), scaled up")
	say(d.torn, "follow lost records: their weight is that of one period")
	say(d.throttled, "follow throttling: their weight is that of one period")
	if d.latencies[fromSched] > 0 && session.ClockOf(e.event, false) != session.WallClock {
		out = append(out, fmt.Sprintf("waiting was taken for latency, as asked, though %s stops with the thread: this creates bias", eventName(e.event)))
	}
	return out
}

// why says why samples have no count.
func (e *density) why() string {
	d := &e.d
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{
		{d.uncounted - d.notRead - d.stopped, "no interval"},
		{d.notRead, "counter not read, or went backwards"},
		{d.stopped, "counter not on the PMU"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", p.what, p.n))
		}
	}
	return strings.Join(parts, ", ")
}
