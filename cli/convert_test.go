package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// TestLabels reads the profile back: labels are there when asked for, and only
// then.
func TestLabels(t *testing.T) {
	for _, labels := range []string{"", "thread", "thread,pid,tid"} {
		out := filepath.Join(t.TempDir(), "out.pb.gz")
		args := []string{"convert", "--quiet", "--symfs", recorded, "-o", out, filepath.Join(recorded, "latency-bias.data")}
		if labels != "" {
			args = append(args, "--label", labels)
		}
		if status := Main(args, IO{os.Stdin, os.Stdout, os.Stderr}); status != 0 {
			t.Fatalf("--label %q: exit status %d", labels, status)
		}
		f, err := os.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p, err := profile.Parse(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.CheckValid(); err != nil {
			t.Fatal(err)
		}
		tids := map[int64]bool{}
		for _, s := range p.Sample {
			if got := strings.Join(s.Label["thread"], " "); got != "latency-bias" && strings.Contains(labels, "thread") || got != "" && labels == "" {
				t.Errorf("--label %q: thread is %q", labels, got)
			}
			for _, n := range s.NumLabel["tid"] {
				tids[n] = true
			}
			if got := len(s.NumLabel["pid"]); got != strings.Count(labels, "pid") {
				t.Errorf("--label %q: %d labels pid", labels, got)
			}
		}
		if want := 4 * strings.Count(labels, "tid"); len(tids) != want {
			t.Errorf("--label %q: %d threads, want %d", labels, len(tids), want)
		}
	}
}
