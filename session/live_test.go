package session

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
)

// record runs perf record and returns the recording. It skips the test where
// the system does not let us record.
func record(t *testing.T, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "perf.data")
	out, err := exec.Command("perf", append([]string{"record", "-q", "-o", path}, args...)...).CombinedOutput()
	if err != nil {
		if bytes.Contains(out, []byte("Permission")) || bytes.Contains(out, []byte("permission")) || bytes.Contains(out, []byte("No permission")) {
			t.Skipf("no right to record: %s", out)
		}
		t.Fatalf("perf record %v: %v\n%s", args, err, out)
	}
	return path
}

// line is what perf script and we say of a sample.
type line struct {
	comm     string
	pid, tid int32
	time     uint64
	frames   []string // "offset (dso)"
}

func (l *line) key() string { return fmt.Sprintf("%012d %d", l.time, l.tid) }

// perfScript asks perf for the samples of a recording.
func perfScript(t *testing.T, path string) []line {
	t.Helper()
	out, err := exec.Command("perf", "script", "-f", "--ns", "--no-inline", "-i", path, "-F", "comm,pid,tid,time,ip,dso").Output()
	if err != nil {
		t.Fatalf("perf script: %v", err)
	}
	var lines []line
	for text := range strings.Lines(string(out)) {
		text = strings.TrimRight(text, "\n")
		switch {
		case text == "":
		case text[0] != '\t' || len(lines) == 0:
			lines = append(lines, parseHeader(t, text))
		default:
			l := &lines[len(lines)-1]
			l.frames = append(l.frames, perfFrame(text))
		}
	}
	return lines
}

// perfFrame gives modules their short name: whether perf prints that or the
// path depends on whether it found the file.
func perfFrame(text string) string {
	text = strings.TrimSpace(text)
	at, dso, ok := strings.Cut(text, " (")
	if path := strings.TrimSuffix(dso, ")"); ok && strings.HasPrefix(path, "/") && isModule(path) {
		return at + " (" + moduleName(path) + ")"
	}
	return text
}

var header = regexp.MustCompile(`^(.*?)\s+(-?\d+)/(-?\d+)\s+(\d+)\.(\d{9}):\s*(.*)$`)

// parseHeader reads "comm  pid/tid  seconds.nanoseconds:", behind which the ip
// stands if the event has no callchains. comm may have spaces.
func parseHeader(t *testing.T, text string) line {
	t.Helper()
	m := header.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("perf script printed %q", text)
	}
	l := line{comm: strings.Join(strings.Fields(m[1]), " ")}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return n
	}
	l.pid, l.tid, l.time = int32(number(m[2])), int32(number(m[3])), uint64(number(m[4]+m[5]))
	if m[6] != "" {
		l.frames = append(l.frames, perfFrame(m[6]))
	}
	return l
}

// ownScript is the same from a session.
func ownScript(t *testing.T, path string) ([]line, *Session) {
	t.Helper()
	s, store := openSession(t, path)
	s.LeaveChains()
	var lines []line
	each(t, s, func(smp *Sample) {
		l := line{
			comm: strings.Join(strings.Fields(smp.Thread.Comm), " "), pid: smp.Raw.PID, tid: smp.Thread.TID, time: smp.Time,
		}
		for i, loc := range smp.Stack[:min(len(smp.Stack), 127)] { // perf prints no more
			a, raw := store.Addr(loc), s.frames[i]
			off, dso := a.Offset, a.Image.Path
			if smp.Raw.Has&perfdata.FieldCallchain == 0 {
				off = raw.Addr // as perf does without callchain
			}
			switch a.Image.Kind {
			case image.Kernel:
				if s.kernel.base.start == 1<<63 { // no kernel mapping was recorded: perf does not guess
					dso = "[unknown]"
				}
			case image.Module, image.BPF:
				off = raw.Addr
				if a.Image.Kind == image.Module {
					dso = moduleName(dso) // perf prints this or the path, see perfFrame
				}
			case image.JIT:
				// perf takes memory files for files, and so prints offsets.
				if !strings.HasPrefix(dso, "/memfd:") {
					dso = fmt.Sprintf("/tmp/perf-%d.map", a.Image.PID)
				} else {
					l.frames = append(l.frames, "("+dso+")")
					continue
				}
			case image.Unknown:
				dso = cmp.Or(dso, "[unknown]")
				if raw.Addr == 0 && i > 0 { // impossible return addresses are not told apart
					l.frames = append(l.frames, "([unknown])")
					continue
				}
				// perf names data mappings; no code is in them.
				if m := s.mappingOf(smp.Thread.process, raw.Addr, raw.Return, raw.Mode); m != nil && m.obj == nil {
					l.frames = append(l.frames, "")
					continue
				}
			}
			l.frames = append(l.frames, fmt.Sprintf("%x (%s)", off, dso))
		}
		lines = append(lines, l)
	})
	return lines, s
}

// compareScripts compares sample for sample. perf never forgets a mapping that
// no other has replaced, so an address that is no code may be "in" the program
// before exec. percent of the samples may differ: where the whole machine is
// recorded, programs run that are not the test's.
func compareScripts(t *testing.T, path string, percent int) (*Session, []line) {
	t.Helper()
	want := perfScript(t, path)
	got, s := ownScript(t, path)
	byKey := func(a, b line) int { return cmp.Compare(a.key(), b.key()) }
	slices.SortStableFunc(want, byKey)
	slices.SortStableFunc(got, byKey)
	if len(got) != len(want) {
		t.Fatalf("%d samples, perf prints %d", len(got), len(want))
	}
	bad, empty, stale := 0, 0, 0
	for i := range want {
		w, g := want[i], got[i]
		for j := range min(len(w.frames), len(g.frames)) {
			if strings.HasSuffix(w.frames[j], g.frames[j]) { // what ownScript leaves out
				w.frames[j] = g.frames[j]
			} else if strings.HasSuffix(g.frames[j], " ([unknown])") && strings.Contains(w.frames[j], " (/") {
				w.frames[j] = g.frames[j]
				stale++
			}
		}
		if len(w.frames) == 0 && len(g.frames) == 1 {
			w.frames = g.frames // the kernel found no chain; perf then prints not even the ip
			empty++
		}
		if w.comm != g.comm || w.pid != g.pid || w.tid != g.tid || w.time != g.time || !slices.Equal(w.frames, g.frames) {
			if bad++; bad <= 5 {
				t.Logf("sample %d: perf %s %d/%d %d, ours %s %d/%d %d", i, w.comm, w.pid, w.tid, w.time, g.comm, g.pid, g.tid, g.time)
				for j := range max(len(w.frames), len(g.frames)) {
					if a, b := frameAt(w, j), frameAt(g, j); a != b {
						t.Logf("frame %d of %d: perf %s, ours %s", j, len(w.frames), a, b)
						break
					}
				}
			}
		}
	}
	if bad*100 > percent*len(want) {
		t.Errorf("%d of %d samples differ", bad, len(want))
	}
	if stale*50 > len(want) {
		t.Errorf("%d frames in %d samples are in no mapping, but perf finds one", stale, len(want))
	}
	t.Logf("%d samples, %d with an empty chain, %d stale frames, outcomes %v", len(want), empty, stale, s.Stats().Outcomes)
	return s, got
}

func frameAt(l line, i int) string {
	if i < len(l.frames) {
		return l.frames[i]
	}
	return "none"
}

// storm makes many short processes that fork, exec and thread.
const storm = `for i in $(seq 30); do /bin/true; ls / >/dev/null; (echo $i | sed s/1/2/ >/dev/null); done; head -c 4000000 /usr/bin/perf | xz -T2 -0 -c >/dev/null`

func TestLiveForkStorm(t *testing.T) {
	s, lines := compareScripts(t, record(t, "-e", "cpu-clock", "-F", "5000", "-g", "--switch-events", "--", "sh", "-c", storm), 0)
	comms := map[string]bool{}
	for _, l := range lines {
		comms[l.comm] = true
	}
	if !comms["ls"] || !comms["xz"] {
		t.Errorf("commands seen: %v", comms)
	}
	st := s.Stats()
	if st.Processes < 90 || !st.HasSwitches() || st.UnknownThread > 0 {
		t.Errorf("%+v", st)
	}
}

func TestLiveSystemWide(t *testing.T) {
	s, _ := compareScripts(t, record(t, "-e", "cpu-clock", "-F", "999", "-a", "-g", "--", "sh", "-c", storm), 1)
	if e := s.source.Meta().Events[0]; !s.PerCPU(e) {
		t.Errorf("%s was recorded on CPUs", e.Name)
	}
}

func TestLiveDataMappings(t *testing.T) {
	compareScripts(t, record(t, "-e", "cpu-clock", "-F", "5000", "-g", "-d", "--", "sh", "-c", "seq 100000 | sort -R | md5sum"), 0)
}

// TestLiveGroup: the differences of a group's counters add up to what perf
// stat counts for the same program, as far as the last tick.
func TestLiveGroup(t *testing.T) {
	const prog = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; seq 200000 | sort >/dev/null"
	s, _ := openSession(t, record(t, "-e", "{cpu-clock,page-faults}:S", "-c", "200000", "--", "sh", "-c", prog))
	type key struct {
		id  uint64
		tid int32
	}
	last, sums := map[key]uint64{}, map[string]uint64{}
	each(t, s, func(smp *Sample) {
		v := smp.Interval
		if v == nil || len(v.Counts) != 2 || v.Backwards {
			t.Fatalf("interval %+v", v)
		}
		for i, c := range smp.Raw.Counters {
			k := key{c.ID, 0}
			if smp.Event.Flags&perfdata.FlagInherit != 0 {
				k.tid = smp.Thread.TID
			}
			last[k] = c.Value
			sums[v.Counts[i].Event.Name] += v.Counts[i].Value
		}
	})
	var total, want uint64
	for _, v := range last {
		want += v
	}
	for _, v := range sums {
		total += v
	}
	if total != want || len(sums) != 2 {
		t.Errorf("differences add up to %d (%v), last values to %d", total, sums, want)
	}
	// perf 6.1 does not let children inherit a group that is read: the shell
	// alone is counted.
	stat := perfStat(t, "-i", "-e", "cpu-clock,page-faults", "--", "sh", "-c", prog)
	compared := 0
	for name, n := range sums {
		for full, m := range stat {
			if strings.HasPrefix(full, name) || strings.HasPrefix(name, full) {
				compared++
				if ratio := float64(n) / m; ratio < 0.5 || ratio > 2 {
					t.Errorf("%s: %d in intervals, perf stat of another run counts %.0f", name, n, m)
				}
			}
		}
	}
	if compared != 2 {
		t.Errorf("compared %d of the counters: %v and %v", compared, sums, stat)
	}
}

// perfStat returns what perf stat counts, clocks in ns.
func perfStat(t *testing.T, args ...string) map[string]float64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stat")
	cmd := exec.Command("perf", append([]string{"stat", "-x", ";", "-o", path}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("perf stat: %v\n%s", err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for text := range strings.Lines(string(data)) {
		f := strings.Split(text, ";")
		if len(f) < 3 {
			continue
		}
		n, err := strconv.ParseFloat(f[0], 64)
		if err != nil {
			continue
		}
		if f[1] == "msec" {
			n *= 1e6
		}
		counts[f[2]] = n
	}
	return counts
}

// TestLiveSwitches: two programs share one CPU, so both wait; the time they
// wait is at least most of what they do not run.
func TestLiveSwitches(t *testing.T) {
	const loop = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done"
	s, _ := openSession(t, record(t, "-e", "cpu-clock", "-F", "1000", "--switch-events", "--",
		"taskset", "-c", "0", "sh", "-c", "("+loop+") & ("+loop+"); wait; sleep 0.2; "+loop))
	type span struct{ wall, clock, waited, blocked uint64 }
	by := map[int32]*span{}
	each(t, s, func(smp *Sample) {
		v := smp.Interval
		if v == nil || v.Start == 0 {
			return
		}
		p := by[smp.Thread.TID]
		if p == nil {
			p = &span{}
			by[smp.Thread.TID] = p
		}
		p.wall += v.End - v.Start
		p.waited += v.Waited
		p.blocked += v.Blocked
		p.clock += v.Clock
		if v.Waited+v.Blocked > v.End-v.Start || v.WaitedAtEnd > v.End-v.Start {
			t.Errorf("interval %+v", v)
		}
	})
	var waited, blocked uint64
	for tid, p := range by {
		waited += p.waited
		blocked += p.blocked
		// Wall time is running, waiting or blocked. The clock ticks only while
		// running, one period a tick (on a busy host some ticks are missed).
		if p.wall > 50e6 {
			running := p.wall - p.waited - p.blocked
			if r := float64(running) / float64(p.clock); r < 0.8 || r > 3 {
				t.Errorf("thread %d: ran %d ns, ticks for %d: %+v", tid, running, p.clock, *p)
			}
		}
	}
	if waited < 50e6 || blocked < 150e6 {
		t.Errorf("waited %d ns, blocked %d ns; want at least 50 and 150 ms", waited, blocked)
	}
	t.Logf("%+v, waited %d ms, blocked %d ms", s.Stats(), waited/1e6, blocked/1e6)
}
