package correct

import (
	"math"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// rig is a made-up recording: cycles every 10,000,000, near calls in its group.
type rig struct {
	cycles, calls *perfdata.Event
	meta          *perfdata.Meta
	thread        *session.Thread
	now           uint64
}

func newRig() *rig {
	r := &rig{
		cycles: &perfdata.Event{Name: "cycles", Attr: perfdata.Attr{Type: perfdata.TypeHardware, SamplePeriod: 10_000_000}},
		calls:  &perfdata.Event{Name: "r02c4", Index: 1, Attr: perfdata.Attr{Type: perfdata.TypeRaw, Config: 0x02c4}},
		thread: &session.Thread{PID: 10, TID: 11, Comm: "prog"},
	}
	r.calls.Leader = r.cycles
	r.cycles.Group = []*perfdata.Event{r.cycles, r.calls}
	r.meta = &perfdata.Meta{Events: r.cycles.Group, CPUID: "GenuineIntel,6,85,7", Arch: "x86_64"}
	return r
}

// sample is a tick in the stack (leaf, 100) after n calls, with changes.
func (r *rig) sample(leaf image.Loc, n uint64, change ...func(*session.Sample)) *session.Sample {
	r.now += 4_000_000
	s := &session.Sample{
		Time: r.now, Thread: r.thread, Event: r.cycles, Period: r.cycles.SamplePeriod,
		Stack: []image.Loc{leaf, 100},
		Interval: &session.Interval{
			Start: r.now - 4_000_000, End: r.now, Clock: r.cycles.SamplePeriod, Enabled: 4_000_000, Running: 4_000_000,
			Counts: []session.Count{{Event: r.cycles, Value: r.cycles.SamplePeriod}, {Event: r.calls, Value: n}},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func overshoot(n uint64) func(*session.Sample) {
	return func(s *session.Sample) { s.Interval.Overshoot = n }
}

func run(t *testing.T, opt Options, samples ...*session.Sample) *Result {
	t.Helper()
	e, err := New("density", opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		e.Add(s)
	}
	return e.Result()
}

// calls returns the estimates by leaf.
func calls(r *Result) map[image.Loc]float64 {
	m := map[image.Loc]float64{}
	for st, v := range r.Stacks.All() {
		m[st.Frames[0]] += v.Calls
	}
	return m
}

func want(t *testing.T, r *Result, by map[image.Loc]float64) {
	t.Helper()
	got := calls(r)
	for l, w := range by {
		if math.Abs(got[l]-w) > 1e-9*(1+math.Abs(w)) {
			t.Errorf("leaf %d: %v calls, want %v", l, got[l], w)
		}
	}
	if len(got) != len(by) {
		t.Errorf("%d leaves, want %d", len(got), len(by))
	}
}

// Figure 2 of Lee 2015: eight calls of each kind, four to a tick of C and two
// to a tick of D. Ticks alone say 2:4, weighted they say 8:8.
func TestDensityOnLeeFigure2(t *testing.T) {
	r := newRig()
	const c, d = 1, 2
	res := run(t, Options{Meta: r.meta},
		r.sample(c, 4), r.sample(c, 4), r.sample(d, 2), r.sample(d, 2), r.sample(d, 2), r.sample(d, 2))
	want(t, res, map[image.Loc]float64{c: 8, d: 8})
	if v := res.Stacks.Total(); v.Samples != 6 || v.Event != 60e6 {
		t.Errorf("samples and event %v, want 6 and 60e6", v)
	}
}

// The weights against each other are those of the paper's simplified formula,
// calls/(10,000 + latency), and together they are the calls counted.
func TestDensityWeightsAreLees(t *testing.T) {
	r := newRig()
	in := []struct{ calls, latency uint64 }{{5000, 0}, {5000, 10_000}, {800, 600}, {90_000, 500_000}, {0, 7}}
	var samples []*session.Sample
	var lee [5]float64
	var sum, counted float64
	for i, x := range in {
		samples = append(samples, r.sample(image.Loc(i), x.calls, overshoot(x.latency)))
		lee[i] = float64(x.calls) / (10_000 + float64(x.latency))
		sum += lee[i]
		counted += float64(x.calls)
	}
	by := map[image.Loc]float64{}
	for i := range lee {
		by[image.Loc(i)] = lee[i] / sum * counted
	}
	want(t, run(t, Options{Meta: r.meta}, samples...), by)

	off := map[image.Loc]float64{}
	for i, x := range in {
		off[image.Loc(i)] = float64(x.calls)
	}
	want(t, run(t, Options{Meta: r.meta, Latency: LatencyOff}, samples...), off)
	zero := 0.0
	want(t, run(t, Options{Meta: r.meta, Alpha: &zero}, samples...), off)
}

func TestDensityLambdaAndAlpha(t *testing.T) {
	r := newRig()
	alpha := 500.0
	// 100 / (1 + 500*3000/1e6) = 40 against 100; scaled to 200 in all.
	res := run(t, Options{Meta: r.meta, Lambda: 1e6, Alpha: &alpha}, r.sample(1, 100, overshoot(3000)), r.sample(2, 100))
	want(t, res, map[image.Loc]float64{1: 200 * 40.0 / 140, 2: 200 * 100.0 / 140})

	// In frequency mode lambda is the period the kernel chose for the sample.
	r.cycles.Flags, r.cycles.SamplePeriod = perfdata.FlagFreq, 4000
	period := func(s *session.Sample) { s.Period = 2_000_000 }
	res = run(t, Options{Meta: r.meta}, r.sample(1, 100, period, overshoot(6000)), r.sample(2, 100, period))
	want(t, res, map[image.Loc]float64{1: 200 * 25.0 / 125, 2: 200 * 100.0 / 125}) // 100/(1+1000*6000/2e6)
}

// Which latency holds depends on the clock.
func TestLatencyFollowsTheClock(t *testing.T) {
	r := newRig()
	late := func(s *session.Sample) { s.Interval.Overshoot, s.Interval.WaitedAtEnd = 10_000, 40_000 }
	for _, c := range []struct {
		name string
		attr perfdata.Attr
		mode LatencyMode
		want float64
		from evidence
	}{
		{"cycles", perfdata.Attr{Type: perfdata.TypeHardware}, LatencyAuto, 10_000, fromOvershoot},
		{"cycles", perfdata.Attr{Type: perfdata.TypeHardware}, LatencySched, 40_000, fromSched},
		{"cycles", perfdata.Attr{Type: perfdata.TypeHardware}, LatencyOff, 0, noEvidence},
		{"cpu-clock", perfdata.Attr{Type: perfdata.TypeSoftware, Config: perfdata.SWCPUClock}, LatencyAuto, 0, noEvidence},
		{"task-clock:u", perfdata.Attr{Type: perfdata.TypeSoftware, Config: perfdata.SWTaskClock}, LatencyAuto, 0, noEvidence},
		{"cpu-clock", perfdata.Attr{Type: perfdata.TypeSoftware, Config: perfdata.SWCPUClock}, LatencyOvershoot, 10_000, fromOvershoot},
		{"wall-clock", perfdata.Attr{Type: perfdata.TypeSoftware, Config: perfdata.SWCPUClock}, LatencyAuto, 40_000, fromSched},
	} {
		s := r.sample(1, 1, late)
		got, from := latency(c.mode, &perfdata.Event{Name: c.name, Attr: c.attr}, s.Interval)
		if got != c.want || from != c.from {
			t.Errorf("%s, %s: latency %v from %s, want %v from %s", c.name, c.mode, got, evidenceNames[from], c.want, evidenceNames[c.from])
		}
	}
	if l, _ := latency(LatencyAuto, r.cycles, nil); l != 0 {
		t.Errorf("latency without interval is %v", l)
	}
	for i, name := range latencyNames {
		if m, err := ParseLatency(name); err != nil || m != LatencyMode(i) {
			t.Errorf("ParseLatency(%q) = %v, %v", name, m, err)
		}
	}
	if _, err := ParseLatency("x"); err == nil {
		t.Error("ParseLatency accepts x")
	}
}

func TestDensityOfDisturbedIntervals(t *testing.T) {
	r := newRig()
	multiplexed := func(s *session.Sample) { s.Interval.Running = 1_000_000 } // a quarter
	res := run(t, Options{Meta: r.meta}, r.sample(1, 50, multiplexed), r.sample(2, 100))
	want(t, res, map[image.Loc]float64{1: 200, 2: 100})

	// After a loss the interval is four periods long: its sample weighs 1/4 of
	// its 400 calls, and all 600 are shared out 100:200.
	torn := func(s *session.Sample) { s.Interval.Lost, s.Interval.Clock = 3, 40_000_000 }
	res = run(t, Options{Meta: r.meta}, r.sample(1, 400, torn), r.sample(2, 200))
	want(t, res, map[image.Loc]float64{1: 200, 2: 400})
	throttled := func(s *session.Sample) { s.Interval.Throttled, s.Interval.Clock = true, 40_000_000 }
	res = run(t, Options{Meta: r.meta}, r.sample(1, 400, throttled), r.sample(2, 200))
	want(t, res, map[image.Loc]float64{1: 200, 2: 400})
	if len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "1 samples follow throttling") {
		t.Errorf("warnings %q", res.Warnings)
	}

	// Without a count: the mean density, 300 calls in 20M cycles, for 10M.
	for name, lose := range map[string]func(*session.Sample){
		"no interval":     func(s *session.Sample) { s.Interval = nil },
		"not read":        func(s *session.Sample) { s.Interval.Counts = s.Interval.Counts[:1] },
		"backwards":       func(s *session.Sample) { s.Interval.Backwards = true },
		"not on the PMU":  func(s *session.Sample) { s.Interval.Running = 0 },
		"no counts known": func(s *session.Sample) { s.Interval.Counts = nil },
	} {
		res = run(t, Options{Meta: r.meta}, r.sample(1, 77, lose), r.sample(2, 200), r.sample(3, 100))
		want(t, res, map[image.Loc]float64{1: 150, 2: 200, 3: 100})
		if len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "mean density") {
			t.Errorf("%s: warnings %q", name, res.Warnings)
		}
	}
	// Nothing counted at all: every sample is one call, and that is said.
	none := func(s *session.Sample) { s.Interval = nil }
	res = run(t, Options{Meta: r.meta}, r.sample(1, 0, none), r.sample(1, 0, none), r.sample(2, 0, none))
	want(t, res, map[image.Loc]float64{1: 2, 2: 1})
	if len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "'{A,B}:S'") {
		t.Errorf("warnings %q", res.Warnings)
	}
}

// N samples of one tick share its weight.
func TestDensitySharesATick(t *testing.T) {
	r := newRig()
	first, second, third := r.sample(1, 90), r.sample(2, 0), r.sample(1, 0)
	second.Time, third.Time = first.Time, first.Time
	other := r.sample(3, 10)
	want(t, run(t, Options{Meta: r.meta}, first, second, third, other), map[image.Loc]float64{1: 60, 2: 30, 3: 10})
	// Another thread's sample at the same time is another tick.
	second.Thread = &session.Thread{TID: 12}
	want(t, run(t, Options{Meta: r.meta}, first, second), map[image.Loc]float64{1: 90, 2: 0})
}

func TestDensityMergeAndPurity(t *testing.T) {
	r := newRig()
	var samples []*session.Sample
	for i := range 60 {
		s := r.sample(image.Loc(i%7), uint64(i*i), overshoot(uint64(i*100)))
		if i%11 == 0 {
			s.Interval = nil
		}
		samples = append(samples, s)
	}
	part := func(a, b int) Estimator {
		e, err := New("density", Options{Meta: r.meta})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range samples[a:b] {
			e.Add(s)
		}
		return e
	}
	whole := calls(part(0, 60).Result())
	left := part(0, 20)
	left.Result() // changes nothing
	for _, e := range []Estimator{part(20, 45), part(45, 60)} {
		if err := left.Merge(e); err != nil {
			t.Fatal(err)
		}
	}
	right := part(20, 45)
	right.Merge(part(45, 60))
	ab := part(0, 20)
	ab.Merge(right)
	want(t, left.Result(), whole)
	want(t, ab.Result(), whole)
	want(t, ab.Result(), whole)
	if err := ab.Merge(newNone(Options{})); err == nil {
		t.Error("merging method none into density gives no error")
	}
}

func TestDensityNeedsACounter(t *testing.T) {
	r := newRig()
	r.meta.Events = r.meta.Events[:1]
	if _, err := New("density", Options{Meta: r.meta}); err == nil || !strings.Contains(err.Error(), "no counter of calls") {
		t.Errorf("error %v, want one about the counter", err)
	}
	if _, err := New("nonsense", Options{}); err == nil || !strings.Contains(err.Error(), "none, density") {
		t.Errorf("error %v, want one that lists the methods", err)
	}
	minus := -1.0
	r = newRig()
	if _, err := New("density", Options{Meta: r.meta, Alpha: &minus}); err == nil {
		t.Error("negative alpha is accepted")
	}
}

func BenchmarkDensityAdd(b *testing.B) {
	r := newRig()
	s := r.sample(1, 1000, overshoot(700))
	e, _ := New("density", Options{Meta: r.meta})
	b.ReportAllocs()
	for b.Loop() {
		s.Time++
		e.Add(s)
	}
	if e.Result().Stacks.Total() == (graph.Values{}) {
		b.Fatal("nothing added")
	}
}
