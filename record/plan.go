package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// Capabilities are what the kernel lets this process open, found by trying
// (Probe), or as a test has them.
type Capabilities struct {
	Arch    string // GOARCH
	Machine *Machine

	Kernel    bool                  // the kernel may be sampled
	Cycles    bool                  // hardware cycles can sample
	Calls     bool                  // the event of Machine.callEvent can be opened
	Branches  perfdata.BranchSample // best of any_call, any that is there, with save_type; 0 if none
	GroupRead bool                  // groups can be read with samples and inherited (Linux 6.12)
	Lost      bool                  // PERF_FORMAT_LOST (Linux 6.0)
	MaxFreq   uint64
	Precise   int // largest precise_ip of cycles
}

// Plan is what to open.
type Plan struct {
	Groups   []Group
	Line     string   // what it is and why, in one line
	Warnings []string // what was asked for and cannot be had

	Sampling *Event // the clock of the recording: first to sample
	Calls    []*Event
	Tracking *Event // has the mmap, comm and task records
	Freq     uint64 // of Sampling, 0 with a fixed period

	// PerCPU events see whatever runs on a CPU. Filtered: they do because the
	// kernel lets only such be changed while they run, and what does not
	// belong to the target is left out.
	PerCPU, Filtered bool
}

// Events lists the events of all groups in order.
func (p *Plan) Events() []*Event {
	var all []*Event
	for _, g := range p.Groups {
		all = append(all, g.Events...)
	}
	return all
}

// NewPlan decides what to open: what was asked for, else the best evidence
// about calls the machine has. probes are the events of Options.CountCalls.
func NewPlan(caps *Capabilities, opt *Options, probes []*Event) (*Plan, error) {
	p := &planner{caps: caps, opt: opt, probes: probes, plan: &Plan{}}
	p.plan.Filtered = opt.followsByCPU()
	p.plan.PerCPU = opt.Target.Wide() || p.plan.Filtered
	if p.plan.Filtered && len(opt.Target.TIDs) > 0 {
		return nil, errors.New("counter-based sampling and self-tuning follow processes (-p), or single threads with --no-inherit")
	}
	if err := p.choose(); err != nil {
		return nil, err
	}
	if err := p.configure(); err != nil {
		return nil, err
	}
	p.track()
	p.plan.Line = p.line()
	return p.plan, nil
}

// followsByCPU reports whether events have to be opened on CPUs to follow
// threads and children: strategies change events while they run, and the
// kernel does not pass that on to inherited ones.
func (o *Options) followsByCPU() bool {
	return (o.CBS != nil || o.Tune != nil) && !o.Target.Wide() && !o.Target.NoFollow
}

type planner struct {
	caps   *Capabilities
	opt    *Options
	probes []*Event
	plan   *Plan
	branch perfdata.BranchSample // with the sampling events
	dump   bool                  // a small stack dump helps: nothing else shows a frameless leaf's caller
	notes  []string
}

func (p *planner) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

func (p *planner) warn(format string, args ...any) {
	p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf(format, args...))
}

// choose fills the groups with events that count the right things.
func (p *planner) choose() error {
	p.branch = p.opt.Branch
	switch {
	case p.opt.Events != "":
		specs, err := ParseSpecs(p.opt.Events)
		if err != nil {
			return err
		}
		if p.plan.Groups, err = p.caps.Machine.Resolve(specs); err != nil {
			return err
		}
		p.dump = p.branch == 0
	case p.caps.Cycles:
		p.hardware()
	default:
		p.clock()
	}
	return p.addProbes()
}

// hardware opens cycles on every kind of core, with calls and branches.
func (p *planner) hardware() {
	m := p.caps.Machine
	cores := m.Cores()
	if p.branch == 0 && !p.opt.BranchOff && !cores[0].hasBranchSampling() {
		p.branch = p.caps.Branches
	}
	for _, core := range cores {
		cycles, calls := m.cycles(core), (*Event)(nil)
		if p.caps.Calls {
			calls = m.callEvent(core)
		}
		g := Group{Events: []*Event{cycles}}
		cycles.MaxPrecise = true
		if calls != nil && p.canRead() {
			g.Events, g.Read = append(g.Events, calls), true
		}
		p.plan.Groups = append(p.plan.Groups, g)
		switch {
		case calls == nil:
		case !p.canRead():
			p.warn("calls are not counted with each sample: before Linux 6.12 counters that are read together cannot follow threads and children (--no-inherit, -a)")
			fallthrough
		case p.branch == 0:
			// Calls sampled beside time: one recording says how long and how often.
			again := *m.callEvent(core)
			p.plan.Groups = append(p.plan.Groups, Group{Events: []*Event{&again}})
		}
	}
	if cores[0].hasBranchSampling() && !p.opt.BranchOff {
		p.zen3(cores[0])
	}
	p.dump = p.branch == 0
	if p.branch == 0 && p.caps.Branches == 0 {
		p.note("no branch stacks here")
	}
}

// zen3 adds the event that branch records come with, at a fixed period.
func (p *planner) zen3(core *PMU) {
	ev := &Event{Name: branchSampling, Attr: perfdata.Attr{Type: core.Type}, Period: 1_000_003}
	if err := core.terms(ev, []Term{{Key: branchSampling}}, false); err != nil {
		p.warn("no branch stacks: %v", err)
		return
	}
	ev.Attr.BranchSampleType = perfdata.BranchAny
	p.plan.Groups = append(p.plan.Groups, Group{Events: []*Event{ev}})
}

// clock samples by a timer: a machine without hardware counters.
func (p *planner) clock() {
	p.plan.Groups = []Group{{Events: []*Event{{
		Name: "cpu-clock", Attr: perfdata.Attr{Type: perfdata.TypeSoftware, Config: perfdata.SWCPUClock},
	}}}}
	p.dump = true
	if len(p.caps.Machine.Cores()) == 0 {
		p.note("no hardware counters here")
	} else {
		p.note("the hardware counters cannot be opened")
	}
	if len(p.probes) == 0 {
		p.note("--count-calls FUNC counts calls of functions")
	}
}

// canRead reports whether a group may be read with the samples of its leader.
func (p *planner) canRead() bool {
	return p.caps.GroupRead || p.opt.Target.NoFollow || p.plan.PerCPU
}

// addProbes puts counters of calls into the first group.
func (p *planner) addProbes() error {
	if len(p.plan.Groups) == 0 {
		return errors.New("no events")
	}
	if p.opt.CBS != nil {
		return p.addCBS()
	}
	if len(p.probes) == 0 {
		return nil
	}
	if !p.canRead() {
		return errors.New("call counts that are read with samples cannot follow threads and children before Linux 6.12: add --no-inherit, or record with -a")
	}
	g := &p.plan.Groups[0]
	g.Events = append(g.Events, p.probes...)
	g.Read = true
	return nil
}

// addCBS adds the event whose overflows are the sampled calls. It is opened
// disabled; a tick of the first event lets it overflow CBS.Samples times.
func (p *planner) addCBS() error {
	calls := p.probes
	if len(calls) == 0 && p.caps.Calls {
		for _, core := range p.caps.Machine.Cores() {
			if ev := p.caps.Machine.callEvent(core); ev != nil {
				calls = append(calls, ev)
			}
		}
	}
	if len(calls) == 0 {
		return errors.New("counter-based sampling needs an event that counts calls: this machine has none, so name functions with --count-calls")
	}
	// Only the clock beside it.
	p.plan.Groups = p.plan.Groups[:1]
	p.plan.Groups[0].Events = p.plan.Groups[0].Events[:1]
	p.plan.Groups[0].Read = false
	for _, ev := range calls {
		ev.Period = p.opt.CBS.Stride
		p.plan.Groups = append(p.plan.Groups, Group{Events: []*Event{ev}})
	}
	p.plan.Calls = calls
	return nil
}

// line says what is recorded, and what is not.
func (p *planner) line() string {
	var what []string
	for _, g := range p.plan.Groups {
		var names []string
		for _, ev := range g.Events {
			if ev != p.plan.Tracking || ev == p.plan.Sampling {
				names = append(names, ev.Name)
			}
		}
		switch {
		case len(names) == 0:
		case g.Read && len(names) > 3:
			what = append(what, fmt.Sprintf("%s with %d counters", names[0], len(names)-1))
		case g.Read && len(names) > 1:
			what = append(what, names[0]+" with counts of "+strings.Join(names[1:], ", "))
		case g.Events[0].Attr.SampleType&perfdata.FieldBranchStack != 0 && g.Events[0] != p.plan.Sampling:
			what = append(what, names[0]+" with branch stacks")
		case g.Events[0] != p.plan.Sampling:
			what = append(what, "samples of "+strings.Join(names, ", "))
		default:
			what = append(what, names...)
		}
	}
	first := p.plan.Sampling.Attr
	switch {
	case p.plan.Freq != 0:
		what[0] += fmt.Sprintf(" at %d Hz", p.plan.Freq)
	default:
		what[0] += fmt.Sprintf(" every %d", first.SamplePeriod)
	}
	s := strings.Join(what, ", ")
	var with []string
	if first.SampleType&perfdata.FieldBranchStack != 0 {
		with = append(with, "branch stacks ("+branchText(first.BranchSampleType)+")")
	}
	switch {
	case first.Flags&perfdata.FlagExcludeCallchainUser != 0:
		with = append(with, fmt.Sprintf("%d bytes of stack to unwind", first.SampleStackUser))
	case first.SampleType&perfdata.FieldCallchain != 0 && first.SampleStackUser != 0:
		with = append(with, fmt.Sprintf("callchains, %d bytes of stack", first.SampleStackUser))
	case first.SampleType&perfdata.FieldCallchain != 0:
		with = append(with, "callchains")
	}
	if p.plan.Tracking.Attr.Flags&perfdata.FlagContextSwitch != 0 {
		with = append(with, "context switches")
	}
	if first.Flags&perfdata.FlagExcludeKernel != 0 {
		with = append(with, "user code only")
	}
	if len(with) > 0 {
		s += "; " + strings.Join(with, ", ")
	}
	if len(p.notes) > 0 {
		s += " (" + strings.Join(p.notes, "; ") + ")"
	}
	return s
}

func branchText(b perfdata.BranchSample) string {
	var words []string
	for _, w := range sortedKeys(branchFilters) {
		if bit := branchFilters[w]; b&bit != 0 && bit&^branchModes != 0 && bit != perfdata.BranchTypeSave {
			words = append(words, w)
		}
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}
