package correct

import (
	"fmt"
	"strings"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// Estimator estimates calls from samples. It is a combiner: Add streams,
// Merge joins what was seen apart, Result changes nothing and may be called
// at any time. Estimators that are merged share one image.Store.
type Estimator interface {
	Add(*session.Sample)
	// Merge adds what o has seen, which stays as it is; an error if o is of
	// another method.
	Merge(o Estimator) error
	Result() *Result
}

// Options choose and tune a method. The zero value is the default.
type Options struct {
	// Meta describes the recording. In a pipe it is complete when the first
	// sample has been read, and New must not be called before.
	Meta *perfdata.Meta
	// Event is the name of the event whose samples make the profile; "" takes
	// the first that has samples (see selection.better).
	Event string
	// LabelPID and LabelTID keep processes and threads apart.
	LabelPID, LabelTID bool

	// Store has the code of the program; methods that follow its control flow
	// need it.
	Store *image.Store

	// Flow says how much of the method flow is used.
	Flow FlowModel

	// Of method density:

	// CallEvent names the counter of calls (see CallEvent); "" recognises it.
	CallEvent string
	// Lambda is the sampling period in the event's own unit, as Lee uses it; 0
	// takes the recorded one.
	Lambda float64
	// Alpha is the weight of latency against Lambda; nil means 1000.
	Alpha   *float64
	Latency LatencyMode

	// Of method cbs: calls taken of each branch stack, and how many apart; 0
	// is the default.
	CBSSamples, CBSStride int
}

// Methods lists the names New knows.
func Methods() []string {
	return []string{"auto", "none", "density", "calls", "lbr", "lee", "cbs", "flow"}
}

// New returns an estimator of a method. An error says what the recording
// lacks for it.
func New(method string, opt Options) (Estimator, error) {
	switch method {
	case "auto":
		return newAuto(opt)
	case "none":
		return newNone(opt), nil
	case "density":
		return newDensity(opt)
	case "calls":
		return newCalls(opt)
	case "lbr":
		return newLBR(opt)
	case "lee":
		return newLee(opt)
	case "cbs":
		return newCBS(opt)
	case "flow":
		return newFlow(opt)
	}
	return nil, fmt.Errorf("unknown method %q: have %s", method, strings.Join(Methods(), ", "))
}

// Result is what an estimator found out.
type Result struct {
	Method string
	// Event is the event whose samples were used; nil if there was none.
	Event *perfdata.Event
	// Stacks are the samples' stacks: Samples and Event are as recorded, Calls
	// the estimated calls into each leaf. They may be the estimator's own, and
	// then show what is added to it later.
	Stacks *graph.Stacks
	// DCG makes the dynamic call graph; it may take a while.
	DCG func(graph.Resolver) *graph.DCG

	// Overlap is the overlap with the truth, in percent, that is expected from
	// how estimates scatter; EffectiveSamples is how many independent
	// observations of calls would scatter as much. 0: not known. Neither knows
	// of bias.
	Overlap, EffectiveSamples float64

	Used     int64  // samples in Stacks
	Period   uint64 // mean period of these, in the event's unit
	Unused   []Unused
	Warnings []string
	// Summary says in one line what was done with what evidence.
	Summary string
}

// Unused counts samples that are not in Stacks.
type Unused struct {
	Event   string // name
	Samples int64
}
