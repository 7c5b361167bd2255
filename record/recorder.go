package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// Config is a recording to be made.
type Config struct {
	Options
	Machine *Machine
	Caps    *Capabilities
	Plan    *Plan
	Output  Output
	Cmdline []string // as the recording is to show it
	Version string

	Say      func(format string, args ...any) // something the user should know now
	Progress func(Counts, time.Duration)      // called a few times a second; nil if nobody looks

	probes *tracedProbes
}

// Result is what became of a recording.
type Result struct {
	Counts
	Elapsed time.Duration
	Status  int // of the command; 0 if Duration ended it
	Events  []*perfdata.Event
}

// recorder is a recording under way.
type recorder struct {
	*Config
	opened
	scan     scanner
	ids      *buildIDs
	meta     *perfdata.Meta
	writer   *perfdata.Writer
	writeErr error
	child    *child
	poll     *poller
	started  time.Time
	modules  []*perfdata.Mmap

	strategy []strategy
	scale    float64           // of the rate, against that the events were opened with
	periods  map[uint64]uint64 // by id: the period of timers that were changed; nil if ids do not tell instances apart
	filter   *filter           // nil keeps all
	written  bool              // something since the last FINISHED_ROUND
	state    *os.ProcessState
	timeUp   bool // Duration has passed, and the command was told to end
}

// strategy acts while the recording runs: it changes periods, starts events.
type strategy interface {
	// begin is called when the events are open, before they run.
	begin(r *recorder) error
	// sample is called for each sample if perSample says so, in the order of the
	// ring buffers.
	perSample() bool
	sample(id, time uint64, record []byte)
	// after is called behind each drain, and when next has passed.
	after(now time.Time) error
	// next is when the strategy wants to be called at the latest; zero: never.
	next() time.Time
}

// Run records until the command ends, the processes attached to have ended,
// Duration has passed or ctx is cancelled. An error with a Result says that
// the recording is not what it should be, but there is one.
func Run(ctx context.Context, cfg *Config) (*Result, error) {
	r := &recorder{Config: cfg, ids: newBuildIDs(), scale: 1}
	r.opened = opened{plan: cfg.Plan, opt: &cfg.Options, byCPU: map[int]*ring{}, cgroup: -1}
	// A closed pipe is an error to report, not a signal to die of. (Ignoring
	// the signal would be inherited by the program.)
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	// One thread does the work: with busy CPUs each change of threads is a wait.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer cfg.Close() // when the events are closed
	if err := r.prepare(); err != nil {
		r.giveUp()
		return nil, err
	}
	return r.run(ctx)
}

// prepare does everything that can fail before the program runs.
func (r *recorder) prepare() error {
	var err error
	if r.cpus, err = recordedCPUs(r.Machine, &r.Target); err != nil {
		return err
	}
	if len(r.Target.Command) > 0 {
		stdout := os.Stdout
		if r.Output.Name == "-" {
			stdout = os.Stderr
		}
		if r.child, err = startChild(r.Target.Command, stdout); err != nil {
			return err
		}
	}
	raiseFileLimit()
	raisePriority()
	if r.child != nil {
		if err := r.child.ready(); err != nil {
			return err
		}
	}
	if err := r.openEvents(); err != nil {
		return err
	}
	if r.poll, err = newPoller(r); err != nil {
		return err
	}
	if err := r.Output.open(); err != nil {
		return err
	}
	return r.begin()
}

func (r *recorder) openEvents() error {
	tids, err := r.tids()
	if err != nil {
		return err
	}
	if r.Target.Cgroup != "" {
		if r.cgroup, err = openCgroup(r.Target.Cgroup); err != nil {
			return err
		}
	}
	if err := r.open(tids); err != nil {
		return Explain(err, readRights(), r.Plan.PerCPU)
	}
	return nil
}

// tids are the threads to open events on, -1 for all of a CPU.
func (r *recorder) tids() ([]int, error) {
	if r.Plan.PerCPU {
		return []int{-1}, nil
	}
	if r.child != nil {
		return []int{r.child.pid()}, nil
	}
	tids := append([]int(nil), r.Target.TIDs...)
	for _, pid := range r.Target.PIDs {
		more, err := threadsOf(procFS(), pid)
		if err != nil {
			return nil, err
		}
		tids = append(tids, more...)
	}
	return tids, nil
}

func procFS() fs.FS { return os.DirFS("/proc") }

// raiseFileLimit: events are files, one for each event, thread and CPU.
func raiseFileLimit() {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil && lim.Cur < lim.Max {
		lim.Cur = lim.Max
		unix.Setrlimit(unix.RLIMIT_NOFILE, &lim)
	}
}

// raisePriority lets the recorder run when a ring fills, however many threads
// want the CPUs; it runs little. Only those who may can do it. It comes after
// the start of the program, which would inherit it.
func raisePriority() {
	tasks, _ := os.ReadDir("/proc/self/task") // the priority is each thread's own
	for _, t := range tasks {
		if tid, ok := number(t.Name()); ok {
			unix.Setpriority(unix.PRIO_PROCESS, tid, recorderNice)
		}
	}
}

const recorderNice = -10

// begin writes the head of the recording.
func (r *recorder) begin() error {
	r.meta = r.opened.meta()
	describeHost(r.meta, r.Machine)
	r.meta.Cmdline, r.meta.Version = r.Cmdline, r.Version
	var tracepoints []string
	for _, ev := range r.meta.Events {
		if ev.Type == perfdata.TypeTracepoint {
			tracepoints = append(tracepoints, ev.Name)
		}
	}
	r.meta.TracingData = r.Machine.TracingData(tracepoints)
	if r.Clock != nil {
		r.meta.ClockID, r.meta.ClockData = clockData(r.Clock)
	}
	var err error
	if r.writer, err = r.Output.writer(r.meta); err != nil {
		r.writeErr = err
		return r.outputError()
	}
	if r.Plan.PerCPU || r.Target.NoFollow {
		r.periods = map[uint64]uint64{}
	}
	if r.Plan.Filtered {
		if err := r.startFilter(); err != nil {
			return err
		}
	}
	r.scan.mapped = r.ids.mapped
	r.scan.tailSize = sampleIDSize
	for _, s := range r.strategies() {
		if err := s.begin(r); err != nil {
			return err
		}
		r.strategy = append(r.strategy, s)
		if s.perSample() {
			r.scan.sampled = r.eachSample
		}
	}
	return r.kernelRecords()
}

// startFilter begins with the processes the recording is of.
func (r *recorder) startFilter() error {
	r.filter = &filter{pids: map[uint32]bool{}, tail: sampleIDSize}
	if r.child != nil {
		r.filter.pids[uint32(r.child.pid())] = true
	}
	for _, pid := range r.Target.PIDs {
		r.filter.pids[uint32(pid)] = true
	}
	return nil
}

func (r *recorder) eachSample(id, time uint64, record []byte) {
	for _, s := range r.strategy {
		if s.perSample() {
			s.sample(id, time, record)
		}
	}
}

// kernelRecords writes where the kernel's code lies.
func (r *recorder) kernelRecords() error {
	k, err := kernelMap(procFS())
	switch {
	case err == nil:
		if err := r.writer.Write(k); err != nil {
			return err
		}
	case r.Caps.Kernel:
		r.Say("warning: samples of the kernel will have no names: %v", err)
	}
	if r.modules, err = modules(procFS()); err != nil {
		return nil // the same reason
	}
	for _, m := range r.modules {
		if err := r.writer.Write(m); err != nil {
			return err
		}
	}
	return nil
}

// run starts the events and copies what they write until the end.
func (r *recorder) run(ctx context.Context) (*Result, error) {
	stop := context.AfterFunc(ctx, r.poll.wake)
	defer stop()
	signals := newSignals(r)
	defer signals.stop()
	r.started = time.Now()
	exited := make(chan struct{})
	if r.child != nil {
		if err := r.startProgram(exited); err != nil {
			r.giveUp()
			return nil, err
		}
	} else {
		if err := r.enable(); err != nil {
			r.giveUp()
			return nil, err
		}
		close(exited)
		exited = nil
		if err := r.existingProcesses(); err != nil {
			r.writeErr = err
		}
	}
	err := r.loop(ctx, signals, exited)
	r.disable()
	res := r.finish()
	if exited != nil {
		<-exited // the program may run on when nothing more can be written
		if !r.timeUp {
			res.Status = exitStatus(r.state)
		}
	}
	res.Elapsed = time.Since(r.started)
	if r.writeErr != nil {
		err = r.outputError()
	}
	return res, err
}

// giveUp undoes what prepare did.
func (r *recorder) giveUp() {
	if r.child != nil && r.state == nil {
		r.child.abandon()
	}
	r.close()
	if r.poll != nil {
		r.poll.close()
	}
	r.Output.close()
	r.Output.remove()
}

func (r *recorder) outputError() error {
	err := r.writeErr
	name := r.Output.Name
	if name == "-" {
		name = "standard output"
	}
	switch {
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT):
		return &HintError{fmt.Errorf("%s is incomplete: no space left on the device after %s", name, megabytes(r.outputSize())),
			"what was written can be read; -z compresses, -F lowers the rate, -o writes elsewhere"}
	case errors.Is(err, unix.EPIPE):
		return fmt.Errorf("%s was closed by its reader after %s", name, megabytes(r.outputSize()))
	}
	return fmt.Errorf("writing %s: %w", name, err)
}

// outputSize is how many bytes the output has; none if not even the header went out.
func (r *recorder) outputSize() int64 {
	if r.writer == nil {
		return 0
	}
	return r.writer.Size()
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
