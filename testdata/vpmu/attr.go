package vpmu

import "github.com/perfcorrect/perfcorrect/perfdata"

// attr makes the perf_event_attr of one event of the recording, and its name.
func (r *recorder) attr(name string, leader bool) (perfdata.Attr, string) {
	a := perfdata.Attr{
		SampleType: perfdata.FieldIdentifier | perfdata.FieldIP | perfdata.FieldTID | perfdata.FieldTime |
			perfdata.FieldCPU | perfdata.FieldPeriod,
		ReadFormat: perfdata.ReadTotalTimeEnabled | perfdata.ReadTotalTimeRunning | perfdata.ReadID | perfdata.ReadLost,
		Flags: perfdata.FlagDisabled | perfdata.FlagExcludeKernel | perfdata.FlagExcludeHV | perfdata.FlagMmap | perfdata.FlagMmap2 |
			perfdata.FlagComm | perfdata.FlagCommExec | perfdata.FlagTask | perfdata.FlagSampleIDAll | perfdata.FlagContextSwitch,
	}
	if len(r.Members) > 0 {
		a.SampleType |= perfdata.FieldRead
		a.ReadFormat |= perfdata.ReadGroup
	}
	if r.Callchain != "none" {
		a.SampleType |= perfdata.FieldCallchain
		a.SampleMaxStack = uint16(max(r.MaxStack, 0))
	}
	if r.Branch != "none" {
		a.SampleType |= perfdata.FieldBranchStack
		a.BranchSampleType = perfdata.BranchUser | perfdata.BranchTypeSave | map[string]perfdata.BranchSample{
			"any": perfdata.BranchAny, "any_call": perfdata.BranchAnyCall, "call_stack": perfdata.BranchCallStack,
		}[r.Branch]
	}
	if r.Regs || r.StackDump > 0 {
		a.SampleType |= perfdata.FieldRegsUser
		a.SampleRegsUser = allRegs
	}
	if r.StackDump > 0 {
		if r.Callchain == "none" { // as perf record --call-graph dwarf
			a.SampleType |= perfdata.FieldCallchain
			a.Flags |= perfdata.FlagExcludeCallchainUser
		}
		a.SampleType |= perfdata.FieldStackUser
		a.SampleStackUser = r.StackDump &^ 7
	}
	if r.StackDump > 0 {
		a.Flags |= perfdata.FlagMmapData
	}
	if !leader {
		a.Flags &^= perfdata.FlagMmapData | perfdata.FlagDisabled | perfdata.FlagMmap | perfdata.FlagMmap2 | perfdata.FlagComm | perfdata.FlagCommExec |
			perfdata.FlagTask | perfdata.FlagContextSwitch
	} else {
		a.SamplePeriod = uint64(max(1, r.Period+0.5))
		if r.Jitter > 0 { // each sample tells its own period, as with perf record -F
			a.SamplePeriod = max(1, r.freq)
			a.Flags |= perfdata.FlagFreq
		}
		if r.Skid == 0 && !r.Defer && r.Clock != "wall" {
			a.Flags |= 2 << 15 // precise_ip: requested to have no skid
		}
	}
	label := name + ":u"
	switch {
	case leader && r.Clock == "wall":
		a.Type, a.Config, label = perfdata.TypeSoftware, perfdata.SWCPUClock, "wall-clock"
	case name == "cycles":
		a.Type, a.Config = perfdata.TypeHardware, perfdata.HWCPUCycles
	case name == "instructions":
		a.Type, a.Config = perfdata.TypeHardware, perfdata.HWInstructions
	case name == "branches":
		a.Type, a.Config = perfdata.TypeHardware, perfdata.HWBranchInstructions
	case name == "near_call":
		a.Type, a.Config, label = perfdata.TypeRaw, nearCall, "br_inst_retired.near_call:u"
	}
	return a, label
}
