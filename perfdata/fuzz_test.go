package perfdata

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzReader reads anything: no panic, no hang, and counts that add up.
func FuzzReader(f *testing.F) {
	for _, big := range []bool{false, true} {
		b := newBuilder(big)
		every := []builtEvent{{everyAttr, []uint64{42}}}
		f.Add(b.file(144, every, []builtFeature{{FeatureHostname, b.str("h")}}, b.everyRecord()))
		f.Add(b.pipe(144, every, []builtFeature{{FeatureHostname, b.str("h")}}, b.everyRecord()))
		f.Add(b.pipe(64, simpleEvents, nil, b.stream(40)))
		f.Add(b.file(96, simpleEvents, nil, b.compress(f, TypeCompressed, b.stream(40), 100)))
		f.Add(b.pipe(96, simpleEvents, nil, b.compress(f, TypeCompressed2, b.stream(40), 100)))
	}
	f.Add([]byte("PERFILE2"))
	// The smallest of the public recordings, where they are at hand.
	for _, pattern := range []string{"*/fuzz/*", "*/sleep*.data", "*/quipper/perf.data*4.1?"} {
		paths, _ := filepath.Glob(filepath.Join(fixtureDir, pattern))
		more, _ := filepath.Glob(filepath.Join(fixtureDir, "*", pattern))
		for _, p := range append(paths, more...) {
			if raw, err := os.ReadFile(p); err == nil && len(raw) < 20_000 {
				f.Add(raw)
			}
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, stream := range []bool{false, true} {
			r, recs, err := readBytes(t, raw, stream)
			if err != nil {
				continue
			}
			s := r.Stats()
			total := int64(0)
			for typ, n := range s.Records {
				if !applies(typ) && typ != TypeFinishedRound && typ != TypeCompressed && typ != TypeCompressed2 {
					total += n
				}
			}
			applied := int64(0)
			for typ, n := range s.Records {
				if applies(typ) {
					applied += n
				}
			}
			// Malformed counts both kinds.
			if lost := total - int64(len(recs)) - s.UnknownID; lost < 0 || lost > s.Malformed || s.Malformed > lost+applied {
				t.Errorf("%d records, %d delivered, %+v", total, len(recs), s)
			}
		}
	})
}

// FuzzSort compares the sorter with a stable sort.
func FuzzSort(f *testing.F) {
	f.Add([]byte{1, 2, 3, 2, 3, 4}, uint16(10))
	f.Add(bytes.Repeat([]byte{9, 8, 7, 6, 5}, 50), uint16(1000))
	f.Fuzz(func(t *testing.T, raw []byte, limit uint16) {
		times := make([]int64, len(raw))
		for i, b := range raw {
			times[i] = int64(b)
		}
		got, _ := sortAll(t, times, int64(limit))
		want := expectedOrder(times)
		for i := range want {
			if len(got) != len(want) || got[i] != want[i] {
				t.Fatalf("%v sorted to %v", times, got)
			}
		}
	})
}
