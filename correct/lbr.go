package correct

import (
	"errors"
	"fmt"
	"slices"

	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// lbr takes every call record of a branch stack for an observation of a call.
//
// Assumes: ticks fall at random times; and when the next calls follow depends
// on the latest few branches as it does elsewhere in the recording.
//
// Formula: a tick falls into the gap between two records with probability
// proportional to that gap, so the calls before long gaps are seen too often,
// and the gap the tick fell into is the one the stack does not show. A window
// of m records ending at a call shows the call if the tick falls into any of
// the m gaps after it. A record with q newer ones in its window therefore
// stands for
//
//	x = 1 / (v_q + F_{m-q}(k))
//
// calls per cycle, v_q being the q gaps after it that the stack shows, and
// F_j(k) the mean time of the next j gaps after the records k that are newest
// in the stack (Horvitz-Thompson with the inclusion probability summed over
// the places in the window, which is the balance heuristic of multiple
// importance sampling: Veach and Guibas, SIGGRAPH 1995; for m = 1 it is 1/mean
// next gap, for m = k nearly 1/span of the stack). F is learnt from the inside
// of all stacks, each with its current weight, in two rounds from 1/span: by
// the newest four records, drawn towards the newest three, two, one and none by
// two pseudo-observations each. Stacks are divided into windows of 16 records,
// or of half a stack if that is less.
//
// With a call counter, x is scaled so that the records of each stratum, some
// consecutive samples of a thread, add up to the calls counted (a ratio
// estimator: Cochran, Sampling Techniques, 1977, section 6.11); where the calls
// of an interval are no more than the records of its stack, these are all of
// them and each counts one (see stratum). A stratum has 16 samples, and 256
// calls in their stacks: from 12 to 32 samples it makes no difference above
// 0.1 points, nor did strata that end where the call density changes.
// Without a counter, x times the period of the sample. Without cycle counts x
// is one over the calls in the stack, and with a counter each stack has its own
// interval's calls to share: Lee's weights, as in method lee.
//
// All branches of a stack are records, gaps and contexts; only calls count.
//
// If the samples are of an event that counts calls, ticks fall on calls with
// equal probability and x is one over the calls in the stack.
//
// Source: this project, after Horvitz and Thompson, JASA 47 (1952); Lee 2015 for
// the counter.
// Unit: calls; if the event does not count cycles and there is no call
// counter, calls per unit of the event, meaningful against each other only.
//
// Memory follows the distinct branch records and contexts: samples are kept in
// blocks of 65,536, which is also what the rounds go over; gaps learnt in
// earlier blocks keep counting.
//
// Wrong: where ticks are tied to calls (a sample that waits for a safe point);
// where cycle counts stop at 65,535, which is counted; where processors leave
// records out. Records are a sample of calls only if every call has one, so
// call_stack mode is refused. Calls through a tail jump are not calls.
type lbr struct {
	selection
	opt      Options
	counters []*perfdata.Event
	how      string // the call counter was recognised
	census   bool   // the counter counts what the records are
	name     string // of the method
	weighing weighing

	mode  branchMode
	rec   recordReader
	block block
	ctx   contexts
	sums  edgeSums
	t     lbrTotals
	leafs map[leafRecord]int64 // ips right behind a newest record, where stacks have no callers
}

// lbrTotals are what the samples used add up to.
type lbrTotals struct {
	samples   int64 // with records
	empty     int64 // without
	calls     float64
	counted   int64 // samples with a call count
	uncounted int64
	exact     int64 // samples whose stack showed all calls of the interval
	ofCalls   int64 // samples of an event that counts calls
	strata    int64
}

// weighing is how the records of a stack are weighed.
type weighing uint8

const (
	weighGaps  weighing = iota // by the time until the next calls
	weighStack                 // the stack has one weight, its records share it
	weighCalls                 // likewise, and the period is the stack's calls
)

func newLBR(opt Options) (*lbr, error) { return newBranches(opt, "lbr", weighGaps) }

func newBranches(opt Options, name string, how weighing) (*lbr, error) {
	ev, err := branchEvent(opt)
	if err != nil {
		return nil, fmt.Errorf("method %s: %w", name, err)
	}
	if ev != nil && opt.Event == "" {
		opt.Event = ev.Name
	}
	var events []*perfdata.Event
	if opt.Meta != nil {
		events = opt.Meta.Events
	}
	counters, counter, err := callEvents(events, opt.Meta, opt.CallEvent)
	if err != nil && !errors.Is(err, ErrNoCallEvent) {
		return nil, err
	}
	e := &lbr{
		selection: newSelection(opt, counters), opt: opt, counters: counters, how: counter,
		name: name, weighing: how, rec: newRecordReader(opt),
	}
	e.census = len(counters) > 0 && how == weighGaps
	for _, c := range counters {
		if opt.Meta != nil && isProbe(c, opt.Meta) {
			e.census = false // some functions' calls only
		}
	}
	e.reset()
	return e, nil
}

func (e *lbr) reset() {
	e.block, e.sums, e.t = block{}, edgeSums{}, lbrTotals{}
	e.leafs = map[leafRecord]int64{}
}

func (e *lbr) Add(s *session.Sample) {
	switch e.take(s) {
	case leave:
		return
	case restart:
		e.reset()
	}
	if e.mode == noBranches || len(s.Branches) > 0 {
		e.mode = modeOf(s.Event)
	}
	i := e.add(s, 0)
	e.rec.read(s, e.mode)
	if len(e.rec.ids) == 0 || e.mode == callStack {
		e.t.empty++
		return
	}
	e.t.samples++
	e.noteLeaf(s)
	calls, ok := countedCalls(s.Interval, e.counters)
	k := stackSample{stack: uint32(i), calls: -1, clock: float32(s.Period)}
	if ok {
		k.calls = float32(calls)
	}
	if e.ofCalls(s.Event) {
		k.calls = float32(s.Period)
		e.t.ofCalls++
	}
	e.block.add(s.Thread, k, e.rec.ids, e.rec.gaps)
	if e.block.full() {
		e.finish()
	}
}

// ofCalls reports whether the samples of an event are themselves calls.
func (e *lbr) ofCalls(ev *perfdata.Event) bool {
	return slices.ContainsFunc(e.counters, func(c *perfdata.Event) bool { return sameEvent(c, ev) })
}

// finish turns the block into sums.
func (e *lbr) finish() {
	if len(e.block.samples) == 0 {
		return
	}
	w := weigher{lbr: e}
	w.run()
	e.block.clear()
}

// finished returns an estimator without open block that has the same sums;
// the receiver stays as it is.
func (e *lbr) finished() *lbr {
	if len(e.block.samples) == 0 {
		return e
	}
	c := *e
	c.sums = e.sums.clone()
	c.ctx = e.ctx.clone()
	c.block = e.block.view()
	w := weigher{lbr: &c}
	w.run()
	c.block = block{}
	return &c
}

// Merge adds the other's sums. What was learnt of gaps stays with either part.
func (e *lbr) Merge(o Estimator) error {
	x, ok := o.(*lbr)
	if !ok || x.name != e.name {
		return fmt.Errorf("cannot merge method %T into %s", o, e.name)
	}
	x = x.finished()
	switch e.merge(&x.selection) {
	case leave:
		return nil
	case restart:
		e.reset()
	}
	e.stacks.Merge(x.stacks)
	if e.mode == noBranches {
		e.mode = x.mode
	}
	e.sums.merge(&x.sums, e.rec.adopt(&x.rec))
	e.t.add(&x.t)
	for k, n := range x.leafs {
		e.leafs[k] += n
	}
	return nil
}

func (t *lbrTotals) add(o *lbrTotals) {
	t.samples += o.samples
	t.empty += o.empty
	t.calls += o.calls
	t.counted += o.counted
	t.uncounted += o.uncounted
	t.exact += o.exact
	t.ofCalls += o.ofCalls
	t.strata += o.strata
}
