//go:build ignore

// bench RUNS DIR FILE measures perfcorrect record beside perf record and
// replaces the tables in FILE. bench measure OUT PROGRAM... runs a program and
// writes what it used.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) > 3 && os.Args[1] == "measure" {
		measure(os.Args[2], os.Args[3:])
		return
	}
	runs, err := strconv.Atoi(os.Args[1])
	check(err)
	dir, err := filepath.Abs(os.Args[2])
	check(err)
	text := overheadTable(runs, dir) + lossTable(dir) + sameTable(dir)
	fmt.Print(text)
	doc, err := os.ReadFile(os.Args[3])
	check(err)
	const begin, end = "<!-- begin of figures: make record-bench -->\n", "<!-- end of figures -->\n"
	head, rest, ok1 := strings.Cut(string(doc), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		log.Fatalf("%s has no place for the figures", os.Args[3])
	}
	check(os.WriteFile(os.Args[3], []byte(head+begin+text+end+tail), 0o644))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// usage is CPU seconds and elapsed seconds.
type usage struct{ CPU, Wall float64 }

func cpu(r *syscall.Rusage) float64 {
	return float64(r.Utime.Sec+r.Stime.Sec) + float64(r.Utime.Usec+r.Stime.Usec)/1e6
}

// measure is the recorded program: it runs the real one and notes its use.
func measure(out string, args []string) {
	begin := time.Now()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout = nil
	check(cmd.Run())
	wall := time.Since(begin).Seconds()
	var self, kids syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &self))
	check(syscall.Getrusage(syscall.RUSAGE_CHILDREN, &kids))
	b, err := json.Marshal([]usage{{cpu(&kids), wall}, {cpu(&self), 0}})
	check(err)
	check(os.WriteFile(out, b, 0o644))
}

// once runs a program under a recorder (none if empty) and returns the
// program's use and the recorder's.
func once(dir string, recorder []string, program []string) (target, own usage) {
	self, err := os.Executable()
	check(err)
	note := filepath.Join(dir, "note")
	args := append(append(slices.Clone(recorder), self, "measure", note), program...)
	cmd := exec.Command(args[0], args[1:]...)
	if b, err := cmd.CombinedOutput(); err != nil {
		log.Fatalf("%v: %v\n%s", args, err, b)
	}
	b, err := os.ReadFile(note)
	check(err)
	var u []usage
	check(json.Unmarshal(b, &u))
	total := cpu(cmd.ProcessState.SysUsage().(*syscall.Rusage))
	return u[0], usage{CPU: total - u[0].CPU - u[1].CPU}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

type program struct {
	name string
	args []string
}

func programs(dir string) []program {
	return []program{
		{"CPU-bound", []string{dir + "/calls", "500000"}},
		{"gzip, 30 MB", []string{"gzip", "-c", "-6", dir + "/input"}},
		{"100 threads", []string{dir + "/many", "100", "0", "400"}},
		{"3,000 forks", []string{dir + "/many", "0", "3000", "1"}},
		{"800 execs", []string{"sh", "-c", "i=0; while [ $i -lt 800 ]; do /bin/true; i=$((i+1)); done"}},
		{"sort", []string{"sort", "-S", "50M", "--parallel=2", "-o", "/dev/null", dir + "/input"}},
	}
}

var recorders = []struct {
	name string
	args func(dir, rate string) []string
}{
	{"none", func(string, string) []string { return nil }},
	{"perf", func(dir, rate string) []string {
		return []string{"perf", "record", "-q", "-e", "cpu-clock", "-F", rate, "-g", "-o", dir + "/perf.data"}
	}},
	{"perfcorrect", func(dir, rate string) []string {
		return []string{"perfcorrect", "record", "-q", "-e", "cpu-clock", "-F", rate, "--call-graph", "fp", "-o", dir + "/own.data"}
	}},
	{"perfcorrect, default evidence", func(dir, rate string) []string {
		return []string{"perfcorrect", "record", "-q", "-F", rate, "-o", dir + "/default.data"}
	}},
}

func overheadTable(runs int, dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nOverhead at 4,000 Hz with callchains: CPU time of the program more than without a recorder, and CPU time of the recorder itself; least of %d runs in turn (and median), as everything else on the machine only adds.\n\n", runs)
	b.WriteString("| program | alone, s | perf | perfcorrect | default evidence | perf itself, ms | perfcorrect itself, ms | default evidence, ms |\n|---|---|---|---|---|---|---|---|\n")
	for _, p := range programs(dir) {
		target, own := map[string][]float64{}, map[string][]float64{}
		for range runs {
			for _, r := range recorders {
				t, o := once(dir, r.args(dir, "4000"), p.args)
				target[r.name] = append(target[r.name], t.CPU)
				own[r.name] = append(own[r.name], 1000*o.CPU)
			}
		}
		alone, usual := slices.Min(target["none"]), median(target["none"])
		fmt.Fprintf(&b, "| %s | %.2f", p.name, alone)
		for _, r := range recorders[1:] {
			fmt.Fprintf(&b, " | %+.1f %% (%+.1f)", 100*(slices.Min(target[r.name])/alone-1), 100*(median(target[r.name])/usual-1))
		}
		for _, r := range recorders[1:] {
			fmt.Fprintf(&b, " | %.0f", median(own[r.name]))
		}
		b.WriteString(" |\n")
		log.Print(p.name)
	}
	return b.String()
}

var samplesLost = regexp.MustCompile(`(\d+) samples?, (\d+) lost`)

func lossTable(dir string) string {
	var b strings.Builder
	b.WriteString("\nLosses: two threads on two CPUs, 10,000 Hz, callchains, 5 s.\n\n| recorder | samples | lost |\n|---|---|---|\n")
	prog := []string{dir + "/many", "2", "0", "100000"}
	timeout := append([]string{"timeout", "5"}, prog...)
	for _, extra := range [][]string{{"--call-graph", "fp", "-e", "cpu-clock"}, nil} {
		args := append([]string{"record", "-F", "10000", "-o", dir + "/loss.data"}, extra...)
		out, _ := exec.Command("perfcorrect", append(args, timeout...)...).CombinedOutput()
		m := samplesLost.FindStringSubmatch(string(out))
		if m == nil {
			log.Fatalf("perfcorrect record: %s", out)
		}
		name := "perfcorrect"
		if extra == nil {
			name += ", default evidence"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, m[1], m[2])
	}
	exec.Command("perf", append([]string{"record", "-q", "-e", "cpu-clock", "-F", "10000", "-g", "-o", dir + "/loss.data"}, timeout...)...).Run()
	out, err := exec.Command("perf", "report", "-i", dir+"/loss.data", "--stats").CombinedOutput()
	check(err)
	stat := func(name string) string {
		m := regexp.MustCompile(name + ` events:\s+(\d+)`).FindSubmatch(out)
		if m == nil {
			return "0"
		}
		return string(m[1])
	}
	fmt.Fprintf(&b, "| perf | %s | %s records of loss |\n", stat("SAMPLE"), stat("LOST"))
	return b.String()
}

// sameTable compares what the two find in one program.
func sameTable(dir string) string {
	var b strings.Builder
	b.WriteString("\nThe same program recorded by both (CPU-bound, 1,000 Hz, three times): seconds sampled over CPU seconds used, and the share of samples in stacks that are not of the other's.\n\n")
	b.WriteString("| recorder | samples | sampled / used | in stacks the other has not |\n|---|---|---|---|\n")
	stacks := map[string]map[string]float64{}
	for _, r := range recorders[1:3] {
		n, seconds, used := 0.0, 0.0, 0.0
		stacks[r.name] = map[string]float64{}
		for range 3 {
			t, _ := once(dir, r.args(dir, "1000"), []string{dir + "/calls", "500000"})
			file := dir + map[string]string{"perf": "/perf.data", "perfcorrect": "/own.data"}[r.name]
			out, err := exec.Command("perf", "script", "--no-inline", "-i", file, "--comm", "calls", "-F", "comm,period,ip,sym").Output()
			check(err)
			for block := range strings.SplitSeq(string(out), "\n\n") {
				var frames []string
				for i, line := range slices.Collect(strings.Lines(strings.TrimPrefix(block, "\n"))) {
					f := strings.Fields(line)
					switch {
					case len(f) < 2:
					case i == 0:
						p, _ := strconv.ParseFloat(f[1], 64)
						seconds += p / 1e9
						n++
					default:
						frames = append(frames, f[1])
					}
				}
				if len(frames) > 0 && slices.Contains(frames, "main") {
					stacks[r.name][strings.Join(frames[max(0, len(frames)-4):], ";")]++
				}
			}
			used += t.CPU
		}
		fmt.Fprintf(&b, "| %s | %.0f | %.3f | @%s@ |\n", r.name, n, seconds/used, r.name)
	}
	text := b.String()
	for name, mine := range stacks {
		other := "perf"
		if name == other {
			other = "perfcorrect"
		}
		var all, alone, chi float64
		var theirs float64
		for _, n := range stacks[other] {
			theirs += n
		}
		for _, n := range mine {
			all += n
		}
		classes := 0
		for s, n := range mine {
			if stacks[other][s] == 0 {
				alone += n
			}
			if m := stacks[other][s]; n+m >= 20 {
				d := n*math.Sqrt(theirs/all) - m*math.Sqrt(all/theirs)
				chi += d * d / (n + m)
				classes++
			}
		}
		text = strings.Replace(text, "@"+name+"@", fmt.Sprintf("%.2f %%", 100*alone/all), 1)
		if name == "perfcorrect" {
			text += fmt.Sprintf("\nShares of the %d commonest stacks: chi-squared %.1f for %d degrees of freedom.\n", classes, chi, classes-1)
		}
	}
	return text
}
