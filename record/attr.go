package record

import (
	"fmt"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// commonFields are in the samples of every event, in this order and first, so
// that the recorder finds the time without looking up the event.
const commonFields = perfdata.FieldIdentifier | perfdata.FieldIP | perfdata.FieldTID | perfdata.FieldTime |
	perfdata.FieldCPU | perfdata.FieldPeriod

// sampleTimeAt is where the time stands in a sample: header, identifier, ip,
// pid and tid (perf_output_sample in kernel/events/core.c).
const sampleTimeAt = 8 + 8 + 8 + 8

// sampleIDSize is what sample_id_all puts behind records that are no samples:
// pid and tid, time, cpu, identifier.
const sampleIDSize = 4 * 8

// configure completes the attrs: what they sample with, how often, for whom.
func (p *planner) configure() error {
	p.plan.Sampling = p.plan.Groups[0].Events[0]
	for _, g := range p.plan.Groups {
		for i, ev := range g.Events {
			if err := p.configureEvent(ev, g, i); err != nil {
				return fmt.Errorf("event %q: %w", ev.Name, err)
			}
		}
	}
	p.plan.Freq = 0
	if a := &p.plan.Sampling.Attr; a.Freq() {
		p.plan.Freq = a.SamplePeriod
	}
	return nil
}

func (p *planner) configureEvent(ev *Event, g Group, index int) error {
	a := &ev.Attr
	a.SampleType = commonFields
	a.ReadFormat = perfdata.ReadID
	if p.plan.PerCPU {
		// Times show when counters had to take turns. Not of an event that counts
		// a thread on one CPU only: while the thread runs on another it is
		// enabled and does not run, which would look the same.
		a.ReadFormat |= perfdata.ReadTotalTimeEnabled | perfdata.ReadTotalTimeRunning
	}
	if p.caps.Lost {
		a.ReadFormat |= perfdata.ReadLost
	}
	a.Flags |= perfdata.FlagSampleIDAll
	t := &p.opt.Target
	if !p.plan.PerCPU && !t.NoFollow {
		a.Flags |= perfdata.FlagInherit
	}
	if p.opt.UserOnly || !p.caps.Kernel {
		a.Flags |= perfdata.FlagExcludeKernel | perfdata.FlagExcludeHV
	}
	if c := p.opt.Clock; c != nil {
		a.Flags |= perfdata.FlagUseClockID
		a.ClockID = c.ID
	}
	if g.Read {
		if !p.canRead() && index == 0 && len(g.Events) > 1 {
			return fmt.Errorf("a group read with samples (:S) cannot follow threads and children before Linux 6.12: add --no-inherit, or record with -a")
		}
		a.SampleType |= perfdata.FieldRead
		a.ReadFormat |= perfdata.ReadGroup
	}
	if index == 0 {
		// Members follow the leader.
		a.Flags |= perfdata.FlagDisabled
		if len(t.Command) > 0 && !p.plan.PerCPU && !ev.isOneOf(p.plan.Calls) {
			a.Flags |= perfdata.FlagEnableOnExec
		}
	}
	if g.Read && index > 0 {
		return nil // only counts
	}
	p.period(ev)
	if p.opt.CBS != nil && !ev.isOneOf(p.plan.Calls) {
		a.WakeupEvents = 1 // each tick starts a burst
	}
	return p.samplingFields(ev)
}

// period sets how often the event samples.
func (p *planner) period(ev *Event) {
	a := &ev.Attr
	switch {
	case ev.Period != 0:
		a.SamplePeriod = ev.Period
	case ev.Freq == 0 && p.opt.Count != 0:
		a.SamplePeriod = p.opt.Count
	case a.Type == perfdata.TypeTracepoint && ev.Freq == 0:
		a.SamplePeriod = 1 // perf's default: each one
	default:
		f := ev.Freq
		if f == 0 {
			f = p.opt.Freq
		}
		if f == 0 {
			f = DefaultFreq
			if p.opt.CBS != nil {
				f = DefaultCBSFreq
			}
		}
		if max := p.caps.MaxFreq; max != 0 && (f > max || p.opt.MaxFreq) {
			if !p.opt.MaxFreq {
				p.warn("%d Hz is more than the kernel allows: %d Hz (kernel.perf_event_max_sample_rate)", f, max)
			}
			f = max
		}
		a.SamplePeriod = f
		a.Flags |= perfdata.FlagFreq
	}
}

// samplingFields adds stacks and branches.
func (p *planner) samplingFields(ev *Event) error {
	a := &ev.Attr
	if ev.MaxPrecise {
		ev.setPrecise(p.caps.Precise)
	}
	if a.Type == perfdata.TypeTracepoint && ev.Uprobes == nil {
		a.SampleType |= perfdata.FieldRaw
	}
	mode := ev.CallGraph
	if mode == "" {
		mode = p.opt.CallGraph
	}
	size := ev.StackSize
	if size == 0 {
		size = p.opt.StackSize
	}
	switch mode {
	case "no":
	case "fp":
		a.SampleType |= perfdata.FieldCallchain
		if size != 0 {
			p.stackDump(a, callerRegs(p.caps.Arch), size)
		}
	case "dwarf":
		if size == 0 {
			size = DwarfDump
		}
		a.SampleType |= perfdata.FieldCallchain
		a.Flags |= perfdata.FlagExcludeCallchainUser // the kernel's part still comes as a chain
		p.stackDump(a, unwindRegs(p.caps.Arch), size)
	case "lbr":
		a.SampleType |= perfdata.FieldCallchain | perfdata.FieldBranchStack
		a.BranchSampleType = perfdata.BranchUser | perfdata.BranchCallStack | perfdata.BranchNoFlags | perfdata.BranchNoCycles
		return nil
	case "":
		a.SampleType |= perfdata.FieldCallchain
		if size == 0 && p.dump && !p.opt.NoDump {
			size = SmallDump
		}
		if size != 0 {
			p.stackDump(a, callerRegs(p.caps.Arch), size)
		}
	default:
		return fmt.Errorf("call graph %q is not one of fp, dwarf, lbr, no", mode)
	}
	if a.BranchSampleType == 0 && (a.Type == perfdata.TypeHardware || a.Type == perfdata.TypeRaw || a.Type > perfdata.TypeBreakpoint) && ev.Uprobes == nil {
		a.BranchSampleType = p.branch
	}
	if a.BranchSampleType != 0 {
		a.SampleType |= perfdata.FieldBranchStack
	}
	return nil
}

func (p *planner) stackDump(a *perfdata.Attr, regs uint64, size uint32) {
	if regs == 0 {
		p.warn("no registers are known for %s: no stack dumps", p.caps.Arch)
		return
	}
	a.SampleType |= perfdata.FieldRegsUser | perfdata.FieldStackUser
	a.SampleRegsUser, a.SampleStackUser = regs, (size+7)&^7
}

// callerRegs are what it takes to find the caller of the innermost function:
// ip, sp, bp, and the link register where there is one
// (arch/*/include/uapi/asm/perf_regs.h).
func callerRegs(arch string) uint64 {
	switch arch {
	case "amd64":
		return 1<<6 | 1<<7 | 1<<8
	case "arm64":
		return 1<<29 | 1<<30 | 1<<31 | 1<<32
	}
	return 0
}

// unwindRegs are all that call frame information may refer to; of x86 without
// segment registers, as perf has it.
func unwindRegs(arch string) uint64 {
	switch arch {
	case "amd64":
		return 0xff0fff
	case "arm64":
		return 1<<33 - 1
	}
	return 0
}

// trackingFlags make the kernel say what processes do.
const trackingFlags = perfdata.FlagMmap | perfdata.FlagMmap2 | perfdata.FlagComm | perfdata.FlagCommExec | perfdata.FlagTask

// track chooses the event whose instances also report mmap, comm and task
// records. It has to be on every CPU and is not stopped while recording: the
// sampling event if it is that, else a dummy of its own.
func (p *planner) track() {
	ev := p.plan.Sampling
	steady := ev.Attr.Type == perfdata.TypeSoftware || ev.Attr.Type == perfdata.TypeHardware && ev.CPUs == nil
	if !steady {
		ev = &Event{Name: "dummy:u", Attr: perfdata.Attr{
			Type: perfdata.TypeSoftware, Config: perfdata.SWDummy, SamplePeriod: 1,
			SampleType: commonFields, ReadFormat: p.plan.Sampling.Attr.ReadFormat &^ perfdata.ReadGroup,
			Flags: p.plan.Sampling.Attr.Flags&(perfdata.FlagInherit|perfdata.FlagUseClockID|perfdata.FlagSampleIDAll|perfdata.FlagDisabled|perfdata.FlagEnableOnExec) |
				perfdata.FlagExcludeKernel | perfdata.FlagExcludeHV,
			ClockID: p.plan.Sampling.Attr.ClockID,
		}}
		p.plan.Groups = append(p.plan.Groups, Group{Events: []*Event{ev}})
	}
	ev.Attr.Flags |= trackingFlags
	if p.opt.Switches == On || p.opt.Switches == Auto && p.opt.Events == "" && !p.plan.Filtered {
		ev.Attr.Flags |= perfdata.FlagContextSwitch
	}
	if p.caps.Kernel && p.opt.Target.Wide() {
		ev.Attr.Flags |= perfdata.FlagKsymbol | perfdata.FlagBPFEvent
	}
	p.plan.Tracking = ev
}
