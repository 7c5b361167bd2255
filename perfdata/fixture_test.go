package perfdata

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const fixtureDir = "../../shared/fixtures"

// fixture returns the path of a public recording. They are not part of this
// repository (licences): without them the test is skipped.
func fixture(tb testing.TB, name string) string {
	tb.Helper()
	path := filepath.Join(fixtureDir, name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(fixtureDir); errors.Is(err, fs.ErrNotExist) {
			tb.Skipf("the public recordings are not here: no %s", fixtureDir)
		}
	}
	return path
}

// keep copies a record that is reused by the reader.
func keep(rec Record) Record {
	switch r := rec.(type) {
	case *Sample:
		return r.Clone()
	case *Other:
		c := *r
		c.Data = slices.Clone(r.Data)
		return &c
	}
	return rec
}

// drain reads everything r has left.
func drain(tb testing.TB, r *Reader) []Record {
	tb.Helper()
	var out []Record
	for rec, err := range r.Records() {
		if err != nil {
			tb.Fatalf("%s: %v", r.Meta().Path, err)
		}
		out = append(out, keep(rec))
	}
	return out
}

// readAll reads a whole recording.
func readAll(tb testing.TB, path string) (*Reader, []Record) {
	tb.Helper()
	r, err := Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	return r, drain(tb, r)
}

func samplesOf(recs []Record) []*Sample {
	var out []*Sample
	for _, r := range recs {
		if s, ok := r.(*Sample); ok {
			out = append(out, s)
		}
	}
	return out
}
