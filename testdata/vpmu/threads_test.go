package vpmu

import (
	"path/filepath"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// TestLatency: ticks on the wall clock, taken at the next call once the thread
// runs again, favour the call behind the lock (Lee 2015, section 2.3); ticks
// on the thread's own clock do not.
func TestLatency(t *testing.T) {
	dir := t.TempDir()
	wall, thread := DefaultRecording(), DefaultRecording()
	wall.Output, wall.Clock, wall.Defer, wall.Members = filepath.Join(dir, "wall"), "wall", true, []string{"near_call", "cycles"}
	thread.Output = filepath.Join(dir, "thread")
	bin := compile(t, "lock.c", "-O2", "-pthread")
	res := run(t, Config{Program: []string{bin, "300"}, Recordings: []Recording{wall, thread}, TruthDir: dir, Slice: 100_000})
	sites := map[string]uint64{}
	for _, l := range readLines[EdgeLine](t, filepath.Join(dir, "dcg.jsonl")) {
		if l.Callee == "first" || l.Callee == "second" {
			if l.Calls != 4*300*50 {
				t.Errorf("%s: %.0f calls", l.Callee, l.Calls)
			}
			sites[l.Callee] = l.SiteOffset
		}
	}
	share := func(path string) float64 {
		all, others, _ := samples(t, path)
		if others[perfdata.TypeSwitch] < 100 || others[perfdata.TypeFork] != 4 || others[perfdata.TypeExit] != 4 {
			t.Errorf("%s: records %v", path, others)
		}
		x := newText(t, path)
		n := map[string]float64{}
		for _, s := range all {
			for _, ip := range s.Callchain {
				for name, site := range sites {
					if f, off := x.find(ip); f == bin && off > site && off <= site+5 {
						n[name]++
					}
				}
			}
		}
		if n["first"]+n["second"] < 0.6*float64(len(all)) { // the rest: lock and unlock
			t.Errorf("%s: %v of %d samples in the calls", path, n, len(all))
		}
		return n["first"] / (n["first"] + n["second"])
	}
	biased, fair := share(wall.Output), share(thread.Output)
	t.Logf("share of the first call: %.3f by the wall clock, %.3f by the thread's", biased, fair)
	if biased < 0.55 {
		t.Errorf("wall clock: %.3f of the samples are in the first call; it should be favoured", biased)
	}
	if fair < 0.46 || fair > 0.54 {
		t.Errorf("thread clock: %.3f of the samples are in the first call, 0.5 expected", fair)
	}
	if res.Samples[0] <= res.Samples[1] {
		t.Errorf("%d wall samples, %d thread samples: four threads wait for each tick", res.Samples[0], res.Samples[1])
	}
}
