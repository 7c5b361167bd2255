package image

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// perfFrame is a line of perf script -F ip,sym,dso: user addresses are
// offsets in the file, kernel ones are addresses.
var perfFrame = regexp.MustCompile(`^\s*([0-9a-f]+) (.*) \(([^()]+|\[[^]]+\])\)$`)

// TestNamesEqualPerf records programs and compares the name of every distinct
// address with perf's. It differs from perf 6.1 on purpose in two points:
// symbol versions are taken off, and PLT stubs are named by their slots,
// which perf before 6.3 named by counting.
func TestNamesEqualPerf(t *testing.T) {
	data := filepath.Join(t.TempDir(), "perf.data")
	program := compile(t, "names.cc", "-g")
	script := fmt.Sprintf("for i in 1 2 3 4 5 6 7 8; do %s; done; go vet fmt; git log -n 400 --stat; gzip -c %s", program, program)
	out, err := exec.Command("perf", "record", "-q", "-e", "cpu-clock", "-F", "4999", "-g", "-o", data, "--", "sh", "-c", script+" >/dev/null 2>&1").CombinedOutput()
	if err != nil {
		if bytes.Contains(bytes.ToLower(out), []byte("permission")) {
			t.Skipf("no right to record: %s", out)
		}
		t.Fatalf("perf record: %v\n%s", err, out)
	}
	s := NewStore(Options{SameHost: true})
	defer s.Close()
	seen := map[string]bool{}
	total, named, differ := 0, 0, 0
	for line := range strings.Lines(run(t, "perf", "script", "-i", data, "-F", "ip,sym,dso", "--no-inline")) {
		line = strings.TrimRight(line, "\n")
		m := perfFrame.FindStringSubmatch(line)
		if m == nil || seen[line] {
			continue
		}
		seen[line] = true
		k := Key{Path: m[3]}
		switch {
		case m[3] == "[vdso]":
			k.Kind = VDSO
		case strings.HasPrefix(m[3], "[kernel"):
			k.Kind = Kernel
		case !strings.HasPrefix(m[3], "/"):
			continue
		}
		total++
		offset, _ := parseHex(m[1])
		got := "[unknown]"
		if f := s.Function(s.Loc(Addr{Image: s.Image(k), Offset: offset})); f != nil && f.Name != "" {
			got = f.Name
		}
		if got != "[unknown]" {
			named++
		}
		if want := plainName(m[2]); got != want && !strings.HasSuffix(got, "@plt") {
			differ++
			if differ <= 20 {
				t.Logf("%s %#x: perf %s, we %s", m[3], offset, m[2], got)
			}
		}
	}
	t.Logf("%d addresses, %d with a name, %d differ from perf", total, named, differ)
	if total < 500 || named < total/2 {
		t.Errorf("%d addresses, %d with a name: too few to compare", total, named)
	}
	if differ*200 > total {
		t.Errorf("%d of %d names differ from perf's", differ, total)
	}
}

// inlinedFrame is a line of perf script -F ip,sym,dso for an inlined function.
var inlinedFrame = regexp.MustCompile(`^\s*([0-9a-f]+) (.*) \(inlined\)$`)

// TestInlinesEqualPerf compares the functions inlined at every distinct
// address with what perf script prints. perf gives the outermost function the
// name the debug information has for it, which can be an alias of the
// symbol's and then counts as inlined; here it has its symbol's.
func TestInlinesEqualPerf(t *testing.T) {
	data := filepath.Join(t.TempDir(), "perf.data")
	a, b := compile(t, "inline.cc", "-g"), compile(t, "inline.cc", "-gdwarf-4", "-O3")
	out, err := exec.Command("perf", "record", "-q", "-e", "cpu-clock", "-F", "2999", "--call-graph", "dwarf,4096", "-o", data, "--",
		"sh", "-c", a+" 1 2 3 4 5 6 7; "+b+" 1 2 3 4 5 6 7").CombinedOutput()
	if err != nil {
		if bytes.Contains(bytes.ToLower(out), []byte("permission")) {
			t.Skipf("no right to record: %s", out)
		}
		t.Fatalf("perf record: %v\n%s", err, out)
	}
	total, inlined, differ := inlinesOfPerf(t, data)
	t.Logf("%d addresses, %d inlined functions, %d addresses differ from perf", total, inlined, differ)
	if inlined < 100 || differ > 0 {
		t.Errorf("%d inlined functions, %d of %d addresses differ from perf", inlined, differ, total)
	}
}

// inlinesOfPerf compares the addresses of a recording.
func inlinesOfPerf(t *testing.T, data string) (total, inlined, differ int) {
	s := NewStore(Options{})
	defer s.Close()
	seen := map[string]bool{}
	var chain []string
	at := ""
	for line := range strings.Lines(run(t, "perf", "script", "-i", data, "-F", "ip,sym,dso")) {
		line = strings.TrimRight(line, "\n")
		if m := inlinedFrame.FindStringSubmatch(line); m != nil {
			if m[1] != at { // the chain before this one ended in an alias
				chain = nil
			}
			at, chain = m[1], append(chain, m[2])
			continue
		}
		m := perfFrame.FindStringSubmatch(line)
		want := chain
		if chain = nil; m != nil && m[1] != at {
			want = nil
		}
		at = ""
		if m == nil || !strings.HasPrefix(m[3], "/") || seen[m[1]+m[3]] {
			continue
		}
		seen[m[1]+m[3]] = true
		offset, _ := parseHex(m[1])
		var got []string
		for _, f := range s.Frames(s.Loc(Addr{Image: s.Image(Key{Path: m[3]}), Offset: offset})) {
			name := f.Name
			if f.Scoped {
				name = f.System
			}
			// One that has the symbol's name, perf does not call inlined.
			if f.Function == nil && name != m[2] {
				got = append(got, name)
			}
		}
		total++
		inlined += len(want)
		if strings.Join(got, ";") != strings.Join(want, ";") {
			if differ++; differ < 20 {
				t.Logf("%s %s in %s: perf %q, we %q", m[3], m[1], m[2], want, got)
			}
		}
	}
	return total, inlined, differ
}
