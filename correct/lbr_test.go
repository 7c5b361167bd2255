package correct

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// branchRig is a rig whose cycles take branch stacks.
func branchRig(mode perfdata.BranchSample) *rig {
	r := newRig()
	r.cycles.SampleType = perfdata.FieldBranchStack
	r.cycles.BranchSampleType = mode
	return r
}

// call is a record of a call to function f, cycles after the one before.
func callTo(f image.Loc, cycles int) session.Branch {
	return session.Branch{From: 1000 + f, To: 2000 + f, Flags: perfdata.BranchFlags(cycles<<4 | int(perfdata.KindCall)<<20)}
}

func kindOf(b session.Branch, k perfdata.BranchKind) session.Branch {
	b.Flags = b.Flags&^(0xf<<20) | perfdata.BranchFlags(k)<<20
	return b
}

// stacked is a tick after n calls with a branch stack, newest first.
func (r *rig) stacked(n uint64, b ...session.Branch) *session.Sample {
	return r.sample(1, n, func(s *session.Sample) { s.Branches = b })
}

func estimates(t *testing.T, method string, opt Options, samples ...*session.Sample) *lbr {
	t.Helper()
	e, err := New(method, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		e.Add(s)
	}
	return e.(*lbr)
}

// byCallee returns the estimated calls by function.
func (e *lbr) byCallee() map[image.Loc]float64 {
	x := e.finished()
	m := map[image.Loc]float64{}
	for i := range x.sums.edges {
		if v := x.sums.edges[i].calls; v != 0 {
			_, to := x.rec.types.at(uint32(i))
			m[image.Loc(to)-2000] += v
		}
	}
	return m
}

func wantCalls(t *testing.T, got, want map[image.Loc]float64) {
	t.Helper()
	for f, w := range want {
		if math.Abs(got[f]-w) > 1e-4*(1+w) {
			t.Errorf("%v calls of %d, want %v", got[f], f, w)
		}
	}
	for f, g := range got {
		if _, ok := want[f]; !ok {
			t.Errorf("%v calls of %d, want none", g, f)
		}
	}
}

// Two records a stack and no context to learn from: one window of one record,
// whose weight is 1 over the mean gap. Counted calls are shared by weight.
func TestLBRByHand(t *testing.T) {
	r := branchRig(perfdata.BranchAnyCall)
	// Windows are one record long, as half of the stack. No stack shows what
	// follows 1 or 3, so both have the mean gap and weigh the same.
	a := r.stacked(400, callTo(1, 100), callTo(2, 50))
	b := r.stacked(200, callTo(3, 300), callTo(4, 50))
	e := estimates(t, "lbr", Options{Meta: r.meta}, a, b)
	wantCalls(t, e.byCallee(), map[image.Loc]float64{1: 150, 2: 150, 3: 150, 4: 150})
}

// A call that is followed by a long gap where it is newest weighs less.
func TestLBRNextGap(t *testing.T) {
	r := branchRig(perfdata.BranchAnyCall)
	var samples []*session.Sample
	// Inside the stacks 1 is always followed by a gap of 900 and 2 by one of
	// 100, so ticks find 1 newest nine times out of ten.
	one := []session.Branch{callTo(1, 100), callTo(2, 900), callTo(1, 100), callTo(2, 900)}
	two := []session.Branch{callTo(2, 900), callTo(1, 100), callTo(2, 900), callTo(1, 100)}
	for i := range 2000 {
		b := one
		if i%10 == 9 {
			b = two
		}
		samples = append(samples, r.stacked(20_000, b...))
	}
	e := estimates(t, "lbr", Options{Meta: r.meta}, samples...)
	got := e.byCallee()
	if p := got[1] / (got[1] + got[2]); math.Abs(p-0.5) > 0.01 {
		t.Errorf("share of 1 is %.3f, want half", p)
	}
	if sum := got[1] + got[2]; math.Abs(sum-2000*20_000) > 40 {
		t.Errorf("%.0f calls in all, counted were %d", sum, 2000*20_000)
	}
}

// An interval with fewer calls than records is known exactly.
func TestLBRCensus(t *testing.T) {
	r := branchRig(perfdata.BranchAnyCall)
	a := r.stacked(3, callTo(1, 10), callTo(2, 10), callTo(2, 10), callTo(3, 10), callTo(4, 10))
	b := r.stacked(2, callTo(5, 10), callTo(5, 10), callTo(1, 10), callTo(2, 10), callTo(2, 10))
	e := estimates(t, "lbr", Options{Meta: r.meta}, a, b)
	wantCalls(t, e.byCallee(), map[image.Loc]float64{1: 1, 2: 2, 5: 2})
	if n := e.finished().t.exact; n != 2 {
		t.Errorf("%d intervals seen whole, want 2", n)
	}
}

// Lee's weights: each stack's records share its calls, without a counter one.
func TestLeeByHand(t *testing.T) {
	r := branchRig(perfdata.BranchAnyCall)
	a := r.stacked(400, callTo(1, 1), callTo(1, 1), callTo(1, 1), callTo(2, 5))
	b := r.stacked(10, callTo(2, 1), callTo(3, 1))
	wantCalls(t, estimates(t, "lee", Options{Meta: r.meta}, a, b).byCallee(),
		map[image.Loc]float64{1: 300, 2: 105, 3: 5})
	meta := &perfdata.Meta{Events: []*perfdata.Event{r.cycles}, Arch: "x86_64"}
	wantCalls(t, estimates(t, "lee", Options{Meta: meta}, a, b).byCallee(),
		map[image.Loc]float64{1: 0.75, 2: 0.75, 3: 0.5})
}

// Without cycle counts method lbr has nothing better.
func TestLBRWithoutCycles(t *testing.T) {
	r := branchRig(perfdata.BranchAnyCall | perfdata.BranchNoCycles)
	a := r.stacked(400, callTo(1, 0), callTo(1, 0), callTo(2, 0), callTo(2, 0))
	e := estimates(t, "lbr", Options{Meta: r.meta}, a)
	wantCalls(t, e.byCallee(), map[image.Loc]float64{1: 200, 2: 200})
	if s := e.Result().Summary; !strings.Contains(s, "no cycle counts") {
		t.Errorf("summary %q does not say that cycle counts are missing", s)
	}
}

// Records that are no calls are left out, counted, and their time is not lost.
func TestRecordsRejected(t *testing.T) {
	r := branchRig(perfdata.BranchAny)
	jump := kindOf(callTo(7, 20), perfdata.KindJump)
	sys := kindOf(callTo(8, 30), perfdata.KindSyscall)
	empty := session.Branch{Flags: 40 << 4}
	e := estimates(t, "lbr", Options{Meta: r.meta})
	s := r.stacked(10, callTo(1, 10), sys, jump, empty, callTo(2, 50))
	s.Raw = &perfdata.Sample{Branches: []perfdata.Branch{{From: 1, To: 1}, {From: 1, To: 1}, {From: 1, To: 1}, {}, {From: 1, To: 1}}}
	e.rec.read(s, allBranches)
	wantGaps := []float32{10 + 30, 20 + 40, 50}
	for i, w := range wantGaps {
		if i >= len(e.rec.gaps) || e.rec.gaps[i] != w {
			t.Fatalf("gaps %v, want %v", e.rec.gaps, wantGaps)
		}
	}
	if e.rec.rejects.kinds[kernelEntry] != 1 || e.rec.rejects.empty != 1 || e.rec.records != 3 {
		t.Errorf("rejects %+v of %d records", e.rec.rejects, e.rec.records)
	}
	if e.rec.isEdge(e.rec.ids[1]) || !e.rec.isEdge(e.rec.ids[0]) {
		t.Error("a jump is a call, or a call is none")
	}
	// Kernel records of an event that excludes the kernel, and entries into it.
	k := r.stacked(10, callTo(3, 1), callTo(4, 1), callTo(5, 1))
	k.Event.Flags |= perfdata.FlagExcludeKernel
	k.Raw = &perfdata.Sample{Branches: []perfdata.Branch{{From: 1 << 63, To: 1 << 63}, {From: 1, To: 1 << 63}, {From: 1, To: 2}}}
	e.rec.read(k, allBranches)
	if len(e.rec.ids) != 1 || e.rec.rejects.kinds[outsideMode] != 1 || e.rec.rejects.kinds[kernelEntry] != 2 {
		t.Errorf("%d records kept, rejects %+v", len(e.rec.ids), e.rec.rejects)
	}
}

// A processor that writes the newest record twice is found out; a program
// whose records repeat anywhere is not accused.
func TestRepeatedNewest(t *testing.T) {
	for _, c := range []struct {
		name string
		at   func(i int) int // of the repeated record
		want bool
	}{
		{"always the newest", func(int) int { return 0 }, true},
		{"anywhere", func(i int) int { return i % 2 }, false},
	} {
		r := branchRig(perfdata.BranchAnyCall)
		e := estimates(t, "lbr", Options{Meta: r.meta})
		for i := range 100 {
			b := []session.Branch{callTo(1, 3), callTo(2, 4), callTo(3, 5), callTo(4, 6), callTo(5, 7)}
			b[c.at(i)+1] = b[c.at(i)]
			e.rec.read(r.stacked(10, b...), onlyCalls)
		}
		if got := e.rec.rejects.repeated > 0; got != c.want {
			t.Errorf("%s: %d left out", c.name, e.rec.rejects.repeated)
		}
	}
}

func TestBranchModes(t *testing.T) {
	for mode, want := range map[perfdata.BranchSample]string{
		perfdata.BranchAnyCall | perfdata.BranchUser:  "",
		perfdata.BranchAny:                            "",
		perfdata.BranchAnyReturn:                      "",
		perfdata.BranchCallStack | perfdata.BranchAny: "call stacks",
		perfdata.BranchCond:                           "no calls",
	} {
		r := branchRig(mode)
		_, err := New("lbr", Options{Meta: r.meta})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("mode %#x: error %v, want %q", mode, err, want)
		}
	}
	if _, err := New("lbr", Options{Meta: newRig().meta}); err == nil {
		t.Error("no branch stacks, and no error")
	}
}

// program is a made-up stream of calls with phases: each phase has functions of
// its own, with call chains, and lengths of calls that vary.
type program struct {
	rng   *rand.Rand
	truth map[image.Loc]float64
}

// record runs the program and takes a sample each period cycles.
func (p *program) record(r *rig, calls, phases int, period float64) (samples []*session.Sample) {
	p.truth = map[image.Loc]float64{}
	var ring []session.Branch
	now, next, counted := 0.0, period*p.rng.Float64(), uint64(0)
	state := image.Loc(0)
	for i := range calls {
		phase := image.Loc(i * phases / calls % 3)
		// A call is followed by one of two others; its length goes with both.
		step := image.Loc(1)
		if p.rng.Float64() < 0.3 {
			step = 3
		}
		state = (state + step) % 7
		f := phase*10 + state
		mean := 4 * math.Pow(2.2, float64((state*5+step)%7)) * (1 + float64(phase)/2)
		gap := math.Round(1 + mean*(0.2+0.8*p.rng.ExpFloat64()))
		// gap follows the call; the record of the next one will show it.
		b := callTo(f, 0)
		ring = append(ring, b)
		p.truth[f]++
		counted++
		for ; next < now+gap; next += period * (0.9 + 0.2*p.rng.Float64()) {
			s := r.stacked(counted, newestFirst(ring)...)
			samples = append(samples, s)
			counted = 0
		}
		now += gap
		ring[len(ring)-1].Flags |= perfdata.BranchFlags(min(gap, maxCycles)) << 40 // for newestFirst
		if len(ring) > 64 {
			ring = append(ring[:0], ring[len(ring)-33:]...)
		}
	}
	return samples
}

// newestFirst is what the branch stack shows: with each call the gap before it.
func newestFirst(ring []session.Branch) []session.Branch {
	var out []session.Branch
	for i := len(ring) - 1; i > 0 && len(out) < 32; i-- {
		b := ring[i]
		b.Flags = b.Flags&(1<<40-1) | ring[i-1].Flags>>40<<4
		out = append(out, b)
	}
	return out
}

func overlapOf(a, b map[image.Loc]float64) float64 {
	ta, tb, sum := 0.0, 0.0, 0.0
	for _, v := range a {
		ta += v
	}
	for _, v := range b {
		tb += v
	}
	for k, v := range a {
		sum += min(v/ta, b[k]/tb)
	}
	return 100 * sum
}

// A stream with known truth: lbr comes closer than Lee's weights, which come
// closer than counting records; the error it expects is the one it has.
func TestLBRKnownTruth(t *testing.T) {
	p := program{rng: rand.New(rand.NewPCG(1, 2))}
	r := branchRig(perfdata.BranchAnyCall)
	samples := p.record(r, 600_000, 30, 40_000)
	meta := &perfdata.Meta{Events: []*perfdata.Event{r.cycles}, Arch: "x86_64"}
	score := func(method string, m *perfdata.Meta) (float64, *lbr) {
		e := estimates(t, method, Options{Meta: m}, samples...)
		return overlapOf(p.truth, e.byCallee()), e
	}
	raw, _ := score("lee", meta)
	lee, _ := score("lee", r.meta)
	best, e := score("lbr", r.meta)
	uncalibrated, _ := score("lbr", meta)
	t.Logf("%d samples: raw %.1f, lee %.1f, lbr %.1f, without counter %.1f", len(samples), raw, lee, best, uncalibrated)
	if !(raw < lee && lee < best) || best < 98.5 || uncalibrated < 95 {
		t.Errorf("overlap: raw %.1f, lee %.1f, lbr %.1f, without counter %.1f", raw, lee, best, uncalibrated)
	}
	res := e.Result()
	if math.Abs(res.Overlap-best) > 2 {
		t.Errorf("expected overlap %.1f, true %.1f", res.Overlap, best)
	}
}

// What is merged is what was added apart.
func TestLBRMerge(t *testing.T) {
	p := program{rng: rand.New(rand.NewPCG(3, 4))}
	r := branchRig(perfdata.BranchAnyCall)
	samples := p.record(r, 200_000, 10, 40_000)
	half := len(samples) / 2
	a := estimates(t, "lbr", Options{Meta: r.meta}, samples[:half]...)
	b := estimates(t, "lbr", Options{Meta: r.meta}, samples[half:]...)
	want := map[image.Loc]float64{}
	for _, e := range []*lbr{a, b} {
		for f, v := range e.byCallee() {
			want[f] += v
		}
	}
	before := b.byCallee()
	if err := a.Merge(b); err != nil {
		t.Fatal(err)
	}
	wantCalls(t, a.byCallee(), want)
	wantCalls(t, b.byCallee(), before)
	wantCalls(t, a.byCallee(), want) // asking changes nothing
	whole := estimates(t, "lbr", Options{Meta: r.meta}, samples...)
	if o := overlapOf(whole.byCallee(), a.byCallee()); o < 99.5 {
		t.Errorf("merged and whole overlap by %.2f %%", o)
	}
	if u := a.Result().Used; u != int64(len(samples)) {
		t.Errorf("%d samples used, want %d", u, len(samples))
	}
	lee, _ := New("lee", Options{Meta: r.meta})
	if a.Merge(lee) == nil {
		t.Error("merged with another method")
	}
}

// Blocks are worked off as they fill; the result is as good.
func TestLBRBlocks(t *testing.T) {
	p := program{rng: rand.New(rand.NewPCG(5, 6))}
	r := branchRig(perfdata.BranchAnyCall)
	samples := p.record(r, 300_000, 10, 40_000)
	e := estimates(t, "lbr", Options{Meta: r.meta})
	for i, s := range samples {
		e.Add(s)
		if i%1000 == 999 {
			e.finish()
		}
	}
	if o := overlapOf(p.truth, e.byCallee()); o < 98 {
		t.Errorf("overlap %.2f with blocks of 1000 samples", o)
	}
	if n := len(e.block.samples); n >= 1000 {
		t.Errorf("%d samples kept", n)
	}
}

// The standard errors cover the truth as often as they say, or more often: one
// stack of neighbouring calls is a better sample than as many at random where
// calls alternate.
func TestStderrCovers(t *testing.T) {
	in, all := 0, 0
	for seed := range uint64(20) {
		p := program{rng: rand.New(rand.NewPCG(seed, 9))}
		r := branchRig(perfdata.BranchAnyCall)
		samples := p.record(r, 100_000, 6, 40_000)
		e := estimates(t, "lbr", Options{Meta: r.meta}, samples...).finished()
		for i := range e.sums.edges {
			_, to := e.rec.types.at(uint32(i))
			v := &e.sums.edges[i]
			if v.records < 10 {
				continue
			}
			all++
			if math.Abs(v.calls-p.truth[image.Loc(to)-2000]) <= 1.96*v.stderr(e.sums.newestShare()) {
				in++
			}
		}
	}
	if c := 100 * float64(in) / float64(all); c < 93 {
		t.Errorf("95 %% intervals cover the truth in %.1f %% of %d", c, all)
	}
}

func TestCBSByHand(t *testing.T) {
	r := branchRig(perfdata.BranchAnyCall)
	s := r.stacked(100, callTo(1, 1), callTo(2, 1), callTo(3, 1), callTo(4, 1), callTo(5, 1), callTo(6, 1))
	e, err := New("cbs", Options{Meta: r.meta, CBSSamples: 2, CBSStride: 3})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // 1 4, then 2 5, then 3 6
		e.Add(s)
	}
	e.Add(r.stacked(100, callTo(1, 1))) // a short one
	c := e.(*cbs)
	for i := range c.sums.edges {
		_, to := c.rec.types.at(uint32(i))
		want := 1.0
		if to == 2001 {
			want = 2
		}
		if got := c.sums.edges[i].calls; got != want {
			t.Errorf("%v calls of %d, want %v", got, to-2000, want)
		}
	}
	if c.short != 1 {
		t.Errorf("%d short bursts, want 1", c.short)
	}
}

func BenchmarkLBR(b *testing.B) {
	p := program{rng: rand.New(rand.NewPCG(1, 2))}
	r := branchRig(perfdata.BranchAnyCall)
	samples := p.record(r, 200_000, 10, 20_000)
	b.ReportAllocs()
	b.ResetTimer()
	n := 0
	for b.Loop() {
		e, _ := New("lbr", Options{Meta: r.meta})
		for _, s := range samples {
			e.Add(s)
		}
		e.(*lbr).finish()
		n += len(samples)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/sample")
}
