package perfdata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// stream is a long series of samples on two CPUs, with rounds.
func (b *builder) stream(samples int) []byte {
	var out []byte
	for i := 0; i < samples; i += 20 {
		for cpu := range 2 {
			for j := range 10 {
				time := uint64(1000 + (i+j)*10 + cpu*3)
				out = append(out, b.simpleSample(uint64(1+cpu), uint64(i), time, ContextUser, uint64(i), 1, 2)...)
			}
		}
		out = append(out, b.record(TypeFinishedRound, 0)...)
	}
	return out
}

// compress packs data into COMPRESSED records as perf does: one zstd stream,
// flushed at the end of each record; size bytes of data a record.
func (b *builder) compress(tb testing.TB, typ RecordType, data []byte, size int) []byte {
	tb.Helper()
	var z bytes.Buffer
	w, err := zstd.NewWriter(&z, zstd.WithEncoderConcurrency(1))
	if err != nil {
		tb.Fatal(err)
	}
	var out []byte
	for len(data) > 0 {
		n := min(size, len(data))
		w.Write(data[:n])
		if err := w.Flush(); err != nil {
			tb.Fatal(err)
		}
		data = data[n:]
		body := bytes.Clone(z.Bytes())
		z.Reset()
		if typ == TypeCompressed2 {
			pad := make([]byte, -len(body)&7)
			out = append(out, b.record(typ, 0, b.u64(uint64(len(body))), body, pad)...)
		} else {
			out = append(out, b.record(typ, 0, body)...)
		}
	}
	return out
}

// The same samples compressed and plain, with records cut across the chunks
// at every possible place, in both byte orders.
func TestCompressedEqualsPlain(t *testing.T) {
	for _, big := range []bool{false, true} {
		b := newBuilder(big)
		data := b.stream(400)
		_, want := mustRead(t, b.file(136, simpleEvents, nil, data))
		for _, typ := range []RecordType{TypeCompressed, TypeCompressed2} {
			for _, size := range []int{7, 77, 1000, 5000} {
				packed := b.compress(t, typ, data, size)
				for _, raw := range [][]byte{b.file(136, simpleEvents, nil, packed), b.pipe(136, simpleEvents, nil, packed)} {
					r, got := mustRead(t, raw)
					if d := r.Stats().Damage; d != nil {
						t.Fatalf("damage %v", d)
					}
					sameRecords(t, want, got)
				}
			}
		}
	}
}

// sameRecords compares contents, not where they lie.
func sameRecords(t *testing.T, want, got []Record) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d records, expected %d", len(got), len(want))
	}
	for i := range want {
		w, g := want[i], got[i]
		g.Header().Offset, g.Header().Event = w.Header().Offset, w.Header().Event
		if !reflect.DeepEqual(w, g) {
			t.Fatalf("record %d is %+v, expected %+v", i, g, w)
		}
	}
}

// FINISHED_ROUND records lie between the COMPRESSED ones and count where they
// stand.
func TestRoundsBetweenCompressed(t *testing.T) {
	b := newBuilder(false)
	var z []byte
	var plain []byte
	enc := b.stream(200)
	// One COMPRESSED record a round, the round mark uncompressed behind it.
	mark := b.record(TypeFinishedRound, 0)
	var parts [][]byte
	for _, p := range bytes.SplitAfter(enc, mark) {
		parts = append(parts, bytes.TrimSuffix(p, mark))
	}
	packed := b.compress(t, TypeCompressed, slices.Concat(parts...), len(parts[0]))
	for len(packed) > 0 {
		n := parseHeader(packed, false).size
		z = append(append(z, packed[:n]...), mark...)
		packed = packed[n:]
	}
	plain = enc
	_, want := mustRead(t, b.file(136, simpleEvents, nil, plain))
	r, got := mustRead(t, b.file(136, simpleEvents, nil, z))
	sameRecords(t, want, got)
	if s := r.Stats(); s.Records[TypeFinishedRound] != 10 || s.Records[TypeCompressed] != 10 || s.OutOfOrder != 0 {
		t.Errorf("%+v", s)
	}
}

// header.size of COMPRESSED2 wraps around at 64 KiB (perf of Linux 6.16).
func TestCompressed2Overflow(t *testing.T) {
	b := newBuilder(false)
	var data []byte
	for i := range 30000 {
		// Chains that do not compress well.
		x := uint64(i+1) * 0x9e3779b97f4a7c15
		data = append(data, b.simpleSample(1, x, uint64(i+1), x*3, x*5, x*7)...)
	}
	_, want := mustRead(t, b.file(136, simpleEvents, nil, data))
	var z bytes.Buffer
	w, _ := zstd.NewWriter(&z, zstd.WithEncoderConcurrency(1))
	w.Write(data)
	w.Flush()
	body := z.Bytes()
	if len(body) < 4*65519 {
		t.Fatalf("compressed to %d bytes, too few for this test", len(body))
	}
	single := body[:65519]
	multi := body[65519 : 65519+65519+5000]
	rest := body[65519+65519+5000:]
	out := slices.Concat(
		// 16+65519 rounds up to 65536, which is 0 in 16 bits; no padding.
		b.overflowed(0, 65519, single),
		// Two pieces in one write: the first header covers both.
		b.overflowed((16+65519+16+5000+7)&^7-65536, 65519+16+5000,
			slices.Concat(multi[:65519], b.overflowed(16+5000, 0xdeadbeef, multi[65519:]))))
	for len(rest) > 0 {
		n := min(60000, len(rest))
		out = append(out, b.record(TypeCompressed2, 0, b.u64(uint64(n)), rest[:n], make([]byte, -n&7))...)
		rest = rest[n:]
	}
	r, got := mustRead(t, b.pipe(136, simpleEvents, nil, out))
	if d := r.Stats().Damage; d != nil {
		t.Fatal(d)
	}
	sameRecords(t, want, got)
}

func (b *builder) overflowed(headSize uint16, dataSize uint64, body []byte) []byte {
	out := b.order.AppendUint16(b.order.AppendUint16(b.u32(uint32(TypeCompressed2)), 0), headSize)
	return slices.Concat(out, b.u64(dataSize), body)
}

// AUXTRACE data lies behind its record, in pipes too.
func TestAuxtraceData(t *testing.T) {
	b := newBuilder(false)
	for _, size := range []int{8, 300, 3 << 20} {
		aux := b.record(TypeAuxtrace, 0, b.u64(uint64(size), 0, 0), b.u32(0, 1, 2, 0))
		data := slices.Concat(aux, bytes.Repeat([]byte{9}, size), b.simpleSample(1, 5, 6))
		for _, stream := range []bool{false, true} {
			for _, raw := range [][]byte{b.file(136, simpleEvents, nil, data), b.pipe(136, simpleEvents, nil, data)} {
				r, recs, err := readBytes(t, raw, stream)
				if err != nil || len(recs) != 2 || r.Stats().Damage != nil {
					t.Errorf("size %d: %d records, %v %+v", size, len(recs), err, r.Stats())
				}
			}
		}
	}
}

// Tracing data behind its record, larger than any record, and inside it.
func TestTracingData(t *testing.T) {
	b := newBuilder(false)
	format := "name: my_event\nID: 17\nformat:\n\tfield:int x;\toffset:8;\tsize:4;\n"
	trace := slices.Concat([]byte("\x17\x08\x44tracing0.6\x00\x00\x08"), b.u32(4096),
		[]byte("header_page\x00"), b.u64(3), []byte("abc"), []byte("header_event\x00"), b.u64(0),
		b.u32(1), b.u64(5), []byte("ftrac"), b.u32(1), []byte("sys\x00"), b.u32(1), b.u64(uint64(len(format))), []byte(format),
		make([]byte, 200_000))
	events := []builtEvent{{Attr{Type: TypeTracepoint, Config: 17, SampleType: FieldIP}, nil}}
	sample := b.record(TypeSample, 0, b.u64(5))
	behind := slices.Concat(b.record(TypeHeaderTracingData, 0, b.u32(uint32(len(trace)))), trace, sample)
	short := trace[:300]
	inside := slices.Concat(b.record(TypeHeaderTracingData, 0, b.u32(uint32(len(short))), short), sample)
	late := slices.Concat(sample, behind)
	for name, raw := range map[string][]byte{
		"behind": b.pipe(136, events, nil, behind), "inside": b.pipe(136, events, nil, inside),
		"late": b.pipe(136, events, nil, late), "in a file": b.file(136, events, []builtFeature{{FeatureTracingData, trace}}, sample),
	} {
		r, recs := mustRead(t, raw)
		if r.Stats().Damage != nil || len(recs) < 1 || r.Meta().Events[0].Name != "sys:my_event" || len(r.Meta().TracingData) < 300 {
			t.Errorf("%s: %d records, %+v, name %s, %d bytes", name, len(recs), r.Stats(), r.Meta().Events[0].Name, len(r.Meta().TracingData))
		}
	}
}

// EVENT_UPDATE: unit, scale, name and CPUs.
func TestEventUpdate(t *testing.T) {
	b := newBuilder(true)
	up := func(kind, id uint64, data []byte) []byte { return b.record(TypeEventUpdate, 0, b.u64(kind, id), data) }
	cpus := slices.Concat(b.order.AppendUint16(b.order.AppendUint16(nil, cpuMapList), 2), b.order.AppendUint16(b.order.AppendUint16(nil, 3), 5), make([]byte, 0))
	data := slices.Concat(up(updateUnit, 3, pad8("Joules")), up(updateScale, 3, b.u64(0x3fe0000000000000)),
		up(updateName, 3, pad8("energy")), up(updateCPUs, 3, cpus), up(updateName, 999, pad8("nobody")), b.simpleSample(1, 2, 3))
	r, _ := mustRead(t, b.pipe(136, simpleEvents, nil, data))
	ev := r.Meta().Events[1]
	if ev.Unit != "Joules" || ev.Scale != 0.5 || ev.Name != "energy" || !slices.Equal(ev.CPUs, []int32{3, 5}) {
		t.Errorf("%+v", ev)
	}
	if r.Stats().Malformed != 1 {
		t.Errorf("the update of an unknown id: %+v", r.Stats())
	}
}

// All feature sections, by sections and by records, in both byte orders.
func TestFeatures(t *testing.T) {
	for _, big := range []bool{false, true} {
		b := newBuilder(big)
		cat := slices.Concat[[]byte]
		id := append(bytes.Repeat([]byte{7}, 16), 0, 0, 0, 0, 16, 0, 0, 0)
		attr := b.attr(simpleEvents[0].attr, 136)
		fs := []builtFeature{
			{FeatureBuildID, b.record(0, MiscUser|miscBuildIDSize, b.u32(^uint32(0)), id, pad8("/bin/x"))},
			{FeatureHostname, b.str("host")}, {FeatureOSRelease, b.str("6.18")}, {FeatureVersion, b.str("6.1.2")},
			{FeatureArch, b.str("s390x")}, {FeatureNrCPUs, b.u32(8, 4)}, {FeatureCPUDesc, b.str("CPU")},
			{FeatureCPUID, b.str("id")}, {FeatureTotalMem, b.u64(77)},
			{FeatureCmdline, cat(b.u32(2), b.str("perf"), b.str("record"))},
			{FeatureEventDesc, cat(b.u32(1, 136), attr, b.u32(2), b.str("named"), b.u64(1, 2))},
			{FeaturePMUMappings, cat(b.u32(1), b.u32(9), b.str("uprobe"))},
			{FeatureGroupDesc, cat(b.u32(1), b.str("g"), b.u32(0, 2))},
			{FeatureSampleTime, b.u64(5, 6)}, {FeatureClockID, b.u64(1)},
			{FeatureCompressed, b.u32(1, 1, 3, 4, 5)},
			{FeatureCPUPMUCaps, cat(b.u32(1), b.str("branches"), b.str("32"))},
			{FeatureClockData, cat(b.u32(1, 4), b.u64(1e18, 55))},
			{FeatureHybridTopology, cat(b.u32(1), b.str("cpu_core"), b.str("0-3"))},
			{FeaturePMUCaps, cat(b.u32(1), b.u32(1), b.str("max_precise"), b.str("3"), b.str("cpu_core"))},
			{200, []byte("something new")},
		}
		for mode, raw := range map[string][]byte{
			"file": b.file(136, simpleEvents, fs, b.simpleSample(1, 2, 3)), "pipe": b.pipe(136, simpleEvents, fs, b.simpleSample(1, 2, 3)),
		} {
			r, recs := mustRead(t, raw)
			m := *r.Meta()
			if len(recs) != 1 || len(r.Stats().Warnings) != 0 || len(m.Features) != len(fs) ||
				m.Events[0].Name != "named" || m.Events[1].Leader != m.Events[0] || len(m.Events[0].Group) != 2 {
				t.Errorf("%s %s: %+v", mode, orderName(big), r.Stats())
			}
			want := Meta{
				Path: "test", Pipe: mode == "pipe", ByteOrder: byteOrder(big), Events: m.Events,
				BuildIDs: []BuildID{{-1, MiscUser | miscBuildIDSize, bytes.Repeat([]byte{7}, 16), "/bin/x"}},
				Hostname: "host", OSRelease: "6.18", Version: "6.1.2", Arch: "s390x", CPUsAvailable: 8, CPUsOnline: 4,
				CPUDesc: "CPU", CPUID: "id", TotalMemKiB: 77, Cmdline: []string{"perf", "record"},
				PMUMappings: map[EventType]string{9: "uprobe"}, Groups: []GroupDesc{{"g", 0, 2}}, SampleTime: TimeRange{5, 6},
				ClockID: 1, ClockData: &ClockData{4, 1e18, 55}, HybridTopology: []HybridPMU{{"cpu_core", "0-3"}},
				PMUCaps:    []PMUCaps{{"cpu", map[string]string{"branches": "32"}}, {"cpu_core", map[string]string{"max_precise": "3"}}},
				Compressed: &Compressed{1, 1, 3, 4, 5}, Features: m.Features, IDs: m.IDs, descs: m.descs,
			}
			if !reflect.DeepEqual(m, want) {
				t.Errorf("%s %s:\n%+v\nexpected\n%+v", mode, orderName(big), m, want)
			}
		}
	}
}

// A directory of perf record --threads: a header file and files of records.
func TestDirectory(t *testing.T) {
	b := newBuilder(false)
	dir := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "--threads") {
		t.Errorf("empty directory: %v", err)
	}
	write("data", b.file(136, simpleEvents, []builtFeature{{FeatureDirFormat, b.u64(1)}}, b.record(TypeComm, 0, b.pair(1, 1), pad8("first"),
		b.pair(0, 0), b.u64(0, 0))))
	for cpu := range 12 {
		var data []byte
		for i := range 50 {
			data = append(data, b.simpleSample(1, uint64(cpu), uint64(100+i*12+cpu))...)
		}
		if cpu%2 == 1 {
			data = b.compress(t, TypeCompressed, data, 333) // a stream of its own in each file
		}
		write(fmt.Sprintf("data.%d", cpu), data)
	}
	write("data.old", []byte("not a data file"))
	r, recs := readAll(t, dir)
	if len(recs) != 601 || recs[0].(*Comm).Comm != "first" || r.Meta().DirFormat != 1 || r.Stats().Damage != nil {
		t.Fatalf("%d records, %+v", len(recs), r.Stats())
	}
	for i, s := range samplesOf(recs) {
		if s.IP != uint64(i%12) {
			t.Fatalf("sample %d is from file %d", i, s.IP)
		}
	}
	if done, total := r.Progress(); done == 0 || done != total {
		t.Errorf("read %d of %d bytes", done, total)
	}
}

// A loop that stops early ends the goroutine that reads ahead.
func TestStopEarly(t *testing.T) {
	b := newBuilder(false)
	raw := b.file(136, simpleEvents, nil, b.stream(200_000))
	before := runtime.NumGoroutine()
	for range 5 {
		r, err := NewReader(bytes.NewReader(raw), "test")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for range r.Records() {
			if n++; n == 10 {
				break
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		for range r.Records() {
			n++
		}
		if n != 11 { // one for the error
			t.Errorf("%d records", n)
		}
	}
	for i := 0; runtime.NumGoroutine() > before; i++ {
		if i == 100 {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// broken fails after some bytes.
type broken struct{ r io.Reader }

var errBroken = errors.New("cable pulled")

func (b *broken) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err == io.EOF {
		err = errBroken
	}
	return n, err
}

// A pipe that fails gives what came before, then the error.
func TestReadError(t *testing.T) {
	b := newBuilder(false)
	raw := b.pipe(136, simpleEvents, nil, b.stream(2000))
	r, err := NewReader(&broken{bytes.NewReader(raw)}, "test")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range r.Records() {
		if err = e; e == nil {
			n++
		}
	}
	if n != 2000 || !errors.Is(err, errBroken) || !strings.Contains(err.Error(), fmt.Sprint("offset ", len(raw))) {
		t.Errorf("%d records, %v", n, err)
	}
}

// A pipe that delivers a byte at a time.
func TestSlowPipe(t *testing.T) {
	b := newBuilder(false)
	raw := b.pipe(136, simpleEvents, nil, b.stream(100))
	_, want := mustRead(t, raw)
	r, err := NewReader(&oneByte{raw}, "test")
	if err != nil {
		t.Fatal(err)
	}
	sameRecords(t, want, drain(t, r))
}

type oneByte struct{ b []byte }

func (o *oneByte) Read(p []byte) (int, error) {
	if len(o.b) == 0 {
		return 0, io.EOF
	}
	p[0] = o.b[0]
	o.b = o.b[1:]
	return 1, nil
}
