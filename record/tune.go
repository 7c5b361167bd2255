package record

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"time"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// tuner lets the sampling interval follow the program (Chilingarova and
// Safonov 2006, section 3.3): of every Tune.Every samples it counts those that
// find the same activation on top of the stack as the sample before on that
// thread. Few such repetitions say that calls go by unseen, and the interval
// shrinks; many say that the same is seen again and again, and it grows.
//
// In their virtual machine a frame carries a mark that a sample has seen it.
// Here a top frame counts as the same activation if no call was counted since
// the sample before, where calls are counted; else if the thread's callers
// are the same and so is its stack pointer: that is a little too often, since
// two calls one after the other from the same place look the same.
type tuner struct {
	Tune
	r       *recorder
	layout  map[uint64]*layout // by id
	last    map[uint32]uint64  // by thread: what was on top
	seen    int
	same    int
	period  float64 // of the first clock, now
	changes uint64
	in      []*instance
	seed    maphash.Seed
}

func (t *tuner) begin(r *recorder) error {
	t.r, t.in = r, r.clocks()
	t.layout, t.last = map[uint64]*layout{}, map[uint32]uint64{}
	t.seed = maphash.MakeSeed()
	for _, in := range t.in {
		t.layout[in.id] = newLayout(in.event, r.Plan)
	}
	first := r.Plan.Sampling.firstPeriod()
	if first == 0 {
		first = r.Plan.Sampling.Attr.SamplePeriod // a frequency: only ratios matter
	}
	t.period = float64(first)
	if t.Min == 0 {
		t.Min = uint64(t.period / math.Pow(t.Factor, 5))
	}
	if t.Max == 0 {
		t.Max = uint64(t.period * math.Pow(t.Factor, 5))
	}
	return nil
}

func (t *tuner) perSample() bool { return true }

func (t *tuner) sample(id, _ uint64, record []byte) {
	l := t.layout[id]
	if l == nil || len(record) < sampleTimeAt {
		return
	}
	tid := binary.NativeEndian.Uint32(record[28:])
	top := l.activation(record, t.seed)
	before, known := t.last[tid]
	if len(t.last) > 1<<16 {
		clear(t.last) // threads that have gone
	}
	t.last[tid] = top
	if !known {
		return
	}
	t.seen++
	if top == before {
		t.same++
	}
}

// after decides, once enough samples have been seen.
func (t *tuner) after(time.Time) error {
	if t.seen < t.Every {
		return nil
	}
	share := float64(t.same) / float64(t.seen)
	t.seen, t.same = 0, 0
	period := Retune(t.Tune, t.period, share)
	if period == t.period {
		return nil
	}
	t.changes++
	scale := t.r.scale * t.period / period
	t.period, t.r.scale = period, scale
	for _, in := range t.in {
		if err := t.r.setRate(in, scale); err != nil {
			return err
		}
	}
	return nil
}

// Retune is the decision: the next period after a share of repetitions.
func Retune(t Tune, period, share float64) float64 {
	switch {
	case share < t.Low:
		return max(period/t.Factor, min(period, float64(t.Min)))
	case share > t.High:
		return min(period*t.Factor, max(period, float64(t.Max)))
	}
	return period
}

func (t *tuner) next() time.Time { return time.Time{} }

func (t *tuner) end(c *Counts) {
	c.PeriodChange, c.FinalPeriod = t.changes, uint64(t.period)
}

// layout finds the parts of an event's samples that identify the activation
// on top of the stack.
type layout struct {
	attr    perfdata.Attr
	counted bool // a counter of calls is among those read
	member  int  // which
}

func newLayout(ev *Event, p *Plan) *layout {
	l := &layout{attr: ev.Attr}
	for _, g := range p.Groups {
		if g.Events[0] == ev && g.Read {
			for i, m := range g.Events[1:] {
				if m.countsCalls() {
					l.counted, l.member = true, i+1
					break
				}
			}
		}
	}
	return l
}

// countsCalls: all calls, not those of some functions.
func (ev *Event) countsCalls() bool {
	switch ev.Attr.Config {
	case intelNearCall, atomNearCall:
		return ev.Attr.Type != perfdata.TypeSoftware && ev.Uprobes == nil
	}
	return false
}

// activation returns a number for the activation on top of the stack: equal
// numbers are the same, as far as the sample tells. Fields stand in the order
// of perf_output_sample (kernel/events/core.c).
func (l *layout) activation(rec []byte, seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	at := 8 + 8*6 // header, identifier, ip, tid, time, cpu, period
	word := func() uint64 {
		if at+8 > len(rec) {
			return 0
		}
		v := binary.NativeEndian.Uint64(rec[at:])
		at += 8
		return v
	}
	add := func(v uint64) {
		var b [8]byte
		binary.NativeEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	if l.attr.SampleType&perfdata.FieldRead != 0 {
		at = l.reads(rec, at, add)
	}
	if l.attr.SampleType&perfdata.FieldCallchain != 0 {
		n := min(word(), uint64(len(rec)/8))
		for i := uint64(0); i < n; i++ {
			if ip := word(); i > 1 { // the context, then the ip itself
				add(ip)
			}
		}
	}
	if l.attr.SampleType&(perfdata.FieldRaw|perfdata.FieldBranchStack) != 0 {
		return h.Sum64()
	}
	if l.attr.SampleType&perfdata.FieldRegsUser != 0 && word() != 0 {
		sp := spRegister(l.attr.SampleRegsUser)
		for i := range popcount(l.attr.SampleRegsUser) {
			if v := word(); i == sp {
				add(v)
			}
		}
	}
	return h.Sum64()
}

// reads passes over the counters; that of calls becomes part of the key, for
// while it stands still nothing was called.
func (l *layout) reads(rec []byte, at int, add func(uint64)) int {
	word := func(i int) uint64 {
		if at+8*i+8 > len(rec) {
			return 0
		}
		return binary.NativeEndian.Uint64(rec[at+8*i:])
	}
	c := readLayout(l.attr.ReadFormat)
	if l.attr.ReadFormat&perfdata.ReadGroup == 0 {
		return at + 8*(c.first+c.per)
	}
	n := int(min(word(0), uint64(len(rec)/8)))
	if l.counted && l.member < n {
		add(word(c.first + c.per*l.member))
	}
	return at + 8*(c.first+c.per*n)
}

func popcount(m uint64) int {
	n := 0
	for ; m != 0; m &= m - 1 {
		n++
	}
	return n
}

// spRegister is the position of the stack pointer among the registers dumped.
func spRegister(mask uint64) int {
	bit := 7 // x86
	if mask&(1<<31) != 0 && mask&(1<<32) != 0 {
		bit = 31 // arm64
	}
	return popcount(mask & (1<<bit - 1))
}
