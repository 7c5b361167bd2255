package perfdata

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// record makes a recording with perf; one of software events, which work on
// any machine. With args ending in "-o -" its standard output is the file.
func record(t *testing.T, out string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("perf")
	if err != nil {
		t.Fatal("these tests need perf (Debian package linux-perf): ", err)
	}
	cmd := exec.Command(path, append([]string{"record", "-q", "-N"}, args...)...)
	cmd.Env = append(os.Environ(), "PERF_CONFIG=/dev/null", "LC_ALL=C", "HOME="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if args[1] == "-" {
		f, err := os.Create(out)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.Stdout = f
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("perf record %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
}

var dumpLine = regexp.MustCompile(`^(\d+ )?(\d+) (?:0x)?[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_SAMPLE\(IP, (0x[0-9a-f]+)\): (-?\d+)/(-?\d+): (0x[0-9a-f]+) period: (\d+) addr: (\S+)`)

// dumped reads the samples of `perf script -D`, in the order perf delivers
// them, as lines of our own form.
func dumped(t *testing.T, path string) []string {
	t.Helper()
	cmd := exec.Command("perf", "script", "-D", "-F", "tid", "-i", path)
	cmd.Env = append(os.Environ(), "PERF_CONFIG=/dev/null", "LC_ALL=C", "HOME="+t.TempDir())
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("perf script: %v", err)
	}
	var out []string
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := sc.Text()
		if m := dumpLine.FindStringSubmatch(line); m != nil {
			out = append(out, fmt.Sprintf("%s%s misc %s %s/%s ip %s period %s addr %s", m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8]))
			continue
		}
		if strings.Contains(line, ": PERF_RECORD_SAMPLE") {
			t.Fatalf("line not understood: %q", line)
		}
		if len(out) == 0 {
			continue
		}
		last := &out[len(out)-1]
		if f := strings.Fields(line); len(f) == 3 && f[0] == "....." && strings.HasSuffix(f[1], ":") {
			*last += " " + strings.TrimLeft(f[2], "0")
		} else if len(f) > 4 && f[0] == "....." && f[1] == "id" {
			*last += " counter " + strings.TrimLeft(strings.TrimSuffix(f[2], ","), "0") + "=" + strings.TrimSuffix(f[4], ",")
		} else if len(f) > 2 && f[0] == "..." && f[1] == "ustack:" {
			*last += " ustack " + strings.TrimSuffix(f[3], ",")
		}
	}
	return out
}

func ownLine(s *Sample) string {
	var b strings.Builder
	if s.Has&FieldCPU != 0 {
		fmt.Fprintf(&b, "%d ", s.CPU)
	}
	fmt.Fprintf(&b, "%d misc %#x %d/%d ip %#x period %d addr ", s.Time, uint16(s.Misc), s.PID, s.TID, s.IP, s.Period)
	if s.Addr == 0 {
		b.WriteByte('0')
	} else {
		fmt.Fprintf(&b, "%#x", s.Addr)
	}
	for _, ip := range s.Callchain {
		b.WriteByte(' ')
		if ip != 0 {
			fmt.Fprintf(&b, "%x", ip)
		}
	}
	for _, c := range s.Counters {
		fmt.Fprintf(&b, " counter %x=%016x", c.ID, c.Value)
	}
	if s.StackUserMax != 0 {
		fmt.Fprintf(&b, " ustack %d", len(s.StackUser))
	}
	return b.String()
}

// Fresh recordings of all kinds, sample for sample against perf script.
func TestPerfRecordings(t *testing.T) {
	dir := t.TempDir()
	busy := []string{"ls", "-lR", "/usr/share", "/usr/include"}
	several := []string{"sh", "-c", "for i in 1 2; do ls -lR /usr/share/doc >/dev/null; done; ls -lR /usr/include | wc -l"}
	for _, c := range []struct {
		name string
		args []string
		cmd  []string
		min  int // samples, far fewer than there will be
		pipe bool
	}{
		{"fp", []string{"-g", "-F", "999", "-e", "cpu-clock"}, several, 20, false},
		{"zstd", []string{"-g", "-z", "-F", "999", "-e", "cpu-clock"}, several, 20, false},
		{"pipe", []string{"-g", "-F", "999", "-e", "cpu-clock"}, several, 20, true},
		{"zstd pipe", []string{"-g", "-z", "-F", "999", "-e", "cpu-clock,page-faults"}, several, 20, true},
		{"two events", []string{"-d", "-F", "999", "-e", "cpu-clock,page-faults"}, several, 20, false},
		{"group", []string{"-c", "500000", "-e", "{cpu-clock,page-faults,context-switches}:S"}, busy, 5, false},
		{"all", []string{"-a", "-g", "-F", "499", "-e", "cpu-clock"}, several, 20, false},
		{"threads", []string{"-a", "--threads", "-g", "-F", "499", "-e", "cpu-clock"}, several, 20, false},
		{"threads zstd", []string{"-a", "--threads", "-z", "-g", "-F", "499", "-e", "cpu-clock"}, several, 20, false},
		{"dwarf", []string{"--call-graph", "dwarf,1024", "-F", "499", "-e", "cpu-clock"}, several, 10, false},
		{"no inherit", []string{"-i", "-c", "1000000", "-e", "cpu-clock"}, busy, 5, false},
		{"sample times", []string{"-c", "1000000", "--no-buffering", "-T", "-e", "cpu-clock"}, busy, 5, false},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-")+".data")
			out := path
			if c.pipe {
				out = "-"
			}
			cmd := c.cmd
			if !c.pipe {
				cmd = append([]string{"--"}, cmd...)
			} else {
				cmd = []string{"--", "sh", "-c", "(" + strings.Join(cmd[2:], " ") + ") >/dev/null"}
			}
			record(t, path, append(append([]string{"-o", out}, c.args...), cmd...)...)
			r, recs := readAll(t, path)
			s := r.Stats()
			if s.Damage != nil || s.Malformed != 0 || s.Unknown != 0 || s.UnknownID != 0 || s.OutOfOrder != 0 {
				t.Errorf("%+v", s)
			}
			want := dumped(t, path)
			got := samplesOf(recs)
			if len(got) != len(want) || len(got) < c.min {
				t.Fatalf("%d samples, perf script has %d, at least %d expected", len(got), len(want), c.min)
			}
			for i := range want {
				if g := ownLine(got[i]); g != want[i] {
					t.Fatalf("sample %d is\n%s\nperf script says\n%s", i, g, want[i])
				}
			}
			t.Logf("%d samples equal", len(want))
		})
	}
}
