package vpmu

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "prog")
	args := append([]string{"-o", bin, filepath.Join("progs", source)}, flags...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return bin
}

func run(t testing.TB, c Config) *Result {
	t.Helper()
	c.WorkDir = workDir(t)
	res, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestKnownCounts checks every convention of the truth on a program whose
// counts follow from its source.
func TestKnownCounts(t *testing.T) {
	for _, flags := range [][]string{{"-O2", "-pthread"}, {"-O2", "-pthread", "-static"}, {"-O2", "-pthread", "-Wl,-z,now", "-fcf-protection"}} {
		t.Run(flags[len(flags)-1], func(t *testing.T) { knownCounts(t, compile(t, "known.c", flags...)) })
	}
}

func knownCounts(t *testing.T, bin string) {
	dir := t.TempDir()
	res := run(t, Config{Program: []string{bin}, TruthDir: dir, Paths: true})
	calls := map[[2]string]float64{}
	for _, l := range readLines[EdgeLine](t, filepath.Join(dir, "dcg.jsonl")) {
		callee := l.Callee
		if strings.Contains(callee, "strto") { // several names for one entry
			callee = "strtol"
		}
		calls[[2]string{l.Caller, callee}] += l.Calls
	}
	for edge, want := range map[[2]string]float64{
		{"main", "tail_caller"}:    1000,
		{"tail_caller", "tail"}:    0, // a jump
		{"tail", "leaf"}:           1100,
		{"main", "thrower"}:        50,
		{"thrower", "deep"}:        50,
		{"deep", "deep"}:           450,
		{"main", "after_jump"}:     50,
		{"after_jump", "leaf"}:     50,
		{"main", "recurse"}:        10,
		{"main", "indirect"}:       300,
		{"indirect", "tail"}:       100,
		{"indirect", "leaf"}:       200,
		{"branches", "leaf"}:       1000,
		{"main", "strtol"}:         77,
		{"main", "raise"}:          20,
		{"on_signal", "leaf"}:      20,
		{"worker", "leaf"}:         3003,
		{"main", "on_signal"}:      0, // no call instruction
		{"raise", "on_signal"}:     0,
		{"start_thread", "worker"}: 3,
	} {
		if calls[edge] != want {
			t.Errorf("%s -> %s: %.0f calls, want %.0f", edge[0], edge[1], calls[edge], want)
		}
	}
	if res.Odd["signals"] != 20 {
		t.Errorf("%d signals, want 20", res.Odd["signals"])
	}
	if res.Odd["frames left without return"] < 50*11 {
		t.Errorf("%d frames left by longjmp, want at least 550", res.Odd["frames left without return"])
	}
	if res.Odd["unexpected successors"] != 0 {
		t.Errorf("odd: %v", res.Odd)
	}
	checkContexts(t, dir)
	checkTotals(t, dir, res)
}

// checkContexts: after_jump and recurse are where longjmp and recursion put them.
func checkContexts(t *testing.T, dir string) {
	cct := readLines[ContextLine](t, filepath.Join(dir, "cct.jsonl"))
	path := func(i int) (s string) {
		for ; i >= 0; i = cct[i].Parent {
			s = cct[i].Function + ";" + s
			if cct[i].Function == "main" {
				break
			}
		}
		return s
	}
	got := map[string]uint64{}
	for i, l := range cct {
		if l.ID != i || l.Parent >= i {
			t.Fatalf("line %d: id %d, parent %d", i, l.ID, l.Parent)
		}
		got[path(i)] += l.Calls
	}
	for p, want := range map[string]uint64{
		"main;after_jump;leaf;": 50,
		"main;thrower;deep;deep;deep;deep;deep;deep;deep;deep;deep;deep;": 50,
		"main;tail_caller;leaf;":   1000, // tail runs in tail_caller's activation
		"main;indirect;tail;leaf;": 100,
	} {
		if got[p] != want {
			t.Errorf("context %s: %d calls, want %d", p, got[p], want)
		}
	}
}

// checkTotals: the files agree with one another and with the counters.
func checkTotals(t *testing.T, dir string, res *Result) {
	var dcg, cct float64
	for _, l := range readLines[EdgeLine](t, filepath.Join(dir, "dcg.jsonl")) {
		dcg += l.Calls
	}
	for _, l := range readLines[ContextLine](t, filepath.Join(dir, "cct.jsonl")) {
		if l.SiteOffset != 0 {
			cct += float64(l.Calls)
		}
	}
	if dcg != float64(res.Total.Calls) || cct != dcg {
		t.Errorf("calls: %.0f in the DCG, %.0f in the CCT, %d counted", dcg, cct, res.Total.Calls)
	}
	var fn [2]uint64 // in branches(4000): i%4 == 0
	for _, l := range readLines[BranchLine](t, filepath.Join(dir, "edges.jsonl")) {
		if l.Function == "branches" && l.Taken+l.NotTaken == 4000 {
			fn[0] += min(l.Taken, l.NotTaken)
			fn[1] += max(l.Taken, l.NotTaken)
		}
	}
	if fn != [2]uint64{1000, 3000} {
		t.Errorf("branches: %v, want [1000 3000]", fn)
	}
	paths, flow := uint64(0), uint64(0)
	for _, l := range readLines[PathLine](t, filepath.Join(dir, "paths.jsonl")) {
		if l.Function == "branches" {
			paths += l.Count
			flow += l.Count * uint64(l.Branches)
		}
	}
	executed := uint64(0)
	for _, l := range readLines[BranchLine](t, filepath.Join(dir, "edges.jsonl")) {
		if l.Function == "branches" {
			executed += l.Taken + l.NotTaken
		}
	}
	if flow != executed || flow < 8000 {
		t.Errorf("paths in branches hold %d conditional branches, %d were executed", flow, executed)
	}
	if paths != 4001 { // one for each round of the loop, and the one to the return
		t.Errorf("%d paths in branches, want 4001", paths)
	}
}
