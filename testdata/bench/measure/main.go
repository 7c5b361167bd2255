// Bench measures perfcorrect beside perf and FlameGraph on one recording, side
// by side in one run, and itself on a second one twice as long. It writes
// Markdown to standard output; make bench keeps that as docs/performance.md.
//
//	bench PERFCORRECT FIRST.data SECOND.data
//
// Seconds are wall time, memory is the peak resident set of the largest
// process. Each of perfcorrect's own is the fastest of three runs; the others
// run once.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

func main() {
	// The steps that are part of a command run as processes of their own, so
	// that their memory can be measured like the others'; and this process
	// stays small, for the peak Linux gives of a child is at least what its
	// parent had when it started it (fs/exec.c, exec_mmap).
	if len(os.Args) == 3 {
		steps := map[string]func(string) error{"walk": walk, "decode": decode, "count": count}
		if err := steps[os.Args[1]](os.Args[2]); err != nil {
			fail(err)
		}
		return
	}
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: bench PERFCORRECT FIRST.data SECOND.data")
		os.Exit(2)
	}
	if err := report(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// work is one thing to measure; FILE stands for the recording.
type work struct {
	name    string
	command string
	runs    int
}

func ours(program, self string) []work {
	return []work{
		{"read every record header", self + " walk FILE", 3},
		{"decode every record, in time order", self + " decode FILE", 3},
		{"`convert --format folded --method none`, symbolised", program + " convert -q --method none --format folded -o /dev/null FILE", 3},
		{"`convert` to pprof", program + " convert -q -o /dev/null FILE", 3},
		{"`convert --graph dcg --format jsonl`", program + " convert -q --graph dcg --format jsonl -o /dev/null FILE", 3},
		{"`info`", program + " info -q -o /dev/null FILE", 3},
	}
}

const foldedRow = 2 // of ours: what the peers are compared with

func peers() []work {
	p := []work{
		{"`perf report --stdio -g --no-children`", "perf report --stdio -g --no-children -i FILE > /dev/null", 1},
		{"`perf script > /dev/null`", "perf script -i FILE > /dev/null", 1},
	}
	if collapse := stackcollapse(); collapse != "" {
		p = append(p, work{"`perf script \\| stackcollapse-perf.pl --all`", "perf script -i FILE | " + collapse + " --all > /dev/null", 1})
	}
	return p
}

func stackcollapse() string {
	if dir := os.Getenv("FLAMEGRAPH_DIR"); dir != "" {
		return dir + "/stackcollapse-perf.pl"
	}
	path, _ := exec.LookPath("stackcollapse-perf.pl")
	return path
}

func report(program, first, second string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Print("# How fast\n\n`make bench` wrote this file; the inputs are made by `make bench-data`.\n\n")
	describeMachine()
	var seconds []float64
	for i, file := range []string{first, second} {
		if err := describeInput(self, file); err != nil {
			return err
		}
		fmt.Print("| | seconds | peak MiB | times `convert --format folded` |\n|---|---:|---:|---:|\n")
		list := ours(program, self)
		if i == 0 {
			list = append(list, peers()...)
		}
		var results []result
		for _, w := range list {
			fmt.Fprintln(os.Stderr, "bench:", strings.ReplaceAll(w.command, "FILE", file))
			r, err := measure(w, file)
			if err != nil {
				return err
			}
			results = append(results, r)
		}
		for j, r := range results {
			fmt.Printf("| %s | %.2f | %.0f | %.2f |\n", list[j].name, r.seconds, r.peak/(1<<20), r.seconds/results[foldedRow].seconds)
		}
		fmt.Println()
		seconds = append(seconds, results[foldedRow].seconds)
	}
	fmt.Printf("The second recording took %.2f times as long as the first to fold.\n", seconds[1]/seconds[0])
	return nil
}

func describeMachine() {
	model := "an unknown CPU"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if v, ok := strings.CutPrefix(line, "model name"); ok {
				model = strings.TrimSpace(strings.TrimLeft(v, " \t:"))
				break
			}
		}
	}
	perf, _ := exec.Command("perf", "--version").Output()
	cpus, _ := exec.Command("nproc").Output()
	fmt.Printf("%s CPUs of %s, %s, %s. Times of perfcorrect are the best of three runs.\n\n",
		strings.TrimSpace(string(cpus)), model, strings.TrimSpace(string(perf)), time.Now().Format("2 January 2006"))
}

func describeInput(self, file string) error {
	st, err := os.Stat(file)
	if err != nil {
		return err
	}
	out, err := exec.Command(self, "count", file).Output()
	if err != nil {
		return fmt.Errorf("counting the stacks of %s: %w", file, err)
	}
	var samples, stacks int64
	if _, err := fmt.Sscan(string(out), &samples, &stacks); err != nil {
		return err
	}
	fmt.Printf("## %s: %.0f MB, %.2f million samples, %.2f million distinct stacks\n\n",
		file[strings.LastIndex(file, "/")+1:], float64(st.Size())/1e6, float64(samples)/1e6, float64(stacks)/1e6)
	return nil
}

type result struct {
	seconds float64
	peak    float64 // bytes
}

// measure runs the command in a shell and returns the fastest run, and the
// peak memory of the largest process in any.
func measure(w work, file string) (result, error) {
	best := result{seconds: 1e9}
	for range w.runs {
		cmd := exec.Command("bash", "-c", "set -o pipefail; "+strings.ReplaceAll(w.command, "FILE", file))
		var stderr strings.Builder
		cmd.Stderr = &stderr
		start := time.Now()
		if err := cmd.Run(); err != nil {
			return best, fmt.Errorf("%s: %w: %s", w.command, err, stderr.String())
		}
		best.seconds = min(best.seconds, time.Since(start).Seconds())
		// wait4 gives the shell's own peak and, of what it has waited for, the
		// largest (getrusage(2), RUSAGE_CHILDREN); Linux counts in KiB.
		usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		best.peak = max(best.peak, float64(usage.Maxrss)*1024)
	}
	return best, nil
}

// walk reads the header of every record and nothing else: what any reader has
// to do.
func walk(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	var head [104]byte // perf_file_header
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return err
	}
	offset, size := binary.LittleEndian.Uint64(head[40:]), binary.LittleEndian.Uint64(head[48:])
	r := bufio.NewReaderSize(io.NewSectionReader(f, int64(offset), int64(size)), 1<<20)
	records := 0
	for {
		h, err := r.Peek(8)
		if err == io.EOF {
			fmt.Println(records, "records")
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := r.Discard(max(8, int(binary.LittleEndian.Uint16(h[6:])))); err != nil {
			return err
		}
		records++
	}
}

// decode reads every record as the struct it is.
func decode(path string) error {
	r, err := perfdata.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	records := 0
	for _, err := range r.Records() {
		if err != nil {
			return err
		}
		records++
	}
	fmt.Println(records, "records")
	return nil
}

// count prints the number of samples and how many different stacks of
// addresses they have.
func count(path string) error {
	r, err := perfdata.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	samples, stacks := 0, graph.NewStacks()
	for s, err := range session.New(r, image.NewStore(image.Options{})).Samples() {
		if err != nil {
			return err
		}
		stacks.Add(graph.Label{Comm: s.Thread.Comm}, s.Stack, graph.Values{Samples: 1})
		samples++
	}
	fmt.Println(samples, stacks.Len())
	return nil
}
