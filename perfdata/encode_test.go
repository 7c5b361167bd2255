package perfdata

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// randomAttr has any sample_type, within what a reader can tell apart.
func randomAttr(r *rand.Rand) Attr {
	a := Attr{
		Type: EventType(r.Uint32N(6)), Config: r.Uint64(), SamplePeriod: r.Uint64(),
		SampleType:       FieldIdentifier | FieldTime | SampleFormat(r.Uint64())&(1<<25-1),
		ReadFormat:       ReadFormat(r.Uint64N(32)),
		Flags:            AttrFlags(r.Uint64()) | FlagSampleIDAll,
		BranchSampleType: BranchSample(r.Uint64N(1 << 20)),
		SampleRegsUser:   r.Uint64() & r.Uint64() & r.Uint64(), SampleRegsIntr: r.Uint64() & r.Uint64(),
	}
	if a.SampleType&FieldWeight != 0 {
		a.SampleType &^= FieldWeightStruct // the kernel takes one of them
	}
	return a
}

func words(r *rand.Rand, most int) []uint64 {
	var out []uint64
	for range r.IntN(most + 1) {
		out = append(out, r.Uint64())
	}
	return out
}

func exactWords(r *rand.Rand, n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = r.Uint64()
	}
	return out
}

// data has a length that is rem modulo 8, as the kernel pads it.
func data(r *rand.Rand, rem int) []byte {
	b := make([]byte, rem+8*r.IntN(20))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func counters(r *rand.Rand, f ReadFormat) []Counter {
	n := 1
	if f&ReadGroup != 0 {
		n = r.IntN(6)
	}
	var out []Counter
	for range n {
		c := Counter{Value: r.Uint64()}
		if f&ReadID != 0 {
			c.ID = r.Uint64()
		}
		if f&ReadLost != 0 {
			c.Lost = r.Uint64()
		}
		out = append(out, c)
	}
	return out
}

func readTimes(r *rand.Rand, f ReadFormat) (enabled, running uint64) {
	if f&ReadTotalTimeEnabled != 0 {
		enabled = r.Uint64()
	}
	if f&ReadTotalTimeRunning != 0 {
		running = r.Uint64()
	}
	return enabled, running
}

// randomCommon has the fields of sample_id that ev records.
func randomCommon(r *rand.Rand, typ RecordType, ev *Event, time uint64) Common {
	c := Common{Type: typ, Misc: Misc(r.Uint32()), Event: ev, Time: time, ID: ev.IDs[r.IntN(len(ev.IDs))]}
	f := ev.SampleType
	if f&FieldTID != 0 {
		c.PID, c.TID = int32(r.Uint32()), int32(r.Uint32())
	}
	if f&FieldStreamID != 0 {
		c.StreamID = r.Uint64()
	}
	if f&FieldCPU != 0 {
		c.CPU = r.Uint32()
	}
	c.Has = f
	if typ != TypeSample {
		c.Has &= FieldTID | FieldTime | FieldID | FieldStreamID | FieldCPU | FieldIdentifier
	}
	return c
}

func randomSample(r *rand.Rand, ev *Event, time uint64) *Sample {
	s := &Sample{Common: randomCommon(r, TypeSample, ev, time)}
	f := ev.SampleType
	word := func(dst *uint64, bit SampleFormat) {
		if f&bit != 0 {
			*dst = r.Uint64()
		}
	}
	word(&s.IP, FieldIP)
	word(&s.Addr, FieldAddr)
	if word(&s.Period, FieldPeriod); f&FieldPeriod == 0 && !ev.Freq() {
		s.Period = ev.SamplePeriod
	}
	if f&FieldRead != 0 {
		s.Counters = counters(r, ev.ReadFormat)
		s.TimeEnabled, s.TimeRunning = readTimes(r, ev.ReadFormat)
	}
	if f&FieldCallchain != 0 {
		s.Callchain = words(r, 40)
	}
	if f&FieldRaw != 0 {
		s.Raw = data(r, 4)
	}
	if f&FieldBranchStack != 0 {
		s.BranchHWIndex = ^uint64(0)
		if ev.BranchSampleType&BranchHWIndex != 0 {
			s.BranchHWIndex = r.Uint64()
		}
		for range r.IntN(33) {
			s.Branches = append(s.Branches, Branch{r.Uint64(), r.Uint64(), BranchFlags(r.Uint64())})
		}
		if ev.BranchSampleType&BranchCounters != 0 {
			s.BranchCounters = exactWords(r, len(s.Branches))
		}
	}
	regs := func(dst *Regs, bit SampleFormat, mask uint64) {
		if dst.ABI = uint64(r.IntN(3)); f&bit == 0 || dst.ABI == 0 {
			dst.ABI = 0
			return
		}
		dst.Mask, dst.Values = mask, exactWords(r, bits.OnesCount64(mask))
	}
	regs(&s.RegsUser, FieldRegsUser, ev.SampleRegsUser)
	regs(&s.RegsIntr, FieldRegsIntr, ev.SampleRegsIntr)
	if f&FieldStackUser != 0 {
		s.StackUser = data(r, 0)
		if s.StackUserMax = uint64(len(s.StackUser)); s.StackUserMax > 0 {
			s.StackUserMax += 8 * r.Uint64N(100)
			s.StackUser = s.StackUser[:r.IntN(len(s.StackUser)+1)]
		}
	}
	word(&s.Weight, FieldWeight|FieldWeightStruct)
	word(&s.DataSrc, FieldDataSrc)
	word(&s.Transaction, FieldTransaction)
	word(&s.PhysAddr, FieldPhysAddr)
	word(&s.Cgroup, FieldCgroup)
	word(&s.DataPageSize, FieldDataPageSize)
	word(&s.CodePageSize, FieldCodePageSize)
	if f&FieldAux != 0 {
		s.Aux = data(r, 0)
	}
	return s
}

func name(r *rand.Rand) string { return strings.Repeat("näme", r.IntN(20)) + fmt.Sprint(r.IntN(1000)) }

// randomRecord is any record but a sample.
func randomRecord(r *rand.Rand, ev *Event, time uint64) Record {
	i := func() int32 { return int32(r.Uint32()) }
	c := func(types ...RecordType) Common { return randomCommon(r, types[r.IntN(len(types))], ev, time) }
	makers := []func() Record{
		func() Record {
			m := &Mmap{Common: c(TypeMmap, TypeMmap2), MapPID: i(), MapTID: i(), Addr: r.Uint64(), Len: r.Uint64(), Pgoff: r.Uint64(), Filename: name(r)}
			if m.Type == TypeMmap2 {
				m.Prot, m.MapFlags = r.Uint32(), r.Uint32()
				if m.Misc&MiscMmapBuildID != 0 {
					m.BuildID = data(r, 4)
					m.BuildID = m.BuildID[:min(len(m.BuildID), 20)]
				} else {
					m.Maj, m.Min, m.Ino, m.InoGen = r.Uint32(), r.Uint32(), r.Uint64(), r.Uint64()
				}
			}
			return m
		},
		func() Record { return &Comm{c(TypeComm), i(), i(), name(r)} },
		func() Record { return &Task{c(TypeFork, TypeExit), i(), i(), i(), i(), r.Uint64()} },
		func() Record { return &Lost{c(TypeLost), r.Uint64(), r.Uint64()} },
		func() Record { return &LostSamples{c(TypeLostSamples), r.Uint64()} },
		func() Record { return &Throttle{c(TypeThrottle, TypeUnthrottle), r.Uint64(), r.Uint64(), r.Uint64()} },
		func() Record { return &Switch{c(TypeSwitch), -1, -1} },
		func() Record { return &Switch{c(TypeSwitchCPUWide), i(), i()} },
		func() Record {
			return &Ksymbol{c(TypeKsymbol), r.Uint64(), r.Uint32(), uint16(r.Uint32()), r.IntN(2) == 0, name(r)}
		},
		func() Record {
			return &BPFEvent{c(TypeBPFEvent), uint16(r.Uint32()), uint16(r.Uint32()), r.Uint32(), [8]byte(le.AppendUint64(nil, r.Uint64()))}
		},
		func() Record {
			n := &Namespaces{Common: c(TypeNamespaces), NSPID: i(), NSTID: i()}
			for range r.IntN(8) {
				n.Links = append(n.Links, NamespaceLink{r.Uint64(), r.Uint64()})
			}
			return n
		},
		func() Record { return &Cgroup{c(TypeCgroup), r.Uint64(), name(r)} },
		func() Record { return &TextPoke{c(TypeTextPoke), r.Uint64(), data(r, r.IntN(8)), data(r, r.IntN(8))} },
		func() Record { return &Aux{c(TypeAux), r.Uint64(), r.Uint64(), r.Uint64()} },
		func() Record { return &ItraceStart{c(TypeItraceStart), i(), i()} },
		func() Record { return &AuxOutputHWID{c(TypeAuxOutputHWID), r.Uint64()} },
		func() Record { return &CallchainDeferred{c(TypeCallchainDeferred), r.Uint64(), words(r, 30)} },
		func() Record {
			m := &Read{Common: c(TypeRead), ReadPID: i(), ReadTID: i(), Counters: counters(r, ev.ReadFormat)}
			m.TimeEnabled, m.TimeRunning = readTimes(r, ev.ReadFormat)
			return m
		},
	}
	return makers[r.IntN(len(makers))]()
}

// normal makes what reading cannot distinguish the same: where the record
// lies, which Event struct, and nil and empty slices.
func normal(rec Record, events []*Event) Record {
	if s, ok := rec.(*Sample); ok {
		rec = s.Clone()
	}
	h := rec.Header()
	h.Offset = 0
	h.Event = events[h.Event.Index]
	v := reflect.ValueOf(rec).Elem()
	emptyToNil(v)
	return rec
}

func emptyToNil(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Slice:
			if f.Len() == 0 {
				f.SetZero()
			}
		case reflect.Struct:
			emptyToNil(f)
		}
	}
}

func TestAttrRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var a Attr
		v := reflect.ValueOf(&a).Elem()
		used := r.IntN(v.NumField() + 1)
		for i := range used {
			if f := v.Field(i); f.CanInt() {
				f.SetInt(int64(int32(r.Uint32())))
			} else {
				f.SetUint(r.Uint64() >> (64 - f.Type().Bits()))
			}
		}
		e := encodeAttr(&a)
		b := e.bytes(e.size())
		got, ok := decodeAttr(b, false)
		if !ok || got.Size != uint32(len(b)) {
			t.Fatalf("decodeAttr: %v, size %d of %d", ok, got.Size, len(b))
		}
		if got.Size = a.Size; got != a {
			t.Fatalf("attr reads back as\n%+v, was\n%+v", got, a)
		}
	}
}

func TestAttrSizeIsTheSmallest(t *testing.T) {
	for _, c := range []struct {
		a    Attr
		size int
	}{
		{Attr{Size: 136}, 64},
		{Attr{Config1: 1}, 64},
		{Attr{Config2: 1 << 63}, 72},
		{Attr{BranchSampleType: 1}, 80},
		{Attr{SampleStackUser: 1}, 96},
		{Attr{ClockID: -1}, 96},
		{Attr{SampleRegsIntr: 1}, 104},
		{Attr{SampleMaxStack: 127}, 112},
		{Attr{AuxSampleSize: 8}, 120},
		{Attr{SigData: 8}, 128},
		{Attr{Config3: 1}, 136},
		{Attr{Config4: 1}, 144},
	} {
		if got := encodeAttr(&c.a).size(); got != c.size {
			t.Errorf("%+v takes %d bytes, want %d", c.a, got, c.size)
		}
	}
}
