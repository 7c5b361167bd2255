package perfdata

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// contents are records without what depends on the place of others.
func contents(recs []Record) []Record {
	for _, r := range recs {
		h := r.Header()
		h.Event, h.Offset = nil, 0
	}
	return recs
}

// cutEverywhere reads raw cut at every byte: there is no panic, and what comes
// is what the whole recording begins with. A recording without rounds is
// sorted as a whole, so the whole must be in the order of time already.
func cutEverywhere(t *testing.T, raw []byte, stream bool) {
	t.Helper()
	_, all, err := readBytes(t, raw, stream)
	if err != nil {
		t.Fatal(err)
	}
	contents(all)
	refused, damaged, most := 0, 0, 0
	for n := range raw {
		r, recs, err := readBytes(t, raw[:n], stream)
		if err != nil {
			var fe *FormatError
			if !errors.As(err, &fe) {
				t.Fatalf("cut at %d: %v", n, err)
			}
			refused++
			continue
		}
		if len(recs) < most {
			t.Fatalf("cut at %d: %d records, %d when cut earlier", n, len(recs), most)
		}
		most = len(recs)
		if len(recs) > len(all) || len(recs) > 0 && !reflect.DeepEqual(contents(recs), all[:len(recs)]) {
			t.Fatalf("cut at %d: the %d records are not the first ones", n, len(recs))
		}
		if s := r.Stats(); s.Damage != nil {
			damaged++
			inStream := strings.Contains(s.Damage.What, "compressed") // counts decompressed bytes
			if s.Damage.Offset > int64(n) && !inStream || s.Damage.What == "" {
				t.Fatalf("cut at %d: %v", n, s.Damage)
			}
		} else if len(recs) < len(all) && len(s.Warnings) == 0 && !r.Meta().Pipe {
			t.Fatalf("cut at %d: %d of %d records and no damage", n, len(recs), len(all))
		}
	}
	if damaged == 0 || refused == 0 {
		t.Errorf("%d cuts damaged, %d refused", damaged, refused)
	}
}

func TestCutEverywhere(t *testing.T) {
	b := newBuilder(false)
	fs := []builtFeature{{FeatureHostname, b.str("host")}, {FeatureCmdline, slices.Concat(b.u32(1), b.str("perf"))}}
	var data []byte
	for i := range 40 {
		data = append(data, b.simpleSample(1, uint64(i), uint64(i+1), 1, 2, 3)...)
	}
	every := []builtEvent{{everyAttr, []uint64{42}}}
	for name, raw := range map[string][]byte{
		"file":       b.file(136, simpleEvents, fs, data),
		"pipe":       b.pipe(136, simpleEvents, fs, data),
		"every file": b.file(144, every, fs, b.everyRecord()),
		"every pipe": b.pipe(144, every, fs, b.everyRecord()),
		"zstd file":  b.file(136, simpleEvents, fs, b.compress(t, TypeCompressed, data, 300)),
		"zstd2 pipe": b.pipe(136, simpleEvents, fs, b.compress(t, TypeCompressed2, data, 300)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cutEverywhere(t, raw, false)
		})
	}
}

// The same with real recordings, as files and as streams. Their records are
// not in order, so only the number of records and the absence of panics are
// compared.
func TestCutFixtures(t *testing.T) {
	for _, name := range []string{
		"google_perf_data_converter/quipper/perf.data.piped.header_features-4.16",
		"google_perf_data_converter/quipper/perf.data.ctx_switch_namespaces-4.14",
		"mstange_linux-perf-data/sleep.compressed.pipe.data",
		"mstange_linux-perf-data/sleep.data",
	} {
		raw, err := os.ReadFile(fixture(t, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			t.Parallel()
			most := 0
			for n := 0; n < len(raw); n++ {
				_, recs, err := readBytes(t, raw[:n], n%16 == 1)
				if err == nil && len(recs) < most {
					t.Fatalf("cut at %d: %d records, %d when cut earlier", n, len(recs), most)
				}
				most = max(most, len(recs))
			}
			if most == 0 {
				t.Error("no records")
			}
		})
	}
}

// perf record was killed: the data size in the header is still 0.
func TestKilledRecorder(t *testing.T) {
	b := newBuilder(false)
	raw := b.file(136, simpleEvents, nil, b.stream(100))
	copy(raw[48:], b.u64(0))
	r, recs := mustRead(t, raw)
	if w := r.Stats().Warnings; len(recs) != 100 || len(w) != 1 || !strings.Contains(w[0], "killed") || r.Stats().Damage != nil {
		t.Errorf("%d records, %+v", len(recs), r.Stats())
	}
}

// Headers that point anywhere.
func TestWildHeaders(t *testing.T) {
	b := newBuilder(false)
	whole := b.file(136, simpleEvents, []builtFeature{{FeatureHostname, b.str("host")}}, b.stream(100))
	set := func(at int, v uint64) []byte {
		raw := bytes.Clone(whole)
		copy(raw[at:], b.u64(v))
		return raw
	}
	data := int(load64(whole[40:], false))
	table := data + int(load64(whole[48:], false))
	attrs := int(load64(whole[24:], false))
	for name, c := range map[string]struct {
		raw     []byte
		refused string // part of the error
		damage  string
		warning string
		samples int
	}{
		"header size":         {raw: set(8, 5), refused: "header size 5"},
		"attr size small":     {raw: set(16, 20), refused: "attr entries of 20 bytes"},
		"attr size huge":      {raw: set(16, 1<<63), refused: "attr entries"},
		"attrs outside":       {raw: set(24, 1<<62), refused: "behind the end"},
		"attrs too long":      {raw: set(32, 1<<50), refused: "behind the end"},
		"no attr":             {raw: set(32, 0), refused: "no event"},
		"data outside":        {raw: set(40, 1<<61), damage: "behind the end of the file", samples: 0},
		"data too long":       {raw: set(48, 1<<40), damage: "before the end of its data", samples: -1},
		"data end overflows":  {raw: set(48, ^uint64(0)-10), warning: "has no end", damage: "", samples: -1},
		"ids outside":         {raw: set(attrs+136, 1<<60), warning: "ids of event 0", samples: -1},
		"ids too many":        {raw: set(attrs+136+8, 1<<60), warning: "ids of event 0", samples: -1},
		"feature outside":     {raw: set(table, 1<<60), warning: "HOSTNAME", samples: 100},
		"feature too long":    {raw: set(table+8, 1<<60), warning: "HOSTNAME", samples: 100},
		"feature table cut":   {raw: set(72, ^uint64(0)), warning: "table of", samples: 100},
		"feature contradicts": {raw: set(table+16, 1<<31), warning: "HOSTNAME", samples: 100},
		"attr own size":       {raw: set(attrs, 5<<32), refused: "size 5"},
		"no features":         {raw: set(72, 0), samples: 100},
		"record of size 2":    {raw: set(data, 9|2<<48), damage: "size 2"},
		"record of 65535":     {raw: set(table-8, 9|65535<<48), damage: "needs 65535 bytes, 8 are there", samples: 100},
	} {
		r, recs, err := readBytes(t, c.raw, false)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), "test: offset ") {
				t.Errorf("%s: %v, expected %q", name, err, c.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := r.Stats()
		if c.samples >= 0 && len(recs) != c.samples {
			t.Errorf("%s: %d records, expected %d", name, len(recs), c.samples)
		}
		if c.damage != "" && (s.Damage == nil || !strings.Contains(s.Damage.String(), c.damage)) {
			t.Errorf("%s: damage %v, expected %q", name, s.Damage, c.damage)
		}
		if got := strings.Join(s.Warnings, "\n"); (got == "") != (c.warning == "") || !strings.Contains(got, c.warning) {
			t.Errorf("%s: warnings %q, expected %q", name, got, c.warning)
		}
	}
}

// Files that are something else, and what the error has to say of them.
func TestSomethingElse(t *testing.T) {
	for raw, want := range map[string]string{
		"":                          "empty",
		"\x1f\x8b\x08\x00":          "gzip",
		"\x28\xb5\x2f\xfd....":      "zstd",
		"\x7fELF\x02\x01\x01":       "ELF",
		"perf  123 [000] 1.2: cycl": "text",
		"{\"a\": 1}":                "JSON",
		"PERFILE2":                  "cut after 8 bytes",
		"PERFFILE\x68\x00\x00\x00":  "version 1",
		"\x00\x01\x02\x03":          "begins with 00 01",
	} {
		for _, stream := range []bool{false, true} {
			_, _, err := readBytes(t, []byte(raw), stream)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, expected %q", raw, err, want)
			}
		}
	}
}

// Small recordings that claim to be large must not cost much memory.
func TestMemoryFollowsInput(t *testing.T) {
	b := newBuilder(false)
	huge := b.u64(1 << 39)
	cases := [][]byte{
		b.pipe(136, simpleEvents, nil, slices.Concat(b.record(TypeCompressed2, 0, huge, []byte("12345678")))),
		b.pipe(136, simpleEvents, nil, b.record(TypeHeaderTracingData, 0, b.u32(1<<31))),
		b.pipe(136, simpleEvents, nil, b.record(TypeAuxtrace, 0, b.u64(1<<62, 0, 0, 0, 0))),
		b.pipe(136, simpleEvents, []builtFeature{{FeatureCmdline, b.u32(1 << 30)}, {FeatureEventDesc, b.u32(1<<30, 136)},
			{FeaturePMUMappings, b.u32(1 << 31)}, {FeatureGroupDesc, b.u32(1 << 31)}, {FeaturePMUCaps, b.u32(1 << 31)}}, nil),
		b.pipe(136, simpleEvents, nil, b.record(TypeIDIndex, 0, b.u64(1<<40))),
	}
	for i, raw := range cases {
		for _, stream := range []bool{false, true} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, _, err := readBytes(t, raw, stream); err != nil {
				t.Errorf("case %d: %v", i, err)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
				t.Errorf("case %d: %d bytes for an input of %d", i, n, len(raw))
			}
		}
	}
}

// Compressed data that turns to garbage: what came before is delivered.
func TestCorruptCompression(t *testing.T) {
	b := newBuilder(false)
	packed := b.compress(t, TypeCompressed, b.stream(2000), 4000)
	at := 0
	for range 5 {
		at += parseHeader(packed[at:], false).size
	}
	copy(packed[at+8:], bytes.Repeat([]byte{0xff}, 40))
	r, recs := mustRead(t, b.file(136, simpleEvents, nil, packed))
	d := r.Stats().Damage
	if d == nil || !strings.Contains(d.What, "compressed data") || len(recs) < 100 || len(recs) > 1000 || d.Unread <= 0 {
		t.Errorf("%d records, damage %v", len(recs), d)
	}
}
