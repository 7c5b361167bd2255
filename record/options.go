package record

import (
	"time"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// Target is what is recorded: a command, processes, threads, CPUs or a cgroup.
type Target struct {
	Command  []string
	PIDs     []int
	TIDs     []int
	AllCPUs  bool
	CPUs     []int  // only these; alone, everything on them
	Cgroup   string // path below the cgroup mount
	NoFollow bool   // threads and children made later are not recorded
}

// Wide reports whether events belong to CPUs, not to threads.
func (t *Target) Wide() bool {
	return t.AllCPUs || t.Cgroup != "" || len(t.PIDs)+len(t.TIDs)+len(t.Command) == 0 ||
		len(t.CPUs) > 0 && len(t.PIDs)+len(t.TIDs) == 0
}

// Choice is a flag that leaves the decision open unless it is given.
type Choice uint8

const (
	Auto Choice = iota
	On
	Off
)

// Options say how to record. The zero value is the default recording.
type Options struct {
	Target Target

	Events     string // as perf's -e; "" opens the best this machine has
	Freq       uint64 // samples a second of running time, 0 is DefaultFreq
	MaxFreq    bool   // as many as the kernel allows
	Count      uint64 // or a sample every Count events
	CallGraph  string // fp, dwarf, lbr, no; "" is fp with a small stack dump
	StackSize  uint32 // bytes of user stack with each sample; 0 is the default of CallGraph
	NoDump     bool   // no stack dump beside frame pointers
	Branch     perfdata.BranchSample
	BranchOff  bool     // no branch stacks even where there are any
	Switches   Choice   // context-switch records
	UserOnly   bool     // no samples of the kernel
	CountCalls []string // functions whose calls a uprobe counts: FUNC, FILE:FUNC

	Clock *Clock // of the records' times, nil is the kernel's own

	Jitter float64 // share by which the period varies; 0 does not. See Jitter.
	CBS    *CBS    // counter-based sampling
	Tune   *Tune   // let the interval follow the samples

	RingSize int // bytes for each CPU, a power of two; 0 is the default
	Duration time.Duration
}

// DefaultFreq is perf's; with CBS a tick stands for a burst.
const (
	DefaultFreq    = 4000
	DefaultCBSFreq = 100
)

// Defaults for stack dumps, bytes.
const (
	SmallDump = 512  // enough for the caller of a function without frame
	DwarfDump = 8192 // perf's, to unwind all of the stack
)

// Clock is a clock of clock_gettime(2), for -k.
type Clock struct {
	Name string
	ID   int32
}

// CBS is counter-based sampling (Arnold and Grove, CGO 2005, section 4): after
// each tick of the timer, Samples calls are sampled, Stride calls apart.
type CBS struct{ Samples, Stride uint64 }

// Tune lets the sampling interval follow the share of ticks that find the same
// activation on top of the stack as the tick before (Chilingarova and Safonov
// 2006, section 3.3).
type Tune struct {
	Every     int     // samples between two decisions; the paper has 1,000
	Low, High float64 // shares: below Low the interval shrinks, above High it grows; 0.01 and 0.15
	Factor    float64 // by which it does; the paper does not say, 2 here
	Min, Max  uint64  // bounds of the period, ns or events; 0 is Factor^5 around the first
}

// DefaultTune has the paper's values.
func DefaultTune() Tune { return Tune{Every: 1000, Low: 0.01, High: 0.15, Factor: 2} }
