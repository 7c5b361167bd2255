package session

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// userCalls runs f for every sample of a recording with the addresses of its
// user frames, less base.
func userCalls(t *testing.T, path string, base uint64, f func(smp *Sample, addrs []uint64)) *Stats {
	s, _ := openSession(t, path)
	each(t, s, func(smp *Sample) {
		var addrs []uint64
		for _, fr := range s.frames {
			if fr.Mode == unwind.ModeUser {
				addrs = append(addrs, fr.Addr-base)
			}
		}
		f(smp, addrs)
	})
	return s.Stats()
}

var hotspotHead = regexp.MustCompile(`^[^\t\n]+\t-?\d+\t(-?\d+)\t(\d+)\.(\d{9})$`)

// hotspotCalls reads the text hotspot's unwinder made of a recording: by thread
// and time, the addresses of the user frames that are not inlined. It prints
// the ip, then the entry of the function called last, then the calls.
func hotspotCalls(t *testing.T, path string) map[string][]uint64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]uint64{}
	key := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if m := hotspotHead.FindStringSubmatch(line); m != nil {
			key = m[1] + " " + m[2] + m[3]
			continue
		}
		// The first line of each frame has no function: its size and address are 0.
		f := strings.Split(line, "\t")
		if len(f) < 3 || f[len(f)-1] != "0 0" {
			continue
		}
		rel, abs, _ := strings.Cut(f[1], " ")
		a, err1 := strconv.ParseUint(rel, 16, 64)
		b, err2 := strconv.ParseUint(abs, 16, 64)
		if err1 == nil && err2 == nil && a == b && a != 0 && a < 1<<63 { // inlined ones have no second address
			all[key] = append(all[key], a)
		}
	}
	return all
}

// TestLBREqualsHotspot: the calls of the KDAB recording are those that
// hotspot's unwinder printed.
func TestLBREqualsHotspot(t *testing.T) {
	path := fixture(t, "KDAB_perfparser/vector_static_gcc/perf.lbr.data")
	want := hotspotCalls(t, path+".expected.txt")
	compared := 0
	userCalls(t, path, 0, func(smp *Sample, got []uint64) {
		if len(smp.Raw.Branches) == 0 {
			return
		}
		w := want[fmt.Sprintf("%d %d", smp.Thread.TID, smp.Time)]
		if calls := got[1:]; len(w) < len(calls) || !slices.Equal(calls, w[len(w)-len(calls):]) || len(calls) != len(smp.Raw.Branches) {
			t.Errorf("%d: %x, hotspot %x", smp.Time, got, w)
		}
		if smp.Raw.Callchain[0] == perfdata.ContextUser && (got[0] != w[0] || len(w) != len(got)+1 || w[1] != smp.Raw.Branches[0].To) {
			t.Errorf("%d: %x, hotspot %x", smp.Time, got, w)
		}
		compared++
	})
	if compared < 15 {
		t.Errorf("compared %d samples", compared)
	}
}

// attr128 makes a copy of a recording whose attributes perf 6.1 can read: it
// refuses those of 136 bytes (the last 8, config3, are zero here).
func attr128(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	const header, entry, short = 16, 136 + 16, 128 + 16 // offsets in perf_file_header: attr_size at 16, attrs at 24
	if le.Uint64(b[header:]) != entry {
		t.Fatalf("attribute entries of %d bytes", le.Uint64(b[header:]))
	}
	at, size := le.Uint64(b[24:]), le.Uint64(b[32:])
	for i := range size / entry {
		from, to := b[at+i*entry:], b[at+i*short:]
		ids := slices.Clone(from[136:entry])
		copy(to[:128], from[:128])
		le.PutUint32(to[4:], 128)
		copy(to[128:], ids)
	}
	le.PutUint64(b[header:], short)
	le.PutUint64(b[32:], size/entry*short)
	out := filepath.Join(t.TempDir(), "perf.data")
	if err := os.WriteFile(out, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLBREqualsPerf: the calls of a real recording are those of perf script
// with --stitch-lbr. perf shows the entry of the function called last in place
// of the ip.
func TestLBREqualsPerf(t *testing.T) {
	data := attr128(t, fixture(t, "nevesnunes_covlizer/perf.data"))
	out, err := exec.Command("perf", "script", "-f", "--ns", "--no-inline", "--stitch-lbr", "-i", data, "-F", "tid,time,ip").Output()
	if err != nil {
		t.Fatalf("perf script: %v", err)
	}
	perf := map[string][]uint64{}
	key := ""
	for line := range strings.Lines(string(out)) {
		w := strings.Fields(line)
		switch {
		case len(w) == 2:
			key = w[0] + " " + strings.NewReplacer(".", "", ":", "").Replace(w[1])
		case len(w) == 1:
			if a, err := strconv.ParseUint(w[0], 16, 64); err == nil && a < 1<<63 {
				perf[key] = append(perf[key], a)
			}
		}
	}
	const base = 0x400000 // of the program; perf prints offsets
	samples, calls := 0, 0
	st := userCalls(t, data, base, func(smp *Sample, got []uint64) {
		samples++
		if len(smp.Raw.Branches) == 0 {
			return
		}
		w := perf[fmt.Sprintf("%d %d", smp.Thread.TID, smp.Time)]
		calls += len(got) - 1
		if len(w) == 0 || !slices.Equal(got[1:], w[1:]) || w[0] != smp.Raw.Branches[0].To-base {
			t.Errorf("%d: %x, perf %x", smp.Time, got, w)
		}
	})
	t.Logf("%d samples, %d calls, %d stitched, outcomes %v", samples, calls, st.Stitched, st.Outcomes)
	if samples != 856 || calls < 2000 {
		t.Errorf("%d samples, %d calls", samples, calls)
	}
}
