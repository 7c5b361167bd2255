package perfdata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func readWritten(t *testing.T, r *Reader) []Record {
	t.Helper()
	var out []Record
	for rec, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := rec.(*Sample); ok {
			rec = s.Clone()
		}
		out = append(out, rec)
	}
	if st := r.Stats(); st.Malformed != 0 || st.UnknownID != 0 || st.Damage != nil || len(st.Warnings) > 0 {
		t.Fatalf("reading what was written: %+v", st)
	}
	return out
}

// Every record with every field, in random combinations of attrs, reads back
// as it was written, from all kinds of recording.
func TestRecordsRoundTrip(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		m := &Meta{}
		for i := range 1 + r.IntN(4) {
			m.Events = append(m.Events, &Event{Index: i, Name: fmt.Sprint("event", i), IDs: []uint64{uint64(10*i + 1), uint64(10*i + 2)}, Attr: randomAttr(r)})
		}
		var recs []Record
		for i := range 300 {
			ev := m.Events[r.IntN(len(m.Events))]
			if time := uint64(1000 + i); r.IntN(2) == 0 {
				recs = append(recs, randomSample(r, ev, time))
			} else {
				recs = append(recs, randomRecord(r, ev, time))
			}
		}
		opts := WriteOptions{Zstd: int(seed % 3)}
		var rd *Reader
		var err error
		if seed%2 == 0 {
			rd, err = Open(writeFile(t, m, recs, opts))
		} else {
			rd, err = NewReader(bytes.NewReader(writePipe(t, m, recs, opts)), "pipe")
		}
		if err != nil {
			t.Fatal(err)
		}
		got := readWritten(t, rd)
		rd.Close()
		if len(got) != len(recs) {
			t.Fatalf("seed %d: %d records read, %d written", seed, len(got), len(recs))
		}
		for i := range got {
			g, w := normal(got[i], m.Events), normal(recs[i], m.Events)
			if !reflect.DeepEqual(g, w) {
				t.Fatalf("seed %d, record %d reads back as\n%+v, was\n%+v", seed, i, g, w)
			}
		}
	}
}

func TestMetaRoundTrip(t *testing.T) {
	m := sampleMeta()
	m.Events[0].Unit, m.Events[0].Scale = "Joules", 0.25
	m.Events[1].CPUs = []int32{0, 2, 5}
	m.IDs = map[uint64]Instance{11: {0, -1}, 12: {1, -1}, 31: {-1, 77}}
	m.TracingData = []byte("a pipe pads to 8")
	m.HybridTopology = []HybridPMU{{"cpu_core", "0-15"}, {"cpu_atom", "16-23"}}
	m.PMUCaps = append(m.PMUCaps, PMUCaps{PMU: "cpu_atom", Caps: map[string]string{"branches": "16"}})
	m.SampleTime = TimeRange{5, 1 << 60}
	m.BuildIDs = append(m.BuildIDs, BuildID{PID: 7, Misc: MiscKernel, ID: bytes.Repeat([]byte{1}, 16), Filename: "[kernel.kallsyms]"})
	recs := sampleRecords(m, 3)
	for _, kind := range []string{"file", "pipe"} {
		var rd *Reader
		var err error
		if kind == "file" {
			rd, err = Open(writeFile(t, m, recs, WriteOptions{Zstd: 3}))
		} else {
			rd, err = NewReader(bytes.NewReader(writePipe(t, m, recs, WriteOptions{Zstd: 3})), "pipe")
		}
		if err != nil {
			t.Fatal(err)
		}
		readWritten(t, rd)
		got := *rd.Meta()
		rd.Close()
		for i, ev := range got.Events {
			want := m.Events[i]
			if ev.Name != want.Name || !reflect.DeepEqual(ev.IDs, want.IDs) || ev.Unit != want.Unit || ev.Scale != want.Scale || !reflect.DeepEqual(ev.CPUs, want.CPUs) {
				t.Errorf("%s: event reads back as %+v, was %+v", kind, ev, want)
			}
			a := want.Attr
			if a.Size = ev.Size; ev.Attr != a {
				t.Errorf("%s: attr reads back as %+v, was %+v", kind, ev.Attr, a)
			}
		}
		for i := range got.BuildIDs {
			got.BuildIDs[i].Misc &= MiscCPUModeMask
		}
		if got.Compressed == nil || got.Compressed.Level != 3 || got.Compressed.Type != 1 {
			t.Errorf("%s: Compressed is %+v", kind, got.Compressed)
		}
		want := *m
		want.Path, want.Pipe, want.ByteOrder, want.Features, want.Compressed, want.descs = got.Path, kind == "pipe", got.ByteOrder, got.Features, got.Compressed, got.descs
		got.Events, want.Events = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: Meta reads back as\n%+v, was\n%+v", kind, got, want)
		}
	}
}

func TestGroupsFromEvents(t *testing.T) {
	m := sampleMeta()
	m.Groups = nil
	m.Events[0].Group = m.Events[:2]
	rd, err := Open(writeFile(t, m, sampleRecords(m, 1), WriteOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	if g := rd.Meta().Groups; len(g) != 1 || g[0] != (GroupDesc{LeaderIndex: 0, NrMembers: 2}) {
		t.Errorf("groups read back as %v", g)
	}
}

func TestWriteRaw(t *testing.T) {
	m := sampleMeta()
	recs := sampleRecords(m, 3000)
	var raw []byte
	for _, r := range recs {
		var err error
		if raw, err = appendRecord(raw, r, m.Events[0]); err != nil {
			t.Fatal(err)
		}
	}
	for _, opts := range []WriteOptions{{}, {Zstd: 1}} {
		var whole bytes.Buffer
		w, err := NewPipeWriter(&whole, m, opts)
		if err != nil {
			t.Fatal(err)
		}
		for b := raw; len(b) > 0; {
			n := min(len(b), 777_777) // cuts records
			if err := w.WriteRaw(b[:n]); err != nil {
				t.Fatal(err)
			}
			b = b[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		rd, err := NewReader(&whole, "pipe")
		if err != nil {
			t.Fatal(err)
		}
		rounds := 300
		if got := readWritten(t, rd); len(got) != len(recs)-rounds {
			t.Errorf("%d records read of %d", len(got), len(recs)-rounds)
		}
	}
}

func TestUnwritableRecords(t *testing.T) {
	m := sampleMeta()
	ev := m.Events[0]
	sample := func(change func(*Sample)) *Sample {
		s := sampleRecords(m, 1)[4].(*Sample)
		change(s)
		return s
	}
	for _, c := range []struct {
		rec  Record
		want string
	}{
		{sample(func(s *Sample) { s.Callchain = make([]uint64, 8192) }), `SAMPLE (event "cycles:u", tid 100, time 10000): it would take 65`},
		{sample(func(s *Sample) { s.StackUserMax = 65528 }), "a record holds at most 65528"},
		{sample(func(s *Sample) { s.StackUserMax, s.StackUser = 8, make([]byte, 9) }), "stack dump of 9 bytes in a room of 8"},
		{sample(func(s *Sample) { s.RegsUser.Values = s.RegsUser.Values[1:] }), "user registers: 3 values, the attr's mask 0x1c1 has 4"},
		{sample(func(s *Sample) { s.Event = nil }), "the sample has no Event"},
		{sample(func(s *Sample) { s.Type = TypeMmap }), "record type 1 does not fit"},
		{&Comm{Common: Common{Event: ev}, Comm: "a\x00b"}, "NUL"},
		{&Comm{Common: Common{Event: ev}, Comm: strings.Repeat("x", 65500)}, "COMM"},
		{&Task{Common: Common{Event: ev}}, "record type 0 does not fit"},
		{&Mmap{Common: Common{Event: ev, Misc: MiscMmapBuildID}, BuildID: make([]byte, 21)}, "MMAP2"},
		{&TextPoke{Common: Common{Event: ev}, Old: make([]byte, 70000)}, "TEXT_POKE"},
		{&Read{Common: Common{Event: m.Events[0]}, Counters: make([]Counter, 9000)}, "READ"},
		{&Other{Common: Common{Type: TypeHeaderAttr}}, "written from Meta"},
		{&Other{Common: Common{Type: TypeAuxtrace}}, "WriteRaw"},
		{&Other{Common: Common{Type: 999}, Data: make([]byte, 65536)}, "type 999"},
	} {
		path := filepath.Join(t.TempDir(), "perf.data")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w, err := NewFileWriter(f, m, WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		good := sampleRecords(m, 1)
		for _, r := range good {
			if err := w.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		first := w.Write(c.rec)
		if first == nil || !strings.Contains(first.Error(), c.want) {
			t.Errorf("writing %T: error %v, want one with %q", c.rec, first, c.want)
		}
		if err := w.Write(good[0]); err != first {
			t.Errorf("after an error Write returns %v, want the same", err)
		}
		if err := w.Close(); err != first {
			t.Errorf("after an error Close returns %v, want the same", err)
		}
		// What came before is a whole recording.
		rd, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := readWritten(t, rd); len(got) != len(good) || rd.Meta().Hostname != m.Hostname {
			t.Errorf("%d records of %d, host %q", len(got), len(good), rd.Meta().Hostname)
		}
		rd.Close()
		f.Close()
	}
}

func TestEventsThatCannotBeToldApart(t *testing.T) {
	with := func(f SampleFormat, flags AttrFlags) *Event { return &Event{Attr: Attr{SampleType: f, Flags: flags}} }
	for _, events := range [][]*Event{
		nil,
		{with(FieldIP, 0), with(FieldIP, 0)},
		{with(FieldIP|FieldID, 0), with(FieldIP|FieldID|FieldTime, 0)},
		{with(FieldIdentifier, 0), with(FieldIP|FieldID, 0)},
		{with(FieldIdentifier, 0), with(FieldIdentifier, FlagSampleIDAll)},
	} {
		if _, err := NewPipeWriter(io.Discard, &Meta{Events: events}, WriteOptions{}); err == nil {
			t.Errorf("no error for %+v", events)
		}
	}
	if _, err := NewPipeWriter(io.Discard, sampleMeta(), WriteOptions{Zstd: 23}); err == nil {
		t.Error("no error for zstd level 23")
	}
}

// failing takes n bytes.
type failing struct{ n int }

var errFull = errors.New("disk full")

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.n {
		return f.n, errFull
	}
	f.n -= len(b)
	return len(b), nil
}

func (f *failing) Seek(int64, int) (int64, error) { return 0, nil }

func TestFailingWriter(t *testing.T) {
	m := sampleMeta()
	recs := sampleRecords(m, 2000)
	for _, room := range []int{0, 100, 500, 600_000} {
		w, err := NewFileWriter(&failing{room}, m, WriteOptions{})
		if err == nil {
			for _, r := range recs {
				if err = w.Write(r); err != nil {
					break
				}
			}
			if cerr := w.Close(); !errors.Is(cerr, errFull) {
				t.Errorf("room %d: Close returns %v", room, cerr)
			}
			if err := w.Write(recs[0]); !errors.Is(err, errFull) {
				t.Errorf("room %d: Write after all returns %v", room, err)
			}
			continue
		}
		if !errors.Is(err, errFull) {
			t.Errorf("room %d: %v", room, err)
		}
	}
}

func TestWriteSampleDoesNotAllocate(t *testing.T) {
	m := sampleMeta()
	recs := sampleRecords(m, 100)
	w, err := NewPipeWriter(io.Discard, m, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, r := range recs {
			if err := w.Write(r); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations for %d records", n, len(recs))
	}
}

// BenchmarkWriteSample writes samples with a group read, a callchain of 20
// and 32 branch records.
func BenchmarkWriteSample(b *testing.B) {
	for _, level := range []int{0, 1} {
		b.Run(fmt.Sprintf("zstd=%d", level), func(b *testing.B) {
			m := sampleMeta()
			for _, ev := range m.Events[:2] {
				ev.SampleType &^= FieldRegsUser | FieldStackUser
			}
			s := sampleRecords(m, 33)[36+3*3].(*Sample)
			for len(s.Callchain) < 21 {
				s.Callchain = append(s.Callchain, mapStart+uint64(len(s.Callchain))*64)
			}
			for len(s.Branches) < 32 {
				s.Branches = append(s.Branches, Branch{mapStart, mapStart + 64, 2})
			}
			w, err := NewPipeWriter(io.Discard, m, WriteOptions{Zstd: level})
			if err != nil {
				b.Fatal(err)
			}
			rec, _ := appendRecord(nil, s, nil)
			b.SetBytes(int64(len(rec)))
			b.ReportAllocs()
			for b.Loop() {
				s.Time++
				s.IP += 16
				if err := w.Write(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
