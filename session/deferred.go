package session

import (
	"slices"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// maxDeferred is how many samples wait for their user callchain at most. The
// chain comes when the thread returns to user mode, so a sleeping thread keeps
// its samples waiting.
const maxDeferred = 4096

// deferredQueue holds samples whose kernel part is done, oldest first.
type deferredQueue struct {
	samples []*held
	threads map[*Thread]int // number of samples waiting
}

type held struct {
	Sample
	cookie   uint64
	interval Interval
}

func (q *deferredQueue) waits(th *Thread) bool { return q.threads[th] > 0 }

// hold keeps a copy of a sample until its user callchain comes. If too many
// wait, the oldest goes without.
func (s *Session) hold(out *Sample, yield func(*Sample, error) bool) bool {
	s.stats.DeferredSamples++
	q := &s.deferred
	if len(q.samples) >= maxDeferred && !s.release(0, yield) {
		return false
	}
	h := &held{Sample: *out}
	h.cookie, _ = unwind.DeferredCookie(out.Raw)
	h.Stack = slices.Clone(out.Stack)
	h.Branches = slices.Clone(out.Branches)
	h.Raw = out.Raw.Clone()
	if out.Interval != nil {
		h.interval = *out.Interval
		h.interval.Counts = slices.Clone(out.Interval.Counts)
		h.Interval = &h.interval
	}
	if q.threads == nil {
		q.threads = map[*Thread]int{}
	}
	q.samples = append(q.samples, h)
	q.threads[out.Thread]++
	return true
}

// release hands on sample i of the queue.
func (s *Session) release(i int, yield func(*Sample, error) bool) bool {
	q := &s.deferred
	h := q.samples[i]
	q.samples = slices.Delete(q.samples, i, i+1)
	if q.threads[h.Thread]--; q.threads[h.Thread] == 0 {
		delete(q.threads, h.Thread)
	}
	if h.Outcome == unwind.Deferred {
		s.stats.DeferredMissing++
	}
	return s.emit(&h.Sample, yield)
}

// join appends the user callchain to the samples that wait for it.
func (s *Session) join(r *perfdata.CallchainDeferred, yield func(*Sample, error) bool) bool {
	th := s.threads.byTID[r.TID]
	if th == nil || !s.deferred.waits(th) {
		return true
	}
	var outcome unwind.Outcome
	s.frames, outcome = unwind.UserChain(s.frames[:0], r)
	user := s.locate(make([]image.Loc, 0, len(s.frames)), th.process, s.frames)
	q := &s.deferred
	for i := 0; i < len(q.samples); {
		h := q.samples[i]
		if h.Thread != th || h.cookie != r.Cookie {
			i++
			continue
		}
		h.Stack, h.Outcome = append(h.Stack, user...), outcome
		if !s.release(i, yield) {
			return false
		}
	}
	return true
}

// flushDeferred hands on what waits for chains of th, or of any thread if nil,
// that will not come any more.
func (s *Session) flushDeferred(th *Thread, yield func(*Sample, error) bool) bool {
	if th != nil && !s.deferred.waits(th) {
		return true
	}
	for i := 0; i < len(s.deferred.samples); {
		if th != nil && s.deferred.samples[i].Thread != th {
			i++
			continue
		}
		if !s.release(i, yield) {
			return false
		}
	}
	return true
}
