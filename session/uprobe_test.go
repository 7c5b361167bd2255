package session

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// leafCalls calls leaf 20000 times, at a rate that changes.
const leafCalls = `
__attribute__((noinline)) int leaf(int x) { __asm__ volatile(""); return x * 3 + 1; }
int main(void) {
	volatile int s = 0;
	for (int r = 0; r < 20; r++) {
		for (int i = 0; i < 1000; i++) s += leaf(i);
		for (volatile int i = 0; i < 2000000; i++) ;
	}
	return 0;
}`

// TestUprobeGroup: a group of a clock and a uprobe counts calls exactly on any
// Linux, and the intervals share them out without losing one.
func TestUprobeGroup(t *testing.T) {
	dir := t.TempDir()
	prog := filepath.Join(dir, "leafcalls")
	if err := os.WriteFile(prog+".c", []byte(leafCalls), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O1", "-o", prog, prog+".c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	if out, err := exec.Command("perf", "probe", "-q", "-f", "-x", prog, "leaf").CombinedOutput(); err != nil {
		t.Skipf("no right to set a probe: %v\n%s", err, out)
	}
	const event = "probe_leafcalls:leaf"
	t.Cleanup(func() { exec.Command("perf", "probe", "-q", "-d", event).Run() })

	s, _ := openSession(t, record(t, "-e", "{cpu-clock/period=500000/,"+event+"}:S", "--", prog))
	var calls, clock, dense, sparse uint64
	each(t, s, func(smp *Sample) {
		v := smp.Interval
		if v == nil || len(v.Counts) != 2 || v.Counts[0].Value != v.Clock || v.Counts[1].Event.Name != event {
			t.Fatalf("interval %+v", v)
		}
		n := v.Counts[1].Value
		calls += n
		clock += v.Clock
		if n > 0 {
			dense++
		} else {
			sparse++
		}
		// The hrtimer is late by microseconds, on a busy host more.
		if v.Overshoot >= smp.Event.SamplePeriod {
			t.Errorf("overshoot %d of period %d", v.Overshoot, smp.Event.SamplePeriod)
		}
	})
	if calls > 20000 || calls < 19000 { // the last tick is not the end of the program
		t.Errorf("%d calls counted, 20000 made", calls)
	}
	if dense == 0 || sparse == 0 {
		t.Errorf("%d intervals with calls, %d without; the program has both", dense, sparse)
	}
	if st := s.Stats(); len(st.Events) != 2 || st.Events[0].Reads != st.Samples || !strings.Contains(s.source.Meta().Events[0].Name, "clock") {
		t.Errorf("%+v", st)
	}
	t.Logf("%d calls in %d intervals with calls, %d without; clock %d ns", calls, dense, sparse, clock)
}
