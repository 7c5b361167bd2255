package vpmu

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestUnwind: perf unwinds the registers and stack bytes of a recording to the
// very callchains that the shadow stack gave for the same samples. The two
// know nothing of one another.
func TestUnwind(t *testing.T) {
	dir := t.TempDir()
	exact := DefaultRecording()
	exact.Output, exact.Samples = filepath.Join(dir, "exact"), 500
	dwarf := exact
	dwarf.Output, dwarf.Callchain, dwarf.StackDump = filepath.Join(dir, "dwarf"), "none", 16384
	fp := exact
	fp.Output, fp.Callchain = filepath.Join(dir, "fp"), "fp"
	res := run(t, Config{Program: []string{compile(t, "known.c", "-O2", "-pthread", "-g")}, Recordings: []Recording{exact, dwarf, fp}})
	if !res.Registers {
		t.Fatal("the emulator's registers cannot be read")
	}
	want, got := chains(t, exact.Output, -1), chains(t, dwarf.Output, 0)
	if len(want) != len(got) {
		t.Fatalf("%d and %d samples", len(want), len(got))
	}
	same := 0
	for i := range want {
		if slices.Equal(want[i], got[i]) {
			same++
		} else if same > i-5 {
			t.Logf("sample %d: shadow stack %x, perf unwinds %x", i, want[i], got[i])
		}
	}
	t.Logf("%d of %d callchains are the same", same, len(want))
	if float64(same) < 0.97*float64(len(want)) {
		t.Errorf("%d of %d callchains are the same", same, len(want))
	}
	if len(chains(t, fp.Output, -1)) != len(want) {
		t.Error("frame-pointer recording has another number of samples")
	}
}

// chains are the leader's callchains as perf script prints them; delta is
// added to return addresses (perf prints unwound ones less one).
func chains(t *testing.T, path string, delta int64) (all [][]int64) {
	t.Helper()
	out, err := exec.Command("perf", "script", "-i", path, "-F", "event,ip", "--no-inline").Output()
	if err != nil {
		t.Fatalf("perf script: %v", err)
	}
	for _, block := range strings.Split(string(out), "\n\n") {
		head, rest, ok := strings.Cut(strings.TrimSpace(block), "\n")
		if !ok || !strings.Contains(head, "cycles") {
			continue
		}
		var c []int64
		for i, l := range strings.Split(rest, "\n") {
			ip, err := strconv.ParseInt(strings.TrimSpace(l), 16, 64)
			if err != nil {
				t.Fatalf("%q: %v", l, err)
			}
			if i > 0 {
				ip += delta
			}
			c = append(c, ip)
		}
		all = append(all, c)
	}
	return all
}
