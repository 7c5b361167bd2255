package perfdata

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func orderName(big bool) string {
	if big {
		return "big-endian"
	}
	return "little-endian"
}

// readBytes reads a recording from memory, in place or as a stream.
func readBytes(tb testing.TB, b []byte, stream bool) (*Reader, []Record, error) {
	tb.Helper()
	var r *Reader
	var err error
	if stream {
		r, err = NewReader(bytes.NewBuffer(b), "test")
	} else {
		r, err = NewReader(bytes.NewReader(b), "test")
	}
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	return r, drain(tb, r), nil
}

func mustRead(tb testing.TB, b []byte) (*Reader, []Record) {
	tb.Helper()
	r, recs, err := readBytes(tb, b, false)
	if err != nil {
		tb.Fatal(err)
	}
	return r, recs
}

// Every record type and every sample field, in both byte orders, in file and
// pipe mode.
func TestEveryRecord(t *testing.T) {
	for _, big := range []bool{false, true} {
		b := newBuilder(big)
		for mode, raw := range map[string][]byte{
			"file": b.file(144, []builtEvent{{everyAttr, []uint64{42}}}, nil, b.everyRecord()),
			"pipe": b.pipe(144, []builtEvent{{everyAttr, []uint64{42}}}, nil, b.everyRecord()),
		} {
			t.Run(mode+" "+orderName(big), func(t *testing.T) {
				r, recs := mustRead(t, raw)
				if s := r.Stats(); len(recs) != 23 || s.Malformed != 0 || s.Damage != nil || s.Lost != 7 || s.LostSamples != 9 {
					t.Fatalf("%d records, %+v", len(recs), s)
				}
				a := r.Meta().Events[0].Attr
				want := everyAttr
				want.Size = 144
				if a != want {
					t.Errorf("attr %+v\nexpected %+v", a, want)
				}
				checkEveryRecord(t, recs)
			})
		}
	}
}

func checkEveryRecord(t *testing.T, recs []Record) {
	for i, r := range recs {
		h := r.Header()
		if h.Time != uint64(100*(i+1)) || h.PID != 10 || h.TID != 11 || h.ID != 42 || h.StreamID != 43 || h.CPU != 3 || h.Event == nil {
			t.Errorf("%T: %+v", r, h)
		}
		if i < 9 && int(h.Type) != i+1 {
			t.Errorf("record %d has type %d", i, h.Type)
		}
	}
	for _, c := range []struct{ got, want any }{
		{recs[0].(*Mmap).Filename, "/bin/true"}, {recs[0].(*Mmap).Addr, uint64(0x400000)}, {recs[0].(*Mmap).Len, uint64(0x1000)},
		{recs[1].(*Lost).Count, uint64(7)}, {recs[2].(*Comm).Comm, "true"}, {recs[2].(*Comm).CommTID, int32(11)},
		{recs[3].(*Task).TaskTime, uint64(300)}, {recs[3].(*Task).TaskTID, int32(11)}, {recs[3].(*Task).TaskPPID, int32(1)},
		{recs[4].(*Throttle).ThrottleTime, uint64(500)}, {recs[5].(*Throttle).Stream, uint64(43)},
		{recs[6].(*Task).TaskPID, int32(12)},
		{recs[7].(*Read).Counters, []Counter{{ID: 42, Value: 5}}}, {recs[7].(*Read).TimeEnabled, uint64(9)}, {recs[7].(*Read).TimeRunning, uint64(8)},
		{recs[9].(*Mmap).Ino, uint64(99)}, {recs[9].(*Mmap).Maj, uint32(8)}, {recs[9].(*Mmap).Prot, uint32(5)}, {recs[9].(*Mmap).Filename, "/lib/x.so"},
		{string(recs[10].(*Mmap).BuildID), "0123456789abcdef"}, {recs[10].(*Mmap).MapFlags, uint32(2)}, {recs[10].(*Mmap).Filename, "/lib/y.so"},
		{recs[11].(*Aux).AuxFlags, uint64(3)}, {recs[12].(*ItraceStart).TraceTID, int32(11)}, {recs[13].(*LostSamples).Count, uint64(9)},
		{recs[14].(*Switch).NextPrevPID, int32(-1)}, {recs[15].(*Switch).NextPrevTID, int32(2)},
		{recs[16].(*Namespaces).Links, []NamespaceLink{{3, 4}, {5, 6}}},
		{recs[17].(*Ksymbol).Name, "bpf_prog_1"}, {recs[17].(*Ksymbol).Unregister, true}, {recs[17].(*Ksymbol).Len, uint32(64)},
		{recs[18].(*BPFEvent).ProgID, uint32(77)}, {string(recs[18].(*BPFEvent).Tag[:]), "tagtagta"},
		{recs[19].(*Cgroup).Path, "/user.slice"}, {string(recs[20].(*TextPoke).Old), "ab"}, {string(recs[20].(*TextPoke).New), "cde"},
		{recs[21].(*AuxOutputHWID).HWID, uint64(31)},
		{recs[22].(*CallchainDeferred).Cookie, uint64(0xc00c1e)}, {recs[22].(*CallchainDeferred).Callchain, []uint64{0x401000, 0x402000}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("got %v, expected %v", c.got, c.want)
		}
	}
	checkEverySample(t, recs[8].(*Sample))
}

func checkEverySample(t *testing.T, s *Sample) {
	want := &Sample{
		Common: s.Common, IP: 0x401000, Addr: 0xadd0, Period: 4000,
		Counters: []Counter{{42, 1000, 1}, {52, 2000, 2}}, TimeEnabled: 900, TimeRunning: 800,
		Callchain: []uint64{ContextUser, 0x401000, 0x402000}, Raw: []byte("tracepoint!!"),
		Branches:      []Branch{{0x10, 0x20, everyBranch}, {0x30, 0x40, 2}},
		BranchHWIndex: 17, BranchCounters: []uint64{71, 72},
		RegsUser:  Regs{2, 0x1f, []uint64{100, 101, 102, 103, 104}},
		StackUser: s.StackUser, StackUserMax: 64,
		RegsIntr: Regs{1, 7, []uint64{200, 201, 202}},
		Weight:   55, DataSrc: 66, Transaction: 77, PhysAddr: 88, Cgroup: 99, DataPageSize: 4096, CodePageSize: 2 << 20,
		Aux: []byte("auxdata!"),
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("sample %+v\nexpected %+v", s, want)
	}
	if len(s.StackUser) != 48 || s.StackUser[47] != 47 {
		t.Errorf("stack of %d bytes", len(s.StackUser))
	}
	f := s.Branches[0].Flags
	if !f.Mispred() || f.Predicted() || f.InTX() || !f.Abort() || f.Cycles() != 777 || f.Kind() != 19 || f.Spec() != 2 || f.Priv() != 1 {
		t.Errorf("branch flags %#x", f)
	}
	if v, ok := s.RegsUser.Get(3); !ok || v != 103 {
		t.Errorf("register 3 is %d", v)
	}
	if a := s.Event.Attr; a.PreciseIP() != 2 {
		t.Errorf("precise_ip %d", a.PreciseIP())
	}
}

// Attrs of every size published, and of one not published yet.
func TestAttrSizes(t *testing.T) {
	for _, size := range []int{64, 72, 80, 96, 104, 112, 120, 128, 136, 144, 152, 256} {
		for _, big := range []bool{false, true} {
			b := newBuilder(big)
			for _, raw := range [][]byte{
				b.file(size, simpleEvents, nil, b.simpleSample(2, 7, 8, 9)),
				b.pipe(size, simpleEvents, nil, b.simpleSample(2, 7, 8, 9)),
			} {
				r, recs := mustRead(t, raw)
				a := r.Meta().Events[1].Attr
				if len(recs) != 1 || recs[0].(*Sample).IP != 7 || a.Size != uint32(size) || a.Flags != FlagSampleIDAll || a.Config4 != 0 {
					t.Errorf("size %d %s: %d records, %+v", size, orderName(big), len(recs), a)
				}
				if got := r.Meta().Events[0].IDs; !slices.Equal(got, []uint64{1, 2}) {
					t.Errorf("size %d: ids %v", size, got)
				}
			}
		}
	}
}

// A kernel that had no branch stack wrote the number 0 and no hw_idx.
func TestEmptyBranchStackWithoutIndex(t *testing.T) {
	b := newBuilder(false)
	ev := []builtEvent{{Attr{SampleType: FieldIP | FieldBranchStack, BranchSampleType: BranchAny | BranchHWIndex}, nil}}
	data := append(b.record(TypeSample, 0, b.u64(1, 0)), b.record(TypeSample, 0, b.u64(2, 0, 5))...)
	r, recs := mustRead(t, b.file(136, ev, nil, data))
	if len(recs) != 2 || r.Stats().Malformed != 0 || recs[0].(*Sample).BranchHWIndex != ^uint64(0) || recs[1].(*Sample).BranchHWIndex != 5 {
		t.Errorf("%d records %+v", len(recs), r.Stats())
	}
}

// Samples are told apart by their ids; one that nobody declared is counted.
func TestIDs(t *testing.T) {
	b := newBuilder(false)
	fault := b.record(TypeSample, MiscUser, b.u64(3, 0x44), b.pair(5, 6), b.u64(20, 0xfa))
	data := slices.Concat(b.simpleSample(2, 0x11, 10, 1, 2, 3), fault, b.simpleSample(99, 0x22, 30), b.simpleSample(0, 0x33, 40))
	r, recs := mustRead(t, b.file(136, simpleEvents, nil, data))
	s := samplesOf(recs)
	if len(s) != 3 || s[0].Event.Index != 0 || s[1].Event.Index != 1 || s[1].Addr != 0xfa || s[2].IP != 0x33 || s[2].Event.Index != 0 {
		t.Fatalf("samples %+v", s)
	}
	if r.Stats().UnknownID != 1 || r.Stats().Records[TypeSample] != 4 {
		t.Errorf("%+v", r.Stats())
	}
}

// ID at different places in two events: both have to be tried.
func TestIDsAtDifferentPlaces(t *testing.T) {
	b := newBuilder(false)
	events := []builtEvent{
		{Attr{SampleType: FieldIP | FieldTID | FieldTime | FieldID, Flags: FlagSampleIDAll}, []uint64{7}},
		{Attr{SampleType: FieldIP | FieldTID | FieldTime | FieldAddr | FieldID | FieldCPU, Flags: FlagSampleIDAll}, []uint64{8}},
	}
	data := slices.Concat(
		b.record(TypeSample, 0, b.u64(1), b.pair(1, 1), b.u64(100, 7)),
		b.record(TypeSample, 0, b.u64(2), b.pair(1, 1), b.u64(50, 0xadd, 8), b.pair(4, 0)),
		b.record(TypeComm, 0, b.pair(1, 1), pad8("x"), b.pair(1, 1), b.u64(60, 8), b.pair(4, 0)),
	)
	_, recs := mustRead(t, b.file(136, events, nil, data))
	if len(recs) != 3 || recs[0].Header().Time != 50 || recs[1].Header().Time != 60 || recs[1].Header().CPU != 4 ||
		recs[2].Header().ID != 7 || recs[0].Header().Event.Index != 1 {
		t.Fatalf("%+v", recs)
	}
}

// Numbers that cannot be: each record is counted and skipped, the next read.
func TestAbsurdNumbers(t *testing.T) {
	b := newBuilder(false)
	for name, c := range map[string]struct {
		attr Attr
		body []byte
	}{
		"callchain":        {Attr{SampleType: FieldCallchain}, b.u64(1<<61, 1)},
		"callchain by one": {Attr{SampleType: FieldCallchain}, b.u64(2, 1)},
		"branches":         {Attr{SampleType: FieldBranchStack}, b.u64(1<<60, 1, 2, 3)},
		"branch counters":  {Attr{SampleType: FieldBranchStack, BranchSampleType: BranchCounters}, b.u64(1, 1, 2, 3)},
		"read group":       {Attr{SampleType: FieldRead, ReadFormat: ReadGroup | ReadID}, b.u64(1<<62, 1)},
		"raw":              {Attr{SampleType: FieldRaw}, b.u32(1<<31, 0)},
		"stack":            {Attr{SampleType: FieldStackUser}, b.u64(1<<63, 0)},
		"dyn size":         {Attr{SampleType: FieldStackUser}, b.u64(8, 0, 9)},
		"registers":        {Attr{SampleType: FieldRegsUser, SampleRegsUser: ^uint64(0)}, b.u64(1, 5)},
		"aux":              {Attr{SampleType: FieldAux}, b.u64(1<<63, 5)},
		"too short":        {Attr{SampleType: FieldIP | FieldTime}, b.u64(1)},
	} {
		data := slices.Concat(b.record(TypeSample, 0, c.body), b.record(TypeNamespaces, 0, b.pair(1, 1), b.u64(1<<60)),
			b.record(TypeCallchainDeferred, 0, b.u64(1, 1<<61, 3)), b.record(TypeComm, 0, b.pair(1, 1), pad8("end")))
		r, recs := mustRead(t, b.file(136, []builtEvent{{c.attr, nil}}, nil, data))
		if s := r.Stats(); s.Malformed != 3 || len(recs) != 1 || recs[0].(*Comm).Comm != "end" || s.Damage != nil {
			t.Errorf("%s: %d records, %+v", name, len(recs), s)
		}
	}
}

// *Sample is reused; Clone is not.
func TestSampleReuse(t *testing.T) {
	b := newBuilder(false)
	r, err := NewReader(bytes.NewReader(b.file(136, simpleEvents, nil,
		append(b.simpleSample(1, 1, 1, 5, 6, 7), b.simpleSample(1, 2, 2)...))), "test")
	if err != nil {
		t.Fatal(err)
	}
	var clones []*Sample
	var live []Record
	for rec, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		live = append(live, rec)
		clones = append(clones, rec.(*Sample).Clone())
	}
	if live[0] != live[1] || len(live[0].(*Sample).Callchain) != 0 {
		t.Error("samples are not reused")
	}
	if !slices.Equal(clones[0].Callchain, []uint64{5, 6, 7}) || clones[0].IP != 1 {
		t.Errorf("clone %+v", clones[0])
	}
}

// The sample path must not allocate.
func TestSamplesDoNotAllocate(t *testing.T) {
	b := newBuilder(false)
	e := newEventTable(false)
	e.add(&Event{Attr: everyAttr, IDs: []uint64{42}})
	d := decoder{table: e}
	raw := b.everySample(1)
	h := parseHeader(raw, false)
	n := testing.AllocsPerRun(100, func() {
		if _, v := d.decode(h, raw, 0); v != decoded {
			t.Fatal(v)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a sample", n)
	}
}

// Names made from type and config.
func TestAttrNames(t *testing.T) {
	for want, a := range map[string]Attr{
		"cycles":                {Type: TypeHardware, Config: HWCPUCycles},
		"cpu_core/cycles/":      {Type: TypeHardware, Config: 4<<32 | HWCPUCycles},
		"instructions:u":        {Type: TypeHardware, Config: HWInstructions, Flags: FlagExcludeKernel | FlagExcludeHV},
		"cycles:pp":             {Type: TypeHardware, Flags: 2 * flagPreciseIP0},
		"page-faults":           {Type: TypeSoftware, Config: SWPageFaults},
		"LLC-load-misses":       {Type: TypeHWCache, Config: 2 | 0<<8 | 1<<16},
		"L1-dcache-stores":      {Type: TypeHWCache, Config: 0 | 1<<8},
		"r1a8":                  {Type: TypeRaw, Config: 0x1a8},
		"uprobe/config=0x1/":    {Type: 9, Config: 1},
		"pmu77/config=0x2/":     {Type: 77, Config: 2},
		"tracepoint:12":         {Type: TypeTracepoint, Config: 12},
		"unknown-software:0x63": {Type: TypeSoftware, Config: 99},
	} {
		if got := attrName(&a, map[EventType]string{4: "cpu_core", 9: "uprobe"}); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}

// Groups without GROUP_DESC.
func TestInferredGroups(t *testing.T) {
	lead := Attr{ReadFormat: ReadGroup | ReadID, SamplePeriod: 1000, Flags: FlagDisabled}
	member := Attr{ReadFormat: ReadGroup | ReadID}
	alone := Attr{SamplePeriod: 5}
	var m Meta
	for i, a := range []Attr{alone, lead, member, member, lead, alone, lead, member} {
		m.Events = append(m.Events, &Event{Attr: a, Index: i})
	}
	m.linkEvents(func(uint64, int) {})
	var got []string
	for _, ev := range m.Events {
		got = append(got, fmt.Sprint(ev.Leader.Index, len(ev.Group)))
	}
	if want := []string{"0 1", "1 3", "1 0", "1 0", "4 1", "5 1", "6 2", "6 0"}; !slices.Equal(got, want) {
		t.Errorf("leader and group size %q, expected %q", got, want)
	}
}

// Flag words of both byte orders mean the same.
func TestBitFields(t *testing.T) {
	b := newBuilder(true)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		f := AttrFlags(rng.Uint64())
		raw := b.attr(Attr{Flags: f}, 64)
		if a, ok := decodeAttr(raw, true); !ok || a.Flags != f {
			t.Fatalf("%#x read as %#x", f, a.Flags)
		}
		br := BranchFlags(rng.Uint64() & (1<<33 - 1))
		c := cursor{b: b.branch(1, 2, br)[16:], big: true}
		if got := branchFlags(c.u64(), true); got != br {
			t.Fatalf("branch flags %#x read as %#x", br, got)
		}
	}
}
