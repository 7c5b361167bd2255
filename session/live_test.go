package session

import (
	"bytes"
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
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
			l.frames = append(l.frames, strings.TrimSpace(text))
		}
	}
	return lines
}

// parseHeader reads "comm  pid/tid  seconds.nanoseconds:" where comm may have spaces.
func parseHeader(t *testing.T, text string) line {
	t.Helper()
	f := strings.Fields(text)
	n := len(f)
	if n < 3 {
		t.Fatalf("perf script printed %q", text)
	}
	var l line
	if _, err := fmt.Sscanf(f[n-2], "%d/%d", &l.pid, &l.tid); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	l.comm = strings.Join(f[:n-2], " ")
	ns := strings.Replace(strings.TrimSuffix(f[n-1], ":"), ".", "", 1)
	var err error
	if l.time, err = strconv.ParseUint(ns, 10, 64); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return l
}

// ownScript is the same from a session.
func ownScript(t *testing.T, path string) ([]line, *Session) {
	t.Helper()
	s, store := openSession(t, path)
	var lines []line
	each(t, s, func(smp *Sample) {
		l := line{
			comm: strings.Join(strings.Fields(smp.Thread.Comm), " "), pid: smp.Thread.PID, tid: smp.Thread.TID, time: smp.Time,
		}
		for i, loc := range smp.Stack {
			a, raw := store.Addr(loc), s.frames[i]
			off, dso := a.Offset, a.Image.Path
			switch a.Image.Kind {
			case image.Module, image.BPF:
				off = raw.Addr
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

// compareScripts compares sample for sample.
func compareScripts(t *testing.T, path string) (*Session, []line) {
	t.Helper()
	want := perfScript(t, path)
	got, s := ownScript(t, path)
	byKey := func(a, b line) int { return cmp.Compare(a.key(), b.key()) }
	slices.SortStableFunc(want, byKey)
	slices.SortStableFunc(got, byKey)
	if len(got) != len(want) {
		t.Fatalf("%d samples, perf prints %d", len(got), len(want))
	}
	bad := 0
	for i := range want {
		w, g := want[i], got[i]
		for j := range min(len(w.frames), len(g.frames)) {
			if strings.HasSuffix(w.frames[j], g.frames[j]) { // what ownScript leaves out
				w.frames[j] = g.frames[j]
			}
		}
		if w.comm != g.comm || w.pid != g.pid || w.tid != g.tid || w.time != g.time || !slices.Equal(w.frames, g.frames) {
			if bad++; bad <= 5 {
				t.Errorf("sample %d:\nperf %+v\nours %+v", i, w, g)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d samples differ", bad, len(want))
	}
	t.Logf("%d samples, outcomes %v", len(want), s.Stats().Outcomes)
	return s, got
}

// storm makes many short processes that fork, exec and thread.
const storm = `for i in $(seq 60); do /bin/true; ls / >/dev/null; (echo $i | sed s/1/2/ >/dev/null); done; xz -T2 -1 -c /usr/bin/perf >/dev/null`

func TestLiveForkStorm(t *testing.T) {
	s, lines := compareScripts(t, record(t, "-e", "cpu-clock", "-F", "5000", "-g", "--switch-events", "--", "sh", "-c", storm))
	comms := map[string]bool{}
	for _, l := range lines {
		comms[l.comm] = true
	}
	if !comms["ls"] || !comms["xz"] {
		t.Errorf("commands seen: %v", comms)
	}
	st := s.Stats()
	if st.Processes < 180 || !st.HasSwitches() || st.UnknownThread > 0 {
		t.Errorf("%+v", st)
	}
}

func TestLiveSystemWide(t *testing.T) {
	s, _ := compareScripts(t, record(t, "-e", "cpu-clock", "-F", "999", "-a", "-g", "--", "sh", "-c", storm))
	if e := s.source.Meta().Events[0]; !s.PerCPU(e) {
		t.Errorf("%s was recorded on CPUs", e.Name)
	}
}

func TestLiveDataMappings(t *testing.T) {
	compareScripts(t, record(t, "-e", "cpu-clock", "-F", "5000", "-g", "-d", "--", "sh", "-c", "seq 300000 | sort -R | md5sum"))
}
