package correct

import (
	"fmt"

	"github.com/perfcorrect/perfcorrect/session"
)

// none takes each sample as one call: what every profiler ships that reads
// callers off stacks.
//
// Assumes: every call is equally likely to be sampled.
// Formula: calls(e) = number of samples whose leaf edge is e.
// Source: timer-based sampling as in Arnold and Grove, "Collecting and
// Exploiting High-Accuracy Call Graph Profiles in Virtual Machines", CGO 2005,
// section 2.
// Unit: samples.
// Wrong: whenever callees take different time, for a sample is proportional to
// calls times the time in the callee per call. No number of samples helps.
type none struct{ selection }

func newNone(opt Options) *none { return &none{newSelection(opt, nil)} }

func (e *none) Add(s *session.Sample) {
	if e.take(s) != leave {
		e.add(s, 1)
	}
}

func (e *none) Merge(o Estimator) error {
	x, ok := o.(*none)
	if !ok {
		return fmt.Errorf("cannot merge method %T into none", o)
	}
	if e.merge(&x.selection) != leave {
		e.stacks.Merge(x.stacks)
	}
	return nil
}

func (e *none) Result() *Result {
	r := e.result("none")
	r.Summary = fmt.Sprintf("none: %d samples of %s, each taken as one call", r.Used, eventName(r.Event))
	return r
}
