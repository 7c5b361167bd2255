package perfdata

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// These tests give written recordings to perf itself, which is what the
// writer is for.

func perfTool(t *testing.T, stdin io.Reader, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("perf")
	if err != nil {
		t.Fatal("these tests need perf (Debian package linux-perf): ", err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "PERF_CONFIG=/dev/null", "PAGER=cat", "LC_ALL=C")
	cmd.Stdin = stdin
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("perf %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	if s := stderr.String(); strings.Contains(s, "incompatible") || strings.Contains(s, "out of order") || strings.Contains(s, "Processed ") {
		t.Errorf("perf %s complains:\n%s", strings.Join(args, " "), s)
	}
	return string(out)
}

// scriptFields selects what perf script prints. The two kinds of event have
// different fields; with -sym it does not look for symbols.
var scriptFields = []string{
	"-F", "hw:comm,pid,tid,cpu,time,event,period,ip,addr,weight,uregs,brstack",
	"-F", "sw:comm,pid,tid,time,event,period,ip", "--ns",
}

// scriptLines is what perf script prints for the records, with runs of blanks
// made one. perf delivers a group read as one sample a member, whose period is
// the difference to the last value of the same id (deliver_sample_group in
// tools/perf/util/session.c), and prints callchain addresses as file offsets.
func scriptLines(m *Meta, recs []Record) []string {
	comm := map[int32]string{100: "leader", 101: "worker"}
	last := map[uint64]uint64{}
	names := map[uint64]string{}
	for _, ev := range m.Events {
		for _, id := range ev.IDs {
			names[id] = ev.Name
		}
	}
	var lines []string
	for _, r := range recs {
		s, ok := r.(*Sample)
		if !ok {
			continue
		}
		head := fmt.Sprintf("%s %d/%d", comm[s.TID], s.PID, s.TID)
		if s.Event.SampleType&FieldRead == 0 {
			lines = append(lines, fmt.Sprintf("%s %d.%09d: %d %s: %x", head, s.Time/1e9, s.Time%1e9, s.Period, s.Event.Name, s.IP))
			continue
		}
		for _, c := range s.Counters {
			delta := c.Value - last[c.ID]
			last[c.ID] = c.Value
			lines = append(lines, fmt.Sprintf("%s [%03d] %d.%09d: %d %s: %x %d", head, s.CPU, s.Time/1e9, s.Time%1e9, delta, names[c.ID], s.Addr, s.Weight))
			for _, ip := range s.Callchain[1:] {
				lines = append(lines, fmt.Sprintf("%x", ip-mapStart+mapPgoff))
			}
			regs := fmt.Sprintf("ABI:2 AX:0x%x BP:0x%x SP:0x%x IP:0x%x", s.RegsUser.Values[0], s.RegsUser.Values[1], s.RegsUser.Values[2], s.RegsUser.Values[3])
			for _, b := range s.Branches {
				regs += fmt.Sprintf(" 0x%x/0x%x/P/-/-/%d/CALL", b.From, b.To, b.Flags.Cycles())
			}
			lines = append(lines, regs)
		}
	}
	return lines
}

// printedLines brings the output of perf script into that form.
func printedLines(out string) []string {
	var lines []string
	for line := range strings.Lines(out) {
		if line = strings.Join(strings.Fields(strings.ReplaceAll(line, "[unknown]", "")), " "); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

func compareLines(t *testing.T, got, want []string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("line %d of perf script:\n%s\nwas written as:\n%s", i+1, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("perf script prints %d lines, %d were written", len(got), len(want))
	}
}

func TestPerfScriptReadsWhatWasWritten(t *testing.T) {
	for _, opts := range []WriteOptions{{}, {Zstd: 1}, {Zstd: 19}} {
		// 3,000 samples with branch stacks are several COMPRESSED records.
		m := sampleMeta()
		recs := sampleRecords(m, 3000)
		want := scriptLines(m, recs)
		t.Run(fmt.Sprintf("file,zstd=%d", opts.Zstd), func(t *testing.T) {
			path := writeFile(t, m, recs, opts)
			compareLines(t, printedLines(perfTool(t, nil, append([]string{"script", "-i", path}, scriptFields...)...)), want)
		})
		t.Run(fmt.Sprintf("pipe,zstd=%d", opts.Zstd), func(t *testing.T) {
			b := writePipe(t, m, recs, opts)
			compareLines(t, printedLines(perfTool(t, bytes.NewReader(b), append([]string{"script", "-i", "-"}, scriptFields...)...)), want)
		})
	}
}

func TestPerfScriptReadsSideband(t *testing.T) {
	m := sampleMeta()
	path := writeFile(t, m, sampleRecords(m, 20), WriteOptions{})
	out := perfTool(t, nil, "script", "-i", path, "--ns", "-F", "comm,pid,tid,time,event,ip", "--show-mmap-events", "--show-task-events", "--show-switch-events", "--show-round-events")
	lines := printedLines(out)
	for _, want := range []string{
		"leader 100/100 0.000001000: PERF_RECORD_COMM: leader:100/100",
		"leader 100/100 0.000001001: PERF_RECORD_MMAP2 100/100: [0x400000(0x100000) @ 0x1000 08:01 77 3]: r-xp /test/prog",
		"leader 100/100 0.000001002: PERF_RECORD_FORK(100:101):(100:100)",
		"worker 100/101 0.000001003: PERF_RECORD_COMM: worker:100/101",
		"worker 100/101 0.000019002: PERF_RECORD_SWITCH OUT",
		"leader 100/100 1099.511627776: PERF_RECORD_EXIT(100:100):(1:1)",
		"PERF_RECORD_FINISHED_ROUND",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("perf script lacks %q in:\n%s", want, out)
		}
	}
}

// The stack dump itself is printed by no option but the dump of raw bytes.
func TestPerfReadsStackDumps(t *testing.T) {
	m := sampleMeta()
	recs := sampleRecords(m, 20)
	path := writeFile(t, m, recs, WriteOptions{})
	var want, got []string
	for _, r := range recs {
		if s, ok := r.(*Sample); ok && s.Event == m.Events[0] {
			want = append(want, fmt.Sprintf("size %d", len(s.StackUser)))
		}
	}
	for line := range strings.Lines(perfTool(t, nil, "script", "-D", "-i", path)) {
		if rest, ok := strings.CutPrefix(line, "... ustack: "); ok {
			got = append(got, strings.Split(rest, ",")[0])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("perf sees stack dumps of %v, written were %v", got, want)
	}
}

func TestPerfEvlist(t *testing.T) {
	m := sampleMeta()
	path := writeFile(t, m, sampleRecords(m, 20), WriteOptions{})
	out := perfTool(t, nil, "evlist", "-v", "-i", path)
	for _, want := range []string{
		"cycles:u: size: 96, { sample_period, sample_freq }: 100000, sample_type: IP|TID|TIME|ADDR|READ|CALLCHAIN|CPU|PERIOD|BRANCH_STACK|REGS_USER|STACK_USER|IDENTIFIER|WEIGHT, " +
			"read_format: TOTAL_TIME_ENABLED|TOTAL_TIME_RUNNING|ID|GROUP, inherit: 1, exclude_kernel: 1, exclude_hv: 1, mmap: 1, comm: 1, task: 1, sample_id_all: 1, mmap2: 1, comm_exec: 1, context_switch: 1, " +
			"branch_sample_type: USER|ANY_CALL|HW_INDEX, sample_regs_user: 0x1c1, sample_stack_user: 64\n",
		"instructions:u: size: 96, config: 0x1, sample_type: ",
		"context-switches: type: 1, size: 96, config: 0x3, { sample_period, sample_freq }: 1, sample_type: IP|TID|TIME|PERIOD|IDENTIFIER, ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("perf evlist -v lacks\n%s\nin\n%s", want, out)
		}
	}
	if out := perfTool(t, nil, "evlist", "-g", "-i", path); !strings.HasPrefix(out, "{cycles:u,instructions:u}\n") {
		t.Errorf("perf evlist -g does not show the group:\n%s", out)
	}
}

func TestPerfHeader(t *testing.T) {
	m := sampleMeta()
	recs := sampleRecords(m, 40)
	b := writePipe(t, m, recs, WriteOptions{})
	inPipe := perfTool(t, bytes.NewReader(b), "script", "-i", "-", "--header", "-F", "ip")
	inFile := perfTool(t, nil, "script", "-i", writeFile(t, m, recs, WriteOptions{Zstd: 3}), "--header-only", "-I")
	for _, want := range []string{
		"# hostname : testhost", "# os release : 6.1.0-test", "# perf version : 6.1.test", "# arch : x86_64",
		"# nrcpus online : 6", "# nrcpus avail : 8", "# cpudesc : Test CPU @ 1 GHz", "# cpuid : TestVendor,6,1,2",
		"# total memory : 123456 kB", "# cmdline : /usr/bin/perfcorrect record ./a program",
		"# event : name = cycles:u, , id = { 11, 12 }, size = 96,", "# event : name = context-switches, , id = { 31 }, type = 1,",
		"# pmu mappings: software = 1, cpu = 4, uprobe = 9", "# group: {cycles:u,instructions:u}",
		"# clockid frequency: 1000 MHz", "# clockid: monotonic (1)",
		"# reference time: 2020-09-13 12:26:40.123456 = 1600000000.123456 (TOD) = 5.000000000 (monotonic)",
		"# cpu pmu capabilities: branches=32, pmu_name=test",
	} {
		if !strings.Contains(inFile, want) {
			t.Errorf("perf script --header of the file lacks %q:\n%s", want, inFile)
		}
		if !strings.Contains(inPipe, want) {
			t.Errorf("perf script --header of the pipe lacks %q:\n%s", want, inPipe)
		}
	}
	for _, want := range []string{ // known when the file is closed
		"# contains samples with branch stack", "# time of first sample : 0.000010", "# time of last sample : 0.000049",
		"# compressed : Zstd, level = 3, ratio = ",
	} {
		if !strings.Contains(inFile, want) {
			t.Errorf("perf script --header of the file lacks %q:\n%s", want, inFile)
		}
	}
	ids := perfTool(t, nil, "buildid-list", "-i", writeFile(t, m, recs, WriteOptions{}))
	if want := strings.Repeat("ab", 20) + " /test/prog\n"; ids != want {
		t.Errorf("perf buildid-list prints %q, want %q", ids, want)
	}
}

func TestPerfReport(t *testing.T) {
	m := sampleMeta()
	path := writeFile(t, m, sampleRecords(m, 300), WriteOptions{})
	out := printedLines(perfTool(t, nil, "report", "-i", path, "--stdio", "--no-branch-stack", "--no-children", "-g", "none", "-n", "-s", "comm", "-F", "sample,comm"))
	// A column for each member of the group.
	if want := []string{"150 150 leader", "150 150 worker", "30 worker"}; !slices.Equal(out, want) {
		t.Errorf("perf report counts samples as %q, want %q", out, want)
	}
	branches := 0
	for i := range 300 {
		branches += i % 33
	}
	out = printedLines(perfTool(t, nil, "report", "-i", path, "--stdio", "-b", "-s", "dso_from", "-F", "sample,dso_from"))
	if want := fmt.Sprintf("%d %d prog", branches, branches); !slices.Contains(out, want) {
		t.Errorf("perf report counts branches as %q, want %q", out, want)
	}
}

// A writer that dies leaves what reached the file.
func TestPerfReadsKilledRecording(t *testing.T) {
	m := sampleMeta()
	for _, ev := range m.Events[:2] {
		ev.SampleType &^= FieldStackUser // perf would try to unwind them with a broken result
	}
	recs := sampleRecords(m, 50)
	for _, opts := range []WriteOptions{{}, {Zstd: 1}} {
		f, err := os.Create(t.TempDir() + "/perf.data")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w, err := NewFileWriter(f, m, opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			if err := w.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		r, err := Open(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for rec, err := range r.Records() {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := rec.(*Sample); ok {
				n++
			}
		}
		if n != 55 || r.Stats().Damage != nil {
			t.Errorf("our reader sees %d samples of 55, damage %v", n, r.Stats().Damage)
		}
		if opts.Zstd != 0 {
			continue // perf 6.1 unpacks only with the feature, which comes last
		}
		m.Events[2].Name = "context-switches:HG" // perf's own name for the attr
		compareLines(t, printedLines(perfTool(t, nil, append([]string{"script", "-i", f.Name()}, scriptFields...)...)), scriptLines(m, recs))
	}
}
