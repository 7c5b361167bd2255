package session

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// fixture returns the path of a recording made by others with other tools.
func fixture(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "fixtures", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("recording %s is not here: it is not part of the repository", name)
	}
	return path
}

// openSession opens a recording.
func openSession(t testing.TB, path string) (*Session, *image.Store) {
	t.Helper()
	r, err := perfdata.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	store := image.NewStore(image.Options{})
	return New(r, store), store
}

// each runs f on every sample of a recording.
func each(t testing.TB, s *Session, f func(*Sample)) {
	t.Helper()
	for smp, err := range s.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		f(smp)
	}
}

// TestWithCallchain compares with the numbers of perf_data_converter's own test.
// It leaves out frames that nothing is mapped at, and looks up every frame but
// the leaf one byte before, even the instruction pointer under a kernel part.
func TestWithCallchain(t *testing.T) {
	s, store := openSession(t, fixture(t, "google_perf_data_converter/converter/with-callchain.perf.data"))
	samples, stacks, locs, nonLeaf := 0, map[string]bool{}, map[image.Addr]bool{}, 0
	each(t, s, func(smp *Sample) {
		samples++
		key := fmt.Sprint(smp.Stack)
		known := stacks[key]
		stacks[key] = true
		for i, l := range smp.Stack {
			a := store.Addr(l)
			if a.Image.Kind == image.Unknown {
				continue
			}
			a.Return = false
			if i > 0 {
				a.Offset--
				if !known {
					nonLeaf++
				}
			}
			locs[a] = true
		}
	})
	if samples != 48399 || len(stacks) != 1210 || nonLeaf != 2247 || len(locs) != 1138 {
		t.Errorf("%d samples, %d stacks with %d non-leaf frames, %d addresses; want 48399, 1210, 2247, 1138",
			samples, len(stacks), nonLeaf, len(locs))
	}
}

func TestSingleEvent(t *testing.T) {
	s, _ := openSession(t, fixture(t, "google_perf_data_converter/converter/single-event-single-process.perf.data"))
	samples, locs := 0, map[image.Loc]bool{}
	each(t, s, func(smp *Sample) {
		samples++
		if len(smp.Stack) != 1 || smp.Outcome != unwind.Empty {
			t.Fatalf("sample at %d has stack %v, %v", smp.Time, smp.Stack, smp.Outcome)
		}
		locs[smp.Stack[0]] = true
	})
	if samples != 45937 || len(locs) != 1061 {
		t.Errorf("%d samples, %d addresses; want 45937 and 1061", samples, len(locs))
	}
}

// TestLaterMappingReplaces: perf itself was mapped where the program came to
// lie after exec, and its mapping was longer.
func TestLaterMappingReplaces(t *testing.T) {
	s, store := openSession(t, fixture(t, "google_autofdo/test.lbr"))
	at := map[uint64]int{}
	each(t, s, func(smp *Sample) {
		if a := store.Addr(smp.Stack[0]); filepath.Base(a.Image.Path) != "perf" && a.Image.Kind == image.File {
			at[a.Offset]++
		}
		if len(smp.Branches) != len(smp.Raw.Branches) {
			t.Fatalf("%d branches of %d", len(smp.Branches), len(smp.Raw.Branches))
		}
	})
	if at[0xfe0] != 55 || at[0x1005] != 18 {
		t.Errorf("%d samples at 0xfe0, %d at 0x1005; want 55 and 18", at[0xfe0], at[0x1005])
	}
}

// TestGroupReads: the differences of every counter add up to its last value,
// and all of them to the known totals.
func TestGroupReads(t *testing.T) {
	s, _ := openSession(t, fixture(t, "KDAB_hotspot/perf.data.PerfFormatLost"))
	sums, last := map[uint64]uint64{}, map[uint64]uint64{}
	totals := map[string]uint64{}
	var clock uint64
	each(t, s, func(smp *Sample) {
		v := smp.Interval
		if v == nil || len(v.Counts) != 2 || v.Counts[0].Event != smp.Event {
			t.Fatalf("interval %+v", v)
		}
		clock += v.Clock
		for i, c := range smp.Raw.Counters {
			sums[c.ID] += v.Counts[i].Value
			totals[v.Counts[i].Event.Name] += v.Counts[i].Value
			last[c.ID] = c.Value
		}
		if v.Lost != 0 || v.Throttled || v.Backwards || v.Multiplexed() {
			t.Errorf("interval at %d: %+v", smp.Time, v)
		}
	})
	for id, want := range last {
		if sums[id] != want {
			t.Errorf("id %d: differences add up to %d, last value %d", id, sums[id], want)
		}
	}
	if len(totals) != 2 || clock != 7221496 {
		t.Errorf("clock %d, totals %v; want 7221496 cycles and 6379415 instructions", clock, totals)
	}
	for name, n := range totals {
		if n != 7221496 && n != 6379415 {
			t.Errorf("%s: %d", name, n)
		}
	}
}

// TestSwitchRecords compares the switches taken from SWITCH records, which
// come from threads that had been running, with the records themselves.
func TestSwitchRecords(t *testing.T) {
	s, _ := openSession(t, fixture(t, "GrapheneOS_platform_system_extras/perf_with_trace_offcpu_v2.data"))
	waited := uint64(0)
	each(t, s, func(smp *Sample) {
		if v := smp.Interval; v != nil {
			waited += v.Waited
			if v.Start != 0 && v.Waited+v.Blocked > v.End-v.Start {
				t.Errorf("off the CPU for %d+%d of %d ns", v.Waited, v.Blocked, v.End-v.Start)
			}
		}
	})
	st := s.Stats()
	if st.SwitchesOut != 95 || st.Preempted != 7 || st.SwitchesIn != 97 {
		t.Errorf("%d out, %d preempted, %d in; want 95, 7, 97", st.SwitchesOut, st.Preempted, st.SwitchesIn)
	}
	if waited == 0 {
		t.Error("nobody waited, though threads were preempted")
	}
}

// TestEveryFixture only asks that nothing panics and nothing vanishes.
func TestEveryFixture(t *testing.T) {
	root := fixture(t, "README.md")
	filepath.Walk(filepath.Dir(root), func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		r, err := perfdata.Open(path)
		if err != nil {
			return nil // not a recording, or one that must be refused
		}
		defer r.Close()
		s := New(r, image.NewStore(image.Options{}))
		var n uint64
		for smp, err := range s.Samples() {
			if err != nil {
				break
			}
			n++
			if smp.Thread == nil || smp.Event == nil {
				t.Fatalf("%s: sample %d has no thread or event", path, n)
			}
		}
		st := s.Stats()
		if n != st.Samples {
			t.Errorf("%s: %d samples came out of %d", path, n, st.Samples)
		}
		return nil
	})
}

// TestFixturesAgainstPerf compares every recording that perf 6.1 prints
// without unwinding.
func TestFixturesAgainstPerf(t *testing.T) {
	for _, name := range []string{
		"GrapheneOS_platform_system_extras/generated_by_linux_perf.data",
		"GrapheneOS_platform_system_extras/perf_b.data",
		"GrapheneOS_platform_system_extras/perf_with_two_event_types.data",
		"KDAB_perfparser/probe.data.file",
		"KDAB_perfparser/probe.data.stream",
		"google_autofdo/perf-kernel.data",
		"google_autofdo/propeller_sample_1.perfdata1",
		"google_autofdo/test.lbr",
		"google_perf_data_converter/converter/single-event-single-process.perf.data",
		"google_perf_data_converter/converter/with-callchain.perf.data",
		"google_perf_data_converter/quipper/perf.data.armv7-3.4",
		"google_perf_data_converter/quipper/perf.data.branch-4.14",
		"google_perf_data_converter/quipper/perf.data.branch_stack_hw_index",
		"google_perf_data_converter/quipper/perf.data.callgraph-3.4",
		"google_perf_data_converter/quipper/perf.data.callgraph_and_branch-3.4",
		"google_perf_data_converter/quipper/perf.data.ctx_switch_namespaces-4.14",
		"google_perf_data_converter/quipper/perf.data.forkexit-3.8",
		"google_perf_data_converter/quipper/perf.data.group_desc-4.14",
		"google_perf_data_converter/quipper/perf.data.hybrid_topology",
		"google_perf_data_converter/quipper/perf.data.lost_samples-4.4",
		"google_perf_data_converter/quipper/perf.data.piped.ctx_switch_namespaces-4.14",
		"google_perf_data_converter/quipper/perf.data.piped.extrabyte-3.4",
		"google_perf_data_converter/quipper/perf.data.piped.header_features-4.16",
		"google_perf_data_converter/quipper/perf.data.piped.header_features_aligned-6.12",
		"google_perf_data_converter/quipper/perf.data.piped.hw_and_sw-3.4",
		"google_perf_data_converter/quipper/perf.data.proc.map.timeout-3.18",
		"google_perf_data_converter/quipper/perf.data.singleprocess-3.8",
		"google_perf_data_converter/quipper/perf.data.throttle-3.8",
		"microsoft_LinuxTracepoints-Net/pipe.data",
		"mstange_linux-perf-data/sleep.compressed.pipe.data",
	} {
		path := fixture(t, name)
		t.Run(filepath.Base(name), func(t *testing.T) { compareScripts(t, path, 0) })
	}
}
