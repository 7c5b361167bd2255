package correct

import (
	"errors"
	"fmt"
	"math"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// auto is the best method for what the recording has:
//
//  1. samples of an event that counts calls, if they show which call it was
//     (a branch stack of calls, or a callchain): calls;
//  2. branch stacks of calls: lbr;
//  3. callchains and the code: flow (see flowInAuto);
//  4. a call counter: density;
//  5. none.
//
// Assumes: what the methods assume. Which is best where was measured on the
// lab's tuning programs.
// Formula: where several methods speak of one edge, combine joins them.
// Unit: that of the method.
// Wrong: where the method chosen is; Summary says which it was.
type auto struct {
	parts []Estimator
	why   string // what is missing for more
	store graph.Resolver
}

func newAuto(opt Options) (*auto, error) {
	a := &auto{}
	if opt.Store != nil {
		a.store = opt.Store
	}
	var events []*perfdata.Event
	if opt.Meta != nil {
		events = opt.Meta.Events
	}
	for _, try := range []func() (Estimator, error){
		func() (Estimator, error) {
			ev, _, err := callSampler(opt)
			if err == nil && ev.SampleType&(perfdata.FieldBranchStack|perfdata.FieldCallchain|perfdata.FieldStackUser) == 0 {
				err = errNoCallSamples
			}
			if err != nil {
				return nil, err
			}
			return newCalls(opt)
		},
		func() (Estimator, error) { return newLBR(opt) },
		func() (Estimator, error) {
			if !flowInAuto || !anyChains(events) {
				return nil, errors.New("no callchains; perf record -g records them")
			}
			return newFlow(opt)
		},
		func() (Estimator, error) { return newDensity(opt) },
	} {
		if e, err := try(); err == nil {
			a.parts = append(a.parts, e)
			return a, nil
		}
	}
	a.parts = []Estimator{newNone(opt)}
	a.why = "; to correct more, record callchains (perf record -g), better branch stacks (-j any_call,u) and a counter of calls in the group of the event (-e '{cycles,br_inst_retired.near_call}:S')"
	return a, nil
}

// flowInAuto is whether auto chooses flow: not before it has proved itself.
const flowInAuto = false

func anyChains(events []*perfdata.Event) bool {
	for _, e := range events {
		if e.SampleType&(perfdata.FieldCallchain|perfdata.FieldStackUser) != 0 {
			return true
		}
	}
	return false
}

func (a *auto) Add(s *session.Sample) {
	for _, p := range a.parts {
		p.Add(s)
	}
}

// Merge joins recordings with the same evidence.
func (a *auto) Merge(o Estimator) error {
	x, ok := o.(*auto)
	if !ok || len(x.parts) != len(a.parts) {
		return fmt.Errorf("cannot merge method %T into auto", o)
	}
	for i := range a.parts {
		if err := a.parts[i].Merge(x.parts[i]); err != nil {
			return fmt.Errorf("the recordings have different evidence: %w", err)
		}
	}
	return nil
}

func (a *auto) Result() *Result {
	r := a.parts[0].Result()
	for _, p := range a.parts[1:] {
		x := p.Result()
		one, other := r.DCG, x.DCG
		r.DCG = func(res graph.Resolver) *graph.DCG { return combine(one(res), other(res)) }
		r.Method += "+" + x.Method
		r.Summary += "; " + x.Summary
		r.Warnings = append(r.Warnings, x.Warnings...)
	}
	if len(a.parts) > 1 && a.store != nil {
		r.Stacks, _ = spread(r.Stacks, r.DCG(a.store), a.store)
	}
	r.Summary += " (chosen by auto" + a.why + ")"
	return r
}

// combine joins two estimates of one call graph by inverse variance, after
// bringing the second to the total of the first. An edge that only one has
// seen is its estimate times the share of the weight it has on average, as the
// other says zero with an error it does not know.
func combine(a, b *graph.DCG) *graph.DCG {
	scale := 1.0
	if tb := total(b); tb > 0 {
		scale = total(a) / tb
	}
	share := meanShare(a, b, scale)
	g := graph.NewDCG()
	g.Dropped = a.Dropped
	for e, v := range a.All() {
		w := b.Get(e)
		if w.Samples == 0 && w.Calls == 0 {
			v.Calls *= share
			v.Stderr *= share
			g.Add(e, v)
			continue
		}
		w.Calls *= scale
		w.Stderr *= scale
		g.Add(e, inverseVariance(v, w))
	}
	for e, w := range b.All() {
		if v := a.Get(e); v.Samples == 0 && v.Calls == 0 {
			w.Calls *= scale * (1 - share)
			w.Stderr *= scale * (1 - share)
			g.Add(e, w)
		}
	}
	return g
}

func total(g *graph.DCG) (sum float64) {
	for _, v := range g.All() {
		sum += v.Calls
	}
	return sum
}

// weight is that of the first of two estimates with errors s and t.
func weight(s, t float64) float64 {
	s, t = s*s, t*t
	switch {
	case math.IsNaN(s) && math.IsNaN(t), s == 0 && t == 0:
		return 0.5
	case math.IsNaN(s):
		return 0
	case math.IsNaN(t):
		return 1
	}
	return t / (s + t)
}

func inverseVariance(v, w graph.EdgeValues) graph.EdgeValues {
	p := weight(v.Stderr, w.Stderr)
	x := graph.EdgeValues{Samples: max(v.Samples, w.Samples), Calls: p*v.Calls + (1-p)*w.Calls}
	switch p {
	case 0:
		x.Stderr = w.Stderr
	case 1:
		x.Stderr = v.Stderr
	default:
		x.Stderr = math.Hypot(p*v.Stderr, (1-p)*w.Stderr)
	}
	return x
}

// meanShare is the first's weight on average over the calls of edges both have.
func meanShare(a, b *graph.DCG, scale float64) float64 {
	sum, n := 0.0, 0.0
	for e, v := range a.All() {
		if w := b.Get(e); w.Samples > 0 || w.Calls > 0 {
			sum += v.Calls * weight(v.Stderr, scale*w.Stderr)
			n += v.Calls
		}
	}
	if n == 0 {
		return 0.5
	}
	return sum / n
}
