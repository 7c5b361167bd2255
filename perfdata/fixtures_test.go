package perfdata

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// fixtureWant is what the README of the public recordings, the tests of the
// projects they come from, or a plain walk by header.size say of a recording.
type fixtureWant struct {
	name    string
	samples int64
	records map[RecordType]int64 // further counts, not all
	events  []string             // names
	order   string               // "big" for big-endian
	damage  int64                // offset of the damage, 0 for none
	unread  int64
	check   func(t *testing.T, r *Reader, recs []Record)
}

var fixtureWants = []fixtureWant{
	{name: "google_perf_data_converter/quipper/perf.data.forkexit-3.8", samples: 10335, records: map[RecordType]int64{TypeFork: 254, TypeExit: 510, TypeComm: 488}, events: []string{"cycles"}},
	{name: "google_perf_data_converter/quipper/perf.data.throttle-3.8", samples: 14980, records: map[RecordType]int64{TypeThrottle: 68, TypeUnthrottle: 64}, events: []string{"cycles", "instructions"}, check: checkFixedPeriod(10000)},
	{name: "google_perf_data_converter/quipper/perf.data.proc.map.timeout-3.18", samples: 8, records: map[RecordType]int64{TypeMmap2: 624}},
	{name: "google_perf_data_converter/quipper/perf.data.singleprocess-3.8", samples: 13},
	{name: "google_perf_data_converter/quipper/perf.data.branch-4.14", samples: 13},
	{name: "google_perf_data_converter/quipper/perf.data.callgraph_and_branch-3.4", samples: 923},
	{name: "google_perf_data_converter/quipper/perf.data.lost_samples-4.4", samples: 191, records: map[RecordType]int64{TypeLostSamples: 2}, events: []string{"cycles:pp", "instructions:pp", "branch-instructions:pp"}, check: checkLostSamples},
	{name: "google_perf_data_converter/quipper/perf.data.group_desc-4.14", samples: 13, events: []string{"cache-references", "branch-misses"}, check: checkGroup(2)},
	{name: "google_perf_data_converter/quipper/perf.data.intel_pt-4.14", samples: 15, records: map[RecordType]int64{TypeAuxtraceInfo: 1, TypeAuxtrace: 2, TypeAux: 10, TypeItraceStart: 2, TypeSwitchCPUWide: 152}},
	{name: "google_perf_data_converter/quipper/perf.data.hybrid_topology", samples: 7, events: []string{"cpu_core/cycles:ppp/", "cpu_atom/cycles:ppp/", "dummy:HG"}, check: checkHybrid},
	{name: "google_perf_data_converter/quipper/perf.data.piped.hw_and_sw-3.4", samples: 4275, events: []string{"cycles", "branch-misses", "cpu-clock"}},
	{name: "google_perf_data_converter/quipper/perf.data.piped.header_features-4.16", samples: 2, records: map[RecordType]int64{TypeHeaderFeature: 14, TypeThreadMap: 1, TypeCPUMap: 1, TypeEventUpdate: 1}},
	{name: "google_perf_data_converter/quipper/perf.data.piped.header_features_aligned-6.12", samples: 9, records: map[RecordType]int64{TypeHeaderFeature: 20, TypeIDIndex: 1, TypeFinishedInit: 1}, check: checkIDIndex},
	{name: "google_perf_data_converter/quipper/perf.data.piped.ctx_switch_namespaces-4.14", samples: 7, records: map[RecordType]int64{TypeSwitch: 2, TypeNamespaces: 1}},
	{name: "google_perf_data_converter/quipper/perf.data.piped.corrupted.zero_size_sample-3.2", records: map[RecordType]int64{TypeMmap: 468, TypeComm: 100}, damage: 49104, unread: 60640 - 49104},
	{name: "google_perf_data_converter/quipper/perf.data.piped.extrabyte-3.4", samples: 5218, damage: 577664, unread: 1, events: []string{"cycles", "instructions", "cache-misses", "cache-references", "branches", "branch-misses"}},
	{name: "google_perf_data_converter/converter/with-callchain.perf.data", samples: 48399, check: checkStacks(1210, 2247)},
	{name: "google_perf_data_converter/converter/single-event-single-process.perf.data", samples: 45937},
	{name: "google_autofdo/test.lbr", samples: 9232, events: []string{"br_inst_exec:taken"}, check: checkAutofdo},
	{name: "google_autofdo/propeller_sample_1.perfdata1", samples: 3740, records: map[RecordType]int64{TypeThrottle: 926, TypeUnthrottle: 926}, check: checkPropeller},
	{name: "google_autofdo/perf-kernel.data", samples: 24, check: checkPerfKernel},
	{name: "google_autofdo/hierarchical_discriminator_test.x86_64.perf.data", samples: 145, records: map[RecordType]int64{TypeKsymbol: 1}},
	{name: "KDAB_perfparser/vector_static_gcc/perf.data", samples: 45, check: checkUserDumps(8192)},
	{name: "KDAB_perfparser/vector_static_gcc/perf.data.zstd", samples: 34, records: map[RecordType]int64{TypeCompressed: 3, TypeCgroup: 1}, check: checkCompressed},
	{name: "KDAB_perfparser/vector_static_gcc/perf.lbr.data", samples: 29, check: checkCallStackLBR(4, false)},
	{name: "KDAB_perfparser/parallel_static_gcc/perf.data.zstd", samples: 242, records: map[RecordType]int64{TypeSwitch: 42, TypeFork: 24, TypeExit: 25}, events: []string{"cycles", "sched:sched_switch"}, check: checkEventSamples("sched:sched_switch", 9)},
	{name: "KDAB_perfparser/cpp-inlining/cpp-inlining.perf.data", samples: 539, events: []string{"cpu_atom/cycles:Pu/", "cpu_core/cycles:Pu/", "dummy:HGu"}},
	{name: "KDAB_perfparser/probe.data.file", samples: 1, records: map[RecordType]int64{TypeMmap: 112, TypeMmap2: 8}, events: []string{"probe_untitled1:main"}, check: checkMaxTime(13732862274100)},
	{name: "KDAB_perfparser/probe.data.stream", samples: 1, events: []string{"probe_untitled1:main"}, check: checkMaxTime(13780586573357)},
	{name: "KDAB_perfparser/contentsize.data", samples: 69, check: checkUserDumps(16)},
	{name: "KDAB_hotspot/perf.data.PerfFormatLost", samples: 34, events: []string{"cycles", "instructions"}, check: checkGroupReads},
	{name: "KDAB_hotspot/perf.data.true.v2", samples: 1},
	{name: "mstange_linux-perf-data/sleep.data", samples: 7, check: checkClock},
	{name: "mstange_linux-perf-data/sleep.compressed.data", samples: 8},
	{name: "mstange_linux-perf-data/sleep.compressed.pipe.data", samples: 8, records: map[RecordType]int64{TypeHeaderFeature: 21, TypeCompressed: 1}},
	{name: "mstange_linux-perf-data/fibo.compressed2.pipe.data", samples: 547, records: map[RecordType]int64{TypeCompressed2: 146, TypeFinishedRound: 124, TypeFork: 19, TypeExit: 17}, events: []string{"cycles:P", "dummy:u"}},
	{name: "GrapheneOS_platform_system_extras/generated_by_linux_perf.data", samples: 156, records: map[RecordType]int64{TypeMmap2: 13090, TypeComm: 3039, TypeFork: 3038}},
	{name: "GrapheneOS_platform_system_extras/perf_display_bitmaps.data", samples: 525, check: checkPerfScript},
	{name: "GrapheneOS_platform_system_extras/perf_with_two_event_types.data", samples: 10, events: []string{"cycles", "cpu-clock"}, check: checkTwoEvents},
	{name: "GrapheneOS_platform_system_extras/perf_b.data", samples: 150, records: map[RecordType]int64{TypeLost: 1}},
	{name: "GrapheneOS_platform_system_extras/perf_g_fp.data", samples: 10, records: map[RecordType]int64{TypeLost: 1}},
	{name: "GrapheneOS_platform_system_extras/perf_with_trace_offcpu_v2.data", samples: 304, records: map[RecordType]int64{TypeSwitch: 192}, check: checkSwitches(95, 7)},
	{name: "GrapheneOS_platform_system_extras/perf_with_callchain_record.data", samples: 21, records: map[RecordType]int64{32775: 40}},
	{name: "GrapheneOS_platform_system_extras/perf_with_interpreter_frames.data", samples: 4032},
	{name: "GrapheneOS_platform_system_extras/perf_sched_stat_runtime.data", samples: 2430, records: map[RecordType]int64{TypeComm: 1957, TypeFork: 1399}, events: []string{"sched:sched_stat_runtime"}},
	{name: "microsoft_LinuxTracepoints-Net/pipe.data", samples: 551, check: checkTracepoints},
	{name: "nevesnunes_covlizer/perf.data", samples: 856, check: checkCallStackLBR(8, true)},
	{name: "colemickens_platform2-sommelier/perf.data.piped.powerpc", samples: 9997, order: "big", records: map[RecordType]int64{TypeMmap: 28, TypeComm: 2, TypeExit: 2, TypeHeaderBuildID: 4, TypeHeaderAttr: 1, TypeHeaderEventType: 1}, check: checkPowerPC},
}

func TestFixtures(t *testing.T) {
	for _, w := range fixtureWants {
		t.Run(strings.ReplaceAll(w.name, "/", "-"), func(t *testing.T) {
			t.Parallel()
			r, recs := readAll(t, fixture(t, w.name))
			s := r.Stats()
			if got := s.Records[TypeSample]; got != w.samples || len(samplesOf(recs)) != int(w.samples) {
				t.Errorf("%d samples, %d delivered, expected %d", got, len(samplesOf(recs)), w.samples)
			}
			for typ, n := range w.records {
				if s.Records[typ] != n {
					t.Errorf("%d records of type %d, expected %d", s.Records[typ], typ, n)
				}
			}
			checkNames(t, r.Meta(), &w)
			checkDamage(t, s.Damage, &w)
			if s.UnknownID != 0 || s.OutOfOrder != 0 || len(s.Warnings) != 0 || s.Malformed != 0 && w.order != "big" {
				t.Errorf("%+v", s)
			}
			checkOrder(t, recs)
			if w.check != nil {
				w.check(t, r, recs)
			}
		})
	}
}

func checkNames(t *testing.T, m *Meta, w *fixtureWant) {
	var names []string
	for _, ev := range m.Events {
		names = append(names, ev.Name)
	}
	if w.events != nil && !slices.Equal(names, w.events) {
		t.Errorf("events %q, expected %q", names, w.events)
	}
	if (m.ByteOrder.String() == "BigEndian") != (w.order == "big") {
		t.Errorf("byte order %v", m.ByteOrder)
	}
}

func checkDamage(t *testing.T, d *Damage, w *fixtureWant) {
	switch {
	case d == nil && w.damage == 0:
	case d == nil || d.Offset != w.damage || d.Unread != w.unread:
		t.Errorf("damage %v, expected at %d, %d unread", d, w.damage, w.unread)
	}
}

func checkOrder(t *testing.T, recs []Record) {
	last := uint64(0)
	for _, r := range recs {
		if h := r.Header(); h.Time != 0 {
			if h.Time < last {
				t.Fatalf("record at %d has time %d, after %d", h.Offset, h.Time, last)
			}
			last = h.Time
		}
	}
}

func checkFixedPeriod(period uint64) func(*testing.T, *Reader, []Record) {
	return func(t *testing.T, _ *Reader, recs []Record) {
		for _, s := range samplesOf(recs) {
			if s.Has&FieldPeriod != 0 || s.Period != period {
				t.Fatalf("period %d (%#x), expected %d from the attr", s.Period, s.Has, period)
			}
		}
	}
}

func checkLostSamples(t *testing.T, r *Reader, recs []Record) {
	if r.Stats().LostSamples != 2 {
		t.Errorf("%d lost samples", r.Stats().LostSamples)
	}
	checkGroup(3)(t, r, recs)
}

func checkGroup(n int) func(*testing.T, *Reader, []Record) {
	return func(t *testing.T, r *Reader, _ []Record) {
		evs := r.Meta().Events
		if len(evs) != n || len(evs[0].Group) != n {
			t.Fatalf("%d events, %d in the group", len(evs), len(evs[0].Group))
		}
		for _, ev := range evs {
			if ev.Leader != evs[0] {
				t.Errorf("%s has leader %s", ev.Name, ev.Leader.Name)
			}
		}
	}
}

func checkHybrid(t *testing.T, r *Reader, _ []Record) {
	m := r.Meta()
	if len(m.HybridTopology) != 2 || m.HybridTopology[1] != (HybridPMU{"cpu_atom", "4-11"}) {
		t.Errorf("hybrid topology %v", m.HybridTopology)
	}
	if len(m.PMUCaps) == 0 {
		t.Error("no PMU capabilities")
	}
}

func checkIDIndex(t *testing.T, r *Reader, _ []Record) {
	m := r.Meta()
	if in, ok := m.IDs[59]; !ok || in != (Instance{1, 3572830}) || len(m.IDs) != 12 {
		t.Errorf("id 59 is %v of %d ids", in, len(m.IDs))
	}
}

func checkMaxTime(want uint64) func(*testing.T, *Reader, []Record) {
	return func(t *testing.T, r *Reader, recs []Record) {
		last := uint64(0)
		for _, rec := range recs {
			last = max(last, rec.Header().Time)
		}
		if last != want {
			t.Errorf("last time %d, expected %d", last, want)
		}
		if s := samplesOf(recs)[0]; len(s.Raw) == 0 || len(r.Meta().TracingData) == 0 {
			t.Errorf("raw data %d bytes, tracing data %d", len(s.Raw), len(r.Meta().TracingData))
		}
	}
}

// checkUserDumps wants stack dumps of a size.
func checkUserDumps(size uint64) func(*testing.T, *Reader, []Record) {
	return func(t *testing.T, _ *Reader, recs []Record) {
		got := 0
		for _, s := range samplesOf(recs) {
			if s.StackUserMax == 0 {
				continue
			}
			got++
			if s.StackUserMax != size || uint64(len(s.StackUser)) > size || len(s.RegsUser.Values) == 0 {
				t.Fatalf("stack dump %d of %d bytes, %d registers", len(s.StackUser), s.StackUserMax, len(s.RegsUser.Values))
			}
		}
		if got == 0 {
			t.Errorf("%d stack dumps", got)
		}
	}
}

func checkCompressed(t *testing.T, r *Reader, _ []Record) {
	if c := r.Meta().Compressed; c == nil || c.Type != 1 || c.Level == 0 {
		t.Errorf("compressed: %+v", c)
	}
}

func checkEventSamples(name string, n int) func(*testing.T, *Reader, []Record) {
	return func(t *testing.T, _ *Reader, recs []Record) {
		got := 0
		for _, s := range samplesOf(recs) {
			if s.Event.Name == name {
				got++
			}
		}
		if got != n {
			t.Errorf("%d samples of %s, expected %d", got, name, n)
		}
	}
}

func checkClock(t *testing.T, r *Reader, _ []Record) {
	m := r.Meta()
	if m.ClockData == nil || m.ClockID == 0 || m.ClockData.WallClockNS < 1e18 || m.Events[0].Flags&FlagUseClockID == 0 {
		t.Errorf("clock id %d, %+v", m.ClockID, m.ClockData)
	}
}

func checkSwitches(out, preempt int) func(*testing.T, *Reader, []Record) {
	return func(t *testing.T, _ *Reader, recs []Record) {
		gotOut, gotPreempt := 0, 0
		for _, r := range recs {
			if s, ok := r.(*Switch); ok && s.Misc&MiscSwitchOut != 0 {
				gotOut++
				if s.Misc&MiscSwitchOutPreempt != 0 {
					gotPreempt++
				}
			}
		}
		if gotOut != out || gotPreempt != preempt {
			t.Errorf("%d switches out, %d preempted, expected %d and %d", gotOut, gotPreempt, out, preempt)
		}
	}
}

func checkTwoEvents(t *testing.T, _ *Reader, recs []Record) {
	sum := make(map[string]uint64)
	for _, s := range samplesOf(recs) {
		// The last word of the folded stacks: process and event.
		sum[fmt.Sprint(s.Event.Index)] += s.Period
	}
	if sum["0"] != 70372+3913545 || sum["1"] != 500000 {
		t.Errorf("periods %v", sum)
	}
}

func checkPowerPC(t *testing.T, r *Reader, recs []Record) {
	m := r.Meta()
	if len(m.BuildIDs) != 4 || len(m.Events) != 1 || m.Events[0].Type != TypeHardware || m.Events[0].SamplePeriod != 1000 ||
		m.Events[0].Flags&(FlagFreq|FlagMmap|FlagComm) != FlagFreq|FlagMmap|FlagComm {
		t.Fatalf("%+v %+v", m.Events[0].Attr, m.BuildIDs)
	}
	for _, b := range m.BuildIDs {
		if len(b.ID) != 20 || !strings.HasPrefix(b.Filename, "/") && !strings.HasPrefix(b.Filename, "[") {
			t.Errorf("build ID %x of %q", b.ID, b.Filename)
		}
	}
	for _, s := range samplesOf(recs) {
		if s.Period == 0 || s.Period > 1<<40 || s.PID < 0 || s.PID > 1<<16 || s.Time == 0 || s.Time > 1<<60 {
			t.Fatalf("sample %+v", s)
		}
	}
	// What the early private records 69..80 say is not understood as
	// something else.
	if len(m.IDs) != 0 || len(m.Features) != 0 || m.Hostname != "" {
		t.Errorf("%d ids, features %v, host %q", len(m.IDs), m.Features, m.Hostname)
	}
}

// checkTracepoints compares the samples, in time order, with the list another
// reader made: time in 100 ns, CPU and pid.
func checkTracepoints(t *testing.T, r *Reader, recs []Record) {
	b, err := os.ReadFile(fixture(t, "microsoft_LinuxTracepoints-Net/pipe.data.json"))
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	var list []struct {
		NonSample string
		Name      string `json:"n"`
		Meta      struct {
			Time time.Time
			CPU  uint32
			PID  int32
		}
	}
	if err := json.Unmarshal(regexp.MustCompile(`/\*.*?\*/`).ReplaceAll(b, nil), &list); err != nil {
		t.Fatal(err)
	}
	list = list[len(list)/2:] // the first half is in file order
	i := 0
	samples := samplesOf(recs)
	counts := make(map[string]int64)
	var start time.Time
	for _, want := range list {
		counts[want.NonSample]++
		if want.NonSample != "" {
			continue
		}
		s := samples[i]
		if i == 0 {
			start = want.Meta.Time
		}
		// Another fraction of the first time is cut off: one unit of play.
		d := time.Duration(s.Time-samples[0].Time) - want.Meta.Time.Sub(start)
		if d < -100 || d > 100 || s.CPU != want.Meta.CPU || s.PID != want.Meta.PID ||
			strings.Contains(want.Name, "sched_switch") && s.Event.Name != "sched:sched_switch" {
			t.Fatalf("sample %d: %s %d cpu %d pid %d, expected %+v (off by %v)", i, s.Event.Name, s.Time, s.CPU, s.PID, want, d)
		}
		i++
	}
	if i != len(samples) {
		t.Errorf("%d samples, the list has %d", len(samples), i)
	}
	for name, typ := range map[string]RecordType{
		"Mmap2": TypeMmap2, "Mmap": TypeMmap, "Fork": TypeFork, "Comm": TypeComm, "HeaderFeature": TypeHeaderFeature,
		"HeaderAttr": TypeHeaderAttr, "EventUpdate": TypeEventUpdate, "Ksymbol": TypeKsymbol, "BpfEvent": TypeBPFEvent,
		"FinishedRound": TypeFinishedRound, "HeaderTracingData": TypeHeaderTracingData, "IdIndex": TypeIDIndex,
		"ThreadMap": TypeThreadMap, "CpuMap": TypeCPUMap, "FinishedInit": TypeFinishedInit, "Exit": TypeExit,
	} {
		if got := r.Stats().Records[typ]; got != counts[name] {
			t.Errorf("%d records %s, the list has %d", got, name, counts[name])
		}
	}
}

// checkPerfScript compares callchains with the text simpleperf's report
// script printed, whose user part was unwound when it was recorded.
func checkPerfScript(t *testing.T, _ *Reader, recs []Record) {
	b, err := os.ReadFile(fixture(t, "GrapheneOS_platform_system_extras/perf_display_bitmaps.perf-script"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(strings.TrimSpace(string(b)), "\n\n")
	samples := samplesOf(recs)
	if len(blocks) != len(samples) {
		t.Fatalf("%d samples, the text has %d", len(samples), len(blocks))
	}
	head := regexp.MustCompile(`(\d+)/(\d+) \[(\d+)\] (\d+)\.(\d+): (\d+) `)
	for i, block := range blocks {
		s := samples[i]
		lines := strings.Split(block, "\n")
		m := head.FindStringSubmatch(lines[0])
		got := fmt.Sprintf("%d/%d [%03d] %d.%06d: %d ", s.PID, s.TID, s.CPU, s.Time/1e9, s.Time/1e3%1e6, s.Period)
		if m == nil || m[0] != got {
			t.Fatalf("sample %d: %q, the text says %q", i, got, m)
		}
		var chain []string
		for _, ip := range s.Callchain {
			if ip < ContextMax {
				chain = append(chain, fmt.Sprintf("%x", ip))
			}
		}
		// The text repeats no address twice in a row and drops frames of the
		// interpreter; every address it has must be in the chain, in order.
		at := 0
		for _, line := range lines[1:] {
			ip, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			n := slices.Index(chain[at:], ip)
			if n < 0 {
				t.Fatalf("sample %d: %s of the text is not in %v", i, ip, chain[at:])
			}
			at += n + 1
		}
	}
}

// Recordings that must be refused, and what the error has to say.
func TestRefused(t *testing.T) {
	for name, want := range map[string]string{
		"KDAB_hotspot/perf.data.true.v1":                                                                       "version 1",
		"KDAB_hotspot/perf.data.true.v2.gz":                                                                    "gzip",
		"KDAB_hotspot/perf.data.broken.gz":                                                                     "gzip",
		"GrapheneOS_platform_system_extras/invalid_perf.data":                                                  "not a perf.data",
		"google_perf_data_converter/quipper/perf.data.branch-4.14.pb_text":                                     "text",
		"microsoft_LinuxTracepoints-Net/pipe.data.json":                                                        "not a perf.data",
		"GrapheneOS_platform_system_extras/perf_display_bitmaps.perf-script":                                   "text",
		"google_perf_data_converter/fuzz/poc-8b38b630443e3d51347f427ec97a475a68ab3beeea5d52df41e5bbc6ad012999": "attr entries of 0 bytes",
	} {
		path := fixture(t, name)
		_, err := Open(path)
		var fe *FormatError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, expected %q", name, err, want)
		}
	}
}

// What a fuzzer found in another reader: an error, or damage and no sample.
func TestFuzzerFinds(t *testing.T) {
	dir := fixture(t, "google_perf_data_converter/fuzz")
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 7 {
		t.Fatal(len(list), err)
	}
	for _, e := range list {
		r, err := Open(dir + "/" + e.Name())
		if err != nil {
			continue
		}
		recs := drain(t, r)
		if s := r.Stats(); s.Damage == nil || len(samplesOf(recs)) != 0 {
			t.Errorf("%s: %d samples, damage %v", e.Name(), len(samplesOf(recs)), s.Damage)
		}
		r.Close()
	}
}

// A whole recording inside gzip, unpacked by the caller and piped in: file
// mode without seeking.
func TestFileModeFromPipe(t *testing.T) {
	f, err := os.Open(fixture(t, "KDAB_hotspot/perf.data.true.v2.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(io.MultiReader(z), "stdin")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, want := readAll(t, fixture(t, "KDAB_hotspot/perf.data.true.v2"))
	got := drain(t, r)
	if len(got) != len(want) || len(samplesOf(got)) != 1 || samplesOf(got)[0].IP != samplesOf(want)[0].IP {
		t.Errorf("%d records, expected %d", len(got), len(want))
	}
}
