package perfdata

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	kdabHead   = regexp.MustCompile(`^[^\t]*\t(-?\d+)\t(-?\d+)\t(\d+)\.(\d{9})$`)
	kdabEvent  = regexp.MustCompile(`^\t(\S+): (\d+)$`)
	kdabSched  = regexp.MustCompile(`^\t(sched:sched_switch): sched sched_switch \d+$`)
	kdabKernel = regexp.MustCompile(`^\t(ffffffff[0-9a-f]{8}) 0\t`)
)

// kernelFrames are the kernel addresses of a callchain. In front of what an LBR
// call stack tells stands the ip again.
func kernelFrames(s *Sample) []string {
	var out []string
	chain := slices.Clone(s.Callchain)
	if s.Event.BranchSampleType&BranchCallStack != 0 {
		chain = append(chain, s.IP)
	}
	for _, ip := range chain {
		if ip < ContextMax && ip>>32 == 0xffffffff {
			out = append(out, fmt.Sprintf("%x", ip))
		}
	}
	return out
}

// The texts hotspot's unwinder made of the same recordings: pid, tid, time,
// event, cost, and the kernel's frames, which it took from the callchain.
func TestHotspotTexts(t *testing.T) {
	for _, name := range []string{
		"vector_static_gcc/perf.data", "vector_static_gcc/perf.data.zstd",
		"vector_static_gcc/perf.lbr.data", "parallel_static_gcc/perf.data.zstd",
	} {
		path := fixture(t, "KDAB_perfparser/"+name)
		b, err := os.ReadFile(path + ".expected.txt")
		if err != nil {
			t.Fatal(err)
		}
		_, recs := readAll(t, path)
		samples := samplesOf(recs)
		n := -1
		var frames []string
		kernel := 0
		check := func() {
			if n < 0 || n >= len(samples) {
				return
			}
			want := kernelFrames(samples[n])
			kernel += len(frames)
			if !slices.Equal(want, frames) {
				t.Errorf("%s sample %d: kernel frames %v, the text has %v", name, n, want, frames)
			}
			frames = nil
		}
		for line := range strings.Lines(string(b)) {
			line = strings.TrimSuffix(line, "\n")
			if m := kdabHead.FindStringSubmatch(line); m != nil {
				check()
				n++
				if n < len(samples) {
					s := samples[n]
					if got := fmt.Sprintf("%d %d %d.%09d", s.PID, s.TID, s.Time/1e9, s.Time%1e9); got != m[1]+" "+m[2]+" "+m[3]+"."+m[4] {
						t.Fatalf("%s sample %d: %s, the text has %q", name, n, got, m[0])
					}
				}
			} else if m := kdabEvent.FindStringSubmatch(line); m != nil {
				if s := samples[n]; s.Event.Name != m[1] || fmt.Sprint(s.Period) != m[2] {
					t.Errorf("%s sample %d: %s %d, the text has %s %s", name, n, s.Event.Name, s.Period, m[1], m[2])
				}
			} else if m := kdabSched.FindStringSubmatch(line); m != nil {
				if s := samples[n]; s.Event.Name != m[1] || len(s.Raw) == 0 {
					t.Errorf("%s sample %d: %s, the text has %s", name, n, s.Event.Name, m[1])
				}
			} else if m := kdabKernel.FindStringSubmatch(line); m != nil {
				frames = append(frames, m[1])
			}
		}
		check()
		if n+1 != len(samples) || kernel == 0 {
			t.Errorf("%s: %d samples, the text has %d, with %d kernel frames", name, len(samples), n+1, kernel)
		}
	}
}
