// Command vpmu runs a program under the virtual PMU: recordings as a
// processor and kernel would give them, and the exact truth of the same run.
//
//	go run ./testdata/vpmu/cmd -o perf.data -truth truth -samples 20000 -branch any_call -- /usr/bin/bc -lq pi.bc
//
// Further recordings of the same run take the flags' values and change some:
//
//	-also o=skid3.data,skid=3 -also o=harsh.data,sigma=0.7,seed=2
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/perfcorrect/perfcorrect/testdata/vpmu"
)

func main() {
	os.Exit(run())
}

func run() int {
	c := vpmu.Config{Stdout: os.Stdout, Stderr: os.Stderr}
	var also []string
	env, quiet := false, false
	rec := vpmu.DefaultRecording()
	rec.Output = ""
	fs := flag.NewFlagSet("vpmu", flag.ExitOnError)
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: vpmu [flags] -- PROGRAM [ARGS]")
		fs.PrintDefaults()
	}
	recordingFlags(fs, &rec)
	fs.StringVar(&c.TruthDir, "truth", "", "write the truth into `DIR`")
	fs.BoolVar(&c.NoCCT, "no-cct", false, "leave calling contexts out of the truth")
	fs.BoolVar(&c.Paths, "paths", false, "also count acyclic paths")
	fs.Uint64Var(&c.Slice, "slice", 4_000_000, "time slice of the virtual CPU, `cycles`")
	fs.StringVar(&c.Stdin, "stdin", "", "the program's standard input, `FILE`")
	fs.StringVar(&c.QEMU, "qemu", "qemu-x86_64", "the emulator")
	fs.StringVar(&c.WorkDir, "work", "", "keep plugin and counts in `DIR` (default: the user's cache)")
	fs.BoolVar(&c.KeepLog, "keep-log", false, "keep the raw event stream")
	fs.BoolVar(&env, "env", false, "give the program this environment instead of a fixed one")
	fs.BoolVar(&quiet, "quiet", false, "no summary")
	fs.Func("also", "a further recording: `o=FILE,flag=value,...`", func(s string) error { also = append(also, s); return nil })
	fs.Parse(os.Args[1:])
	c.Program = fs.Args()
	if len(c.Program) == 0 {
		fs.Usage()
		return 2
	}
	if env {
		c.Env = os.Environ()
	}
	if rec.Output != "" {
		c.Recordings = append(c.Recordings, rec)
	}
	for _, s := range also {
		r, err := parseAlso(rec, s)
		if err != nil {
			fmt.Fprintln(os.Stderr, "vpmu:", err)
			return 2
		}
		c.Recordings = append(c.Recordings, r)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	res, err := vpmu.Run(ctx, c)
	if err != nil {
		fmt.Fprintln(os.Stderr, strings.TrimPrefix("vpmu: "+err.Error(), "vpmu: vpmu: "))
		return 1
	}
	if !quiet {
		summary(&c, res)
	}
	return 0
}

func recordingFlags(fs *flag.FlagSet, r *vpmu.Recording) {
	fs.StringVar(&r.Output, "o", r.Output, "write a recording to `FILE`")
	fs.StringVar(&r.Event, "event", r.Event, "what is sampled: cycles, instructions, near_call, branches")
	fs.Func("members", "counted in the group, `LIST` joined by + (default near_call+instructions+branches; none: nothing)", func(s string) error {
		r.Members = nil
		if s != "none" {
			r.Members = strings.Split(s, "+")
		}
		return nil
	})
	fs.Float64Var(&r.Period, "period", r.Period, "sampling period in units of the event; 0: by -samples")
	fs.IntVar(&r.Samples, "samples", r.Samples, "samples wanted; a counting run finds the period")
	fs.Float64Var(&r.Jitter, "jitter", r.Jitter, "each period is even in period*(1±jitter/2)")
	fs.Uint64Var(&r.Seed, "seed", r.Seed, "of phase, jitter and losses")
	fs.Float64Var(&r.Sigma, "sigma", r.Sigma, "spread of the lognormal cost of blocks")
	fs.Uint64Var(&r.CostSeed, "cost-seed", r.CostSeed, "of the costs")
	fs.IntVar(&r.Skid, "skid", r.Skid, "instructions from tick to sample")
	fs.StringVar(&r.Clock, "clock", r.Clock, "thread or wall")
	fs.BoolVar(&r.Defer, "defer", r.Defer, "take samples at the next call")
	fs.StringVar(&r.Branch, "branch", r.Branch, "branch stack: none, any, any_call, call_stack")
	fs.StringVar(&r.Callchain, "callchain", r.Callchain, "none, exact, fp")
	fs.IntVar(&r.MaxStack, "max-stack", r.MaxStack, "longest callchain, 0: 127")
	fs.BoolVar(&r.Regs, "regs", r.Regs, "user registers (single steps: about 30 times slower)")
	fs.Func("stack", "`bytes` of user stack with each sample (single steps)", func(s string) error {
		n, err := strconv.ParseUint(s, 10, 32)
		r.StackDump = uint32(n)
		return err
	})
	pair := func(name, usage string, set func(a, b float64)) {
		fs.Func(name, usage, func(s string) error {
			x, y, ok := strings.Cut(s, ":")
			a, err := strconv.ParseFloat(x, 64)
			b, err2 := strconv.ParseFloat(y, 64)
			if !ok || err != nil || err2 != nil {
				return fmt.Errorf("%q is not two numbers joined by a colon", s)
			}
			set(a, b)
			return nil
		})
	}
	pair("multiplex", "count for `ON:OFF` cycles", func(a, b float64) { r.MuxOn, r.MuxOff = a, b })
	pair("lost", "`P:N`: with probability P a sample begins a loss of N", func(a, b float64) { r.Lost, r.LostRun = a, int(b) })
	pair("throttle", "`P:N`: with probability P a sample stops the event for N ticks", func(a, b float64) { r.Throttle, r.ThrottleRun = a, int(b) })
}

// parseAlso reads "flag=value,..." over a copy of the first recording.
func parseAlso(r vpmu.Recording, s string) (vpmu.Recording, error) {
	fs := flag.NewFlagSet("-also", flag.ContinueOnError)
	fs.SetOutput(new(strings.Builder))
	r.Output = ""
	recordingFlags(fs, &r)
	for _, kv := range strings.Split(s, ",") {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || fs.Lookup(k) == nil {
			return r, fmt.Errorf("-also %q: %q is not flag=value of a recording", s, kv)
		}
		if err := fs.Set(k, v); err != nil {
			return r, fmt.Errorf("-also %q: %s: %w", s, k, err)
		}
	}
	if r.Output == "" {
		return r, fmt.Errorf("-also %q: no o=FILE", s)
	}
	return r, nil
}

func summary(c *vpmu.Config, res *vpmu.Result) {
	fmt.Fprintf(os.Stderr, "vpmu: %.2f s, exit %d, %d threads, %d instructions, %d calls, %d branches\n", res.Elapsed.Seconds(),
		res.ExitCode, len(res.Threads), res.Total.Instructions, res.Total.Calls, res.Total.Branches)
	if res.Log != "" {
		fmt.Fprintln(os.Stderr, "vpmu: event stream:", res.Log)
	}
	for i, r := range c.Recordings {
		fmt.Fprintf(os.Stderr, "vpmu: %s: %d samples, %d dropped, %.0f cycles\n", r.Output, res.Samples[i], res.Lost[i], res.Cycles[i])
	}
	if len(res.Odd) > 0 {
		b, _ := json.Marshal(res.Odd)
		fmt.Fprintf(os.Stderr, "vpmu: %s\n", b)
	}
}
