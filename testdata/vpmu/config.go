package vpmu

import (
	"fmt"
	"io"
	"math"
)

// Config is one run of a program.
type Config struct {
	Program []string // file and arguments; the file is looked up in PATH
	Dir     string   // working directory, "" for the current one
	Env     []string // the program's environment; nil is a fixed small one, so that runs repeat
	Stdin   string   // file, "" for /dev/null
	Stdout  io.Writer
	Stderr  io.Writer

	Recordings []Recording
	TruthDir   string // where the truth goes, "" for nowhere
	NoCCT      bool   // leave out calling contexts (deep recursion makes them many)
	Paths      bool   // also count acyclic paths
	Slice      uint64 // time slice of the virtual CPU, cycles; 0 is 4,000,000

	QEMU      string // "" is qemu-x86_64
	QEMUFlags []string
	WorkDir   string // for the plugin, cached counts and the event stream; "" is the user's cache directory
	KeepLog   bool   // leave the event stream in WorkDir
}

// Recording is one recording of the run. Several are taken at the same time
// and do not disturb one another.
type Recording struct {
	Output string // file

	Event   string   // what is sampled: cycles, instructions, near_call, branches
	Members []string // what is counted with it and read with every sample
	Period  float64  // of Event; 0: Samples decides
	Samples int      // samples wanted: Period is the run's count of Event divided by it
	Jitter  float64  // each period is even in Period*(1±Jitter/2)
	Seed    uint64   // of phase and jitter

	Sigma    float64 // spread of the lognormal cost factor of blocks
	CostSeed uint64

	Skid  int    // instructions between tick and sample
	Clock string // thread (stops with the thread) or wall
	Defer bool   // the sample waits for the next call of the thread

	Branch    string // none, any, any_call, call_stack
	Callchain string // none, exact, fp (the frame pointers, as the kernel walks them)
	MaxStack  int    // 0 is 127, as perf_event_max_stack
	Regs      bool   // user registers; runs the program in single steps
	StackDump uint32 // bytes of user stack

	// Multiplexing: the group counts for MuxOn cycles of the thread, then not
	// for MuxOff.
	MuxOn, MuxOff float64
	// Lost: with this probability a sample begins a stretch of LostRun samples
	// that the ring buffer drops. Throttled likewise, for ThrottleRun ticks.
	Lost        float64
	LostRun     int
	Throttle    float64
	ThrottleRun int
}

// DefaultRecording is a cycles event with a call counter and exact callchains.
func DefaultRecording() Recording {
	return Recording{
		Output: "perf.data", Event: "cycles", Members: []string{"near_call", "instructions", "branches"},
		Samples: 2000, Jitter: 0.2, Seed: 1, CostSeed: 1, Clock: "thread", Branch: "none", Callchain: "exact",
		LostRun: 10, ThrottleRun: 10,
	}
}

// laneSpec is a clock: what it counts, and for cycles what blocks cost.
type laneSpec struct {
	Kind  int // of the plugin's LANE_* values
	Sigma float64
	Seed  uint64
}

const (
	laneCycles = iota
	laneInstructions
	laneCalls
	laneBranches
)

var laneKinds = map[string]int{
	"cycles": laneCycles, "instructions": laneInstructions, "near_call": laneCalls, "branches": laneBranches,
}

func pick(name, what string, names ...string) (int, error) {
	for i, n := range names {
		if n == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("vpmu: %s %q: not one of %v", what, name, names)
}

func (r *Recording) cost() laneSpec {
	l := laneSpec{Kind: laneCycles, Sigma: r.Sigma, Seed: r.CostSeed}
	if l.Sigma == 0 {
		l.Seed = 0
	}
	return l
}

func (r *Recording) check() error {
	if _, ok := laneKinds[r.Event]; !ok {
		return fmt.Errorf("vpmu: event %q: not one of cycles, instructions, near_call, branches", r.Event)
	}
	for _, m := range r.Members {
		if _, ok := laneKinds[m]; !ok {
			return fmt.Errorf("vpmu: member %q: not one of cycles, instructions, near_call, branches", m)
		}
	}
	switch {
	case r.Period <= 0 && r.Samples <= 0:
		return fmt.Errorf("vpmu: %s: neither a period nor a number of samples", r.Output)
	case r.Jitter < 0 || r.Jitter > 2:
		return fmt.Errorf("vpmu: jitter %g: not between 0 and 2", r.Jitter)
	case r.Sigma < 0 || r.Sigma > 5:
		return fmt.Errorf("vpmu: sigma %g: not between 0 and 5", r.Sigma)
	case r.Skid < 0:
		return fmt.Errorf("vpmu: skid %d", r.Skid)
	case r.Clock == "wall" && r.Event != "cycles":
		return fmt.Errorf("vpmu: the wall clock ticks in cycles, not %s", r.Event)
	case (r.MuxOn > 0) != (r.MuxOff > 0):
		return fmt.Errorf("vpmu: multiplexing needs both an on and an off time")
	case r.StackDump > 65528:
		return fmt.Errorf("vpmu: stack dump of %d bytes: at most 65528", r.StackDump)
	}
	return nil
}

// singleStep: registers are known only where the emulator keeps them in
// memory, at the start of a translated block; blocks of one instruction make
// that every instruction.
func (r *Recording) singleStep() bool { return r.Regs || r.StackDump > 0 || r.Callchain == "fp" }

// lanes returns the clocks a set of recordings needs; the first is the one
// time slices are measured on.
func lanes(recs []Recording) (specs []laneSpec, count, time []int) {
	find := func(l laneSpec) int {
		for i, s := range specs {
			if s == l {
				return i
			}
		}
		specs = append(specs, l)
		return len(specs) - 1
	}
	for i := range recs {
		t := find(recs[i].cost())
		c := t
		if k := laneKinds[recs[i].Event]; k != laneCycles {
			c = find(laneSpec{Kind: k})
		}
		time, count = append(time, t), append(count, c)
	}
	if len(specs) == 0 {
		find(laneSpec{Kind: laneCycles})
	}
	return specs, count, time
}

// unit is the plugin's UNIT: parts of a cycle costs are kept in.
const unit = 256

// samplerLine is a recording as the plugin's configuration wants it.
func (r *Recording) samplerLine(count, time int, period float64) (string, error) {
	clock, err := pick(r.Clock, "clock", "thread", "wall")
	if err != nil {
		return "", err
	}
	branch, err := pick(r.Branch, "branch", "none", "any", "any_call", "call_stack")
	if err != nil {
		return "", err
	}
	chain, err := pick(r.Callchain, "callchain", "none", "exact", "fp")
	if err != nil {
		return "", err
	}
	maxStack := r.MaxStack
	if maxStack <= 0 {
		maxStack = 127
	}
	num := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	return fmt.Sprintf("sampler %d %d %.0f %g %d %d %d %d %d %d %d %d %d %.0f %.0f", count, time,
		math.Max(1, math.Round(period*unit)), r.Jitter, r.Seed, r.Skid, clock, num(r.Defer), branch, chain, maxStack,
		num(r.Regs || r.StackDump > 0), r.StackDump, r.MuxOn*unit, r.MuxOff*unit), nil
}
