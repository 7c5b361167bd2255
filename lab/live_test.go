package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/accuracy"
)

func TestSourceEntries(t *testing.T) {
	for _, c := range []struct {
		name     string
		deb822   bool
		in, want string
	}{
		{
			"deb822", true,
			"Types: deb\nURIs: http://archive/debian\n\ntypes: deb deb-src\nURIs: http://other/debian\n",
			"Types: deb-src\nURIs: http://archive/debian\n\nTypes: deb-src\nURIs: http://other/debian\n",
		},
		{
			"lines", false,
			"# deb of Debian\ndeb [arch=amd64] http://archive/debian stable main\ndeb-src http://archive/debian stable main\n",
			"# deb of Debian\ndeb-src [arch=amd64] http://archive/debian stable main\n\n",
		},
	} {
		if got := sourceEntries(c.in, c.deb822); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestMask(t *testing.T) {
	for flags, want := range map[string]string{
		"fpu avx2 erms bmi2 movbe sse4_2 avx512f": "-AVX512F,-AVX512VL,-AVX512BW",
		"fpu bmi2 movbe sse4_2":                   "-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-ERMS",
	} {
		got := mask("processor\t: 0\nflags\t\t: " + flags + "\nbugs\t\t: avx2\n")
		if got != "GLIBC_TUNABLES=glibc.cpu.hwcaps="+want {
			t.Errorf("mask(%q) = %s, want ...%s", flags, got, want)
		}
	}
}

func TestStepExpand(t *testing.T) {
	dir, args := step("$OBJ", "cc -I$SRC/include -o $BIN").expand("/s", "/o", "/b/p")
	if got := dir + ": " + strings.Join(args, " "); got != "/o: cc -I/s/include -o /b/p" {
		t.Errorf("got %s", got)
	}
}

func TestBuiltProgramsKeepFramePointers(t *testing.T) {
	for _, p := range builtPrograms() {
		all := ""
		for _, s := range p.build {
			all += strings.Join(s.args, " ") + "\n"
		}
		if !strings.Contains(all, frames) && !strings.Contains(all, "go build") {
			t.Errorf("%s is built without %s:\n%s", p.Name, frames, all)
		}
	}
}

func TestFalseEdges(t *testing.T) {
	at := func(site uint64) accuracy.Call {
		return accuracy.Call{SiteModule: "a", SiteOffset: site, CalleeModule: "a", CalleeOffset: 8}
	}
	truth := &accuracy.Profile{Calls: accuracy.Weights[accuracy.Call]{at(1): 1000, at(2): 5}}
	got := &accuracy.Profile{Calls: accuracy.Weights[accuracy.Call]{at(1): 60, at(3): 20}}
	r := liveRecording{Samples: 100}
	r.edges(truth, got)
	if r.NoEdge < 19.99 || r.NoEdge > 20.01 || r.Untrue != 20 {
		t.Errorf("no edge %.2f %%, false edge %.2f %%; want 20 and 20", r.NoEdge, r.Untrue)
	}
}

func TestLacks(t *testing.T) {
	err := errors.New("method lbr: the recording has no branch stacks; perf record -j any_call,u takes them")
	if got := lacks(err); got != "the recording has no branch stacks" {
		t.Errorf("got %q", got)
	}
}

func TestLiveTables(t *testing.T) {
	score := func(program string, built bool, hz, repeat int, v float64) liveScore {
		return liveScore{program, built, "DWARF", hz, repeat, "none", map[string]float64{"dcg_overlap": v, "dcg_function_overlap": v + 1}}
	}
	l := &live{rates: []int{5000, 20000}, repeats: 2, result: liveResult{
		Processor: "P", Kernel: "6.1",
		Truths: []liveTruth{{Program: "a", Built: true, Calls: 2e6, Repeat: 100}, {Program: "b", Built: true}, {Program: "a"}},
		Scores: []liveScore{
			score("a", true, 20000, 1, 40), score("a", true, 20000, 2, 42), score("b", true, 20000, 1, 60),
			score("b", true, 20000, 2, 60), score("a", false, 20000, 1, 7), score("a", true, 5000, 1, 30),
		},
		Recordings: []liveRecording{
			{Program: "a", Built: true, Stacks: "DWARF", Hz: 20000, Samples: 100, Untrue: 3, Missing: -1},
			{Program: "a", Built: true, Stacks: "DWARF", Hz: 20000, Samples: 200, Untrue: 5, Missing: -1},
		},
		LeftOut: map[string]string{"density": "no counter", "cbs": "no counter"},
	}}
	var b bytes.Buffer
	if err := l.markdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| stacks | method | a | b | average |\n|---|---|---|---|---|\n| DWARF | none | 41.0 ±1.0 | 60.0 ±0.0 | 50.5 |\n",
		"| DWARF | none | 42.0 ±1.0 | 61.0 ±0.0 | 51.5 |\n",
		"| DWARF | none | 30.0 ±0.0 | - | 30.0 |\n", // 5 kHz: b was not recorded
		"| DWARF | none | 7.0 ±0.0 | 7.0 |\n",       // shipped, kept apart
		"| a | built | DWARF | 150 | 0 | - | 0.0 | 4.0 | 0.0 |\n",
		"Left out, because no counter: cbs; density.\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("not in the tables: %q", want)
		}
	}
	if t.Failed() {
		t.Log(b.String())
	}
}
