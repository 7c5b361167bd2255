package session

import (
	"iter"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// Source delivers records in time order. *perfdata.Reader is one; so is a
// recorder that shows what it just recorded.
type Source interface {
	Meta() *perfdata.Meta
	Records() iter.Seq2[perfdata.Record, error]
}

// Session makes samples of the records of one recording.
type Session struct {
	source Source
	store  *image.Store
	stats  Stats

	threads threads
	kernel  kernelSpace
	unknown *image.Image // of addresses nothing is mapped at
	nobody  *Thread      // of samples that do not say whose they are

	objects  map[fileKey]*object
	buildIDs buildIDs
	events   eventIndex

	instances map[instanceKey]*instance
	lost      map[uint32]uint64 // by CPU: records and samples lost so far
	firstTime uint64            // ns, of the first record that has one
	target    target            // what the command line says was recorded
	perCPU    []bool            // what the samples say, by Event.Index
	varying   []bool            // whether periods are not the attributes', by Event.Index
	layouts   []*layout         // by Event.Index

	cache  *locCache
	gen    uint32 // latest state of any address space
	mapped int    // mappings recorded
	live   int    // mappings copied at forks, in living spaces

	// Reused for every sample.
	out     Sample
	ival    Interval
	frames  []unwind.Frame
	ends    []unwind.Frame // of branch records
	endLocs []image.Loc

	deferred deferredQueue

	unwinder *unwind.Unwinder // nil before the first sample it is needed for
	memory   memory
	modules  map[*image.Image]*unwind.Module
	mender   *mender // nil before the first callchain

	leaveChains bool
}

// New returns a session that reads the source's records when Samples is
// iterated, and interns the addresses of their stacks in store.
func New(source Source, store *image.Store) *Session {
	s := &Session{
		source:    source,
		store:     store,
		threads:   newThreads(),
		kernel:    newKernelSpace(),
		unknown:   store.Image(image.Key{Kind: image.Unknown}),
		objects:   map[fileKey]*object{},
		instances: map[instanceKey]*instance{},
		lost:      map[uint32]uint64{},
		cache:     new(locCache),
		modules:   map[*image.Image]*unwind.Module{},
	}
	for i := range s.cache {
		s.cache[i].tag = noTag
	}
	s.nobody = &Thread{PID: -1, TID: -1, Comm: ":-1", process: &process{pid: -1, space: &space{}}}
	s.nextGen(s.nobody.process.space)
	s.nextGen(&s.kernel.over)
	return s
}

// Stats returns what has been counted so far; it is complete when Samples has
// ended. Stats.Events has an entry for every event known.
func (s *Session) Stats() *Stats {
	if n := len(s.source.Meta().Events); n > 0 {
		s.eventStats(n - 1)
	}
	if s.unwinder != nil {
		s.stats.Unwound = s.unwinder.Stats
	}
	return &s.stats
}

// Samples iterates over the samples of the recording in time order; it can be
// called once. The *Sample is reused: what is to be kept must be copied. An
// error ends the iteration and comes from the source.
//
// A sample whose user callchain is deferred comes out when that has arrived,
// so its time may lie before that of other threads' samples already seen;
// the samples of one thread stay in order.
func (s *Session) Samples() iter.Seq2[*Sample, error] {
	return func(yield func(*Sample, error) bool) {
		for r, err := range s.source.Records() {
			if err != nil {
				yield(nil, err)
				return
			}
			if !s.record(r, yield) {
				return
			}
		}
		s.flushDeferred(nil, yield)
	}
}

// record handles one record; it returns false if the consumer has had enough.
func (s *Session) record(r perfdata.Record, yield func(*Sample, error) bool) bool {
	if s.firstTime == 0 {
		if c := r.Header(); c.Has&perfdata.FieldTime != 0 {
			s.firstTime = c.Time
		}
	}
	switch r := r.(type) {
	case *perfdata.Sample:
		return s.sample(r, yield)
	case *perfdata.CallchainDeferred:
		return s.join(r, yield)
	case *perfdata.Task:
		if r.Type == perfdata.TypeFork {
			s.fork(r)
			return true
		}
		if th := s.threads.byTID[r.TaskTID]; th != nil && !s.flushDeferred(th, yield) {
			return false
		}
		s.exit(r)
	default:
		s.state(r)
	}
	return true
}

// state handles the records that change what is known about the system.
func (s *Session) state(r perfdata.Record) {
	switch r := r.(type) {
	case *perfdata.Mmap:
		s.mmap(r)
	case *perfdata.Comm:
		s.comm(r)
	case *perfdata.Ksymbol:
		s.ksymbol(r)
	case *perfdata.Switch:
		s.taskSwitch(r)
	case *perfdata.Throttle:
		s.throttle(r)
	case *perfdata.Lost:
		s.stats.LostRecords += r.Count
		s.lostRecords(&r.Common, r.Count)
	case *perfdata.LostSamples:
		s.stats.LostSamples += r.Count
		s.lostRecords(&r.Common, r.Count)
	}
}

// sample fills s.out from r and hands it on.
func (s *Session) sample(r *perfdata.Sample, yield func(*Sample, error) bool) bool {
	e := r.Event
	if e == nil {
		s.stats.NoEvent++
		return true
	}
	th := s.sampled(r)
	if s.deferred.waits(th) && r.Misc&perfdata.MiscCPUModeMask == perfdata.MiscUser {
		// Back in user mode: what was due on the way there has been lost.
		if !s.flushDeferred(th, yield) {
			return false
		}
	}
	out := &s.out
	*out = Sample{
		Time: r.Time, Thread: th, CPU: -1, Event: e, Period: r.Period,
		Stack: out.Stack[:0], Branches: out.Branches[:0], Raw: r,
	}
	if r.Has&perfdata.FieldCPU != 0 {
		out.CPU = int32(r.CPU)
	}
	if th.TID > 0 && !(e.Type == perfdata.TypeSoftware && e.Config == perfdata.SWBPFOutput) && th.sched.ranAt(r.Time) {
		s.stats.MissedSwitches++
	}
	out.Interval = s.interval(r, th)
	if l := s.layout(e); l.kind != noTracepoint {
		s.tracepointSample(l, r)
	}
	s.stack(out, r)
	if len(r.Branches) > 0 {
		s.branches(out, th.process)
	}
	if out.Outcome == unwind.Deferred {
		return s.hold(out, yield)
	}
	return s.emit(out, yield)
}

// sampled returns the thread of a sample and counts what the sample lacks.
func (s *Session) sampled(r *perfdata.Sample) *Thread {
	if r.Has&perfdata.FieldTime == 0 {
		s.stats.NoTime++
	} else {
		if s.stats.Samples == 0 {
			s.stats.First = r.Time
		}
		s.stats.Last = max(s.stats.Last, r.Time)
	}
	s.stats.Samples++
	if r.Has&perfdata.FieldTID == 0 || r.TID < 0 {
		s.stats.NoThread++
		return s.nobody
	}
	th := s.thread(r.PID, r.TID)
	if !th.named {
		s.stats.UnknownThread++
	}
	if th.TID == 0 {
		s.learnPerCPU(r.Event)
	}
	if sp := th.process.space; sp.before != nil && r.Misc&perfdata.MiscCPUModeMask == perfdata.MiscUser {
		sp.before = nil // exec has returned
		s.nextGen(sp)
	}
	return th
}

// emit counts a finished sample and hands it to the consumer.
func (s *Session) emit(out *Sample, yield func(*Sample, error) bool) bool {
	s.stats.Outcomes[out.Outcome]++
	e := s.eventStats(out.Event.Index)
	e.Samples++
	e.Period += out.Period
	if len(out.Stack) > 1 {
		e.Stacks++
	}
	if len(out.Raw.Counters) > 0 {
		e.Reads++
	}
	if out.Outcome.Cut() {
		e.Cut++
	}
	if out.Repaired > 0 {
		s.stats.Repaired++
		s.stats.PutBack += uint64(out.Repaired)
	}
	return yield(out, nil)
}

// branches resolves the records of the branch stack.
func (s *Session) branches(out *Sample, p *process) {
	frames := s.ends[:0]
	for _, b := range out.Raw.Branches {
		frames = append(frames, unwind.Frame{Addr: b.From}, unwind.Frame{Addr: b.To})
	}
	s.ends = frames
	s.endLocs = s.locate(s.endLocs[:0], p, frames)
	for i, b := range out.Raw.Branches {
		out.Branches = append(out.Branches, Branch{From: s.endLocs[2*i], To: s.endLocs[2*i+1], Flags: b.Flags})
	}
}
