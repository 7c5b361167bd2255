package correct

import (
	"fmt"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/session"
)

// cbs is counter-based sampling, taken afterwards from branch stacks.
//
// Assumes: a few calls around a tick, some calls apart, are as good as calls
// chosen at random.
// Formula: of each stack's calls the i'th, i+stride'th, ... newest count one
// each, samples of them if there are as many; i goes round 1..stride.
// Source: Arnold and Grove, CGO 2005, section 3.2 and Figure 3
// (SAMPLES_PER_TIMER_INTERRUPT, STRIDE; the first of a burst by round-robin).
// There the burst follows the tick; a branch stack shows the calls before it.
// Unit: calls seen.
// Wrong: bursts are taken at equal times, so phases with fewer calls per time
// count too much; and within a phase a burst begins where the program is slow,
// which wears off with the length of the burst.
type cbs struct {
	selection
	samples, stride int
	next            int // first call of the next burst
	mode            branchMode
	rec             recordReader
	sums            edgeSums
	bursts, short   int64
	opt             Options
}

// Defaults of CBSSamples and CBSStride: of what fits into 32 records, what
// Arnold and Grove's Table 2 is best at for the overhead it costs.
const (
	defaultSamples = 8
	defaultStride  = 3
)

func newCBS(opt Options) (*cbs, error) {
	ev, err := branchEvent(opt)
	if err != nil {
		return nil, fmt.Errorf("method cbs: %w", err)
	}
	if ev != nil && opt.Event == "" {
		opt.Event = ev.Name
	}
	e := &cbs{
		selection: newSelection(opt, nil), samples: opt.CBSSamples, stride: opt.CBSStride,
		rec: newRecordReader(opt), opt: opt,
	}
	if e.samples == 0 {
		e.samples = defaultSamples
	}
	if e.stride == 0 {
		e.stride = defaultStride
	}
	if e.samples < 1 || e.stride < 1 {
		return nil, fmt.Errorf("method cbs: %d samples, stride %d: must be at least 1", e.samples, e.stride)
	}
	return e, nil
}

func (e *cbs) Add(s *session.Sample) {
	switch e.take(s) {
	case leave:
		return
	case restart:
		e.sums, e.bursts, e.short, e.next = edgeSums{}, 0, 0, 0
	}
	e.add(s, 0)
	e.mode = modeOf(s.Event)
	e.rec.read(s, e.mode)
	e.sums.grow(uint32(max(e.rec.types.len(), 1) - 1))
	skip, taken := e.next, 0
	e.next = (e.next + 1) % e.stride
	for _, id := range e.rec.ids {
		if !e.rec.isEdge(id) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		even := e.bursts%2 == 0
		e.sums.add(id, 0, 1, 1, even, false)
		e.sums.cell++
		skip = e.stride - 1
		if taken++; taken == e.samples {
			break
		}
	}
	if taken < e.samples {
		e.short++
	}
	if e.bursts++; e.bursts%cellSamples == 0 {
		e.sums.endCell()
	}
	if len(e.sums.cells) >= blockSamples {
		e.sums.endBlock()
		e.sums.begin(e.rec.types.len())
	}
}

// finished returns the sums with the open cells in them.
func (e *cbs) finished() *edgeSums {
	c := e.sums.clone()
	c.cells = append(c.cells, e.sums.cells...)
	c.endCell()
	c.endBlock()
	return &c
}

func (e *cbs) Merge(o Estimator) error {
	x, ok := o.(*cbs)
	if !ok || x.samples != e.samples || x.stride != e.stride {
		return fmt.Errorf("cannot merge method %T into cbs(%d,%d)", o, e.samples, e.stride)
	}
	switch e.merge(&x.selection) {
	case leave:
		return nil
	case restart:
		e.sums, e.bursts, e.short, e.next = edgeSums{}, 0, 0, 0
	}
	e.stacks.Merge(x.stacks)
	e.sums.merge(x.finished(), e.rec.adopt(&x.rec))
	e.bursts += x.bursts
	e.short += x.short
	return nil
}

func (e *cbs) Result() *Result {
	r := e.result("cbs")
	sums := e.finished()
	var made *graph.DCG
	r.DCG = func(res graph.Resolver) *graph.DCG {
		if made == nil {
			made = sums.dcg(&e.rec, stackTargets(res, e.stacks, &e.rec, sums), res)
		}
		return made
	}
	if e.opt.Store != nil {
		r.Stacks, _ = spread(e.stacks, r.DCG(e.opt.Store), e.opt.Store)
	}
	sums.uncertainty(r)
	r.Summary = fmt.Sprintf("cbs: bursts of %d calls, stride %d, from %d samples of %s", e.samples, e.stride, r.Used, eventName(r.Event))
	if e.short > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d of %d bursts are shorter: branch stacks have too few calls", e.short, e.bursts))
	}
	return r
}
