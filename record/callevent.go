package record

import (
	"slices"
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// Codes of the events that count calls, from the kernel's
// tools/perf/pmu-events/arch: x86/*/pipeline.json (Intel; on Atom cores the
// umask differs), x86/amdzen*/ (AMD counts returns only) and
// arm64/common-and-microarch.json.
const (
	intelNearCall = 0x2c4
	atomNearCall  = 0xf9c4
	amdNearReturn = 0xc8
	armReturn     = 0x0e
)

// atomModels are the family 6 models without a big core (arch/x86/include/asm/intel-family.h).
var atomModels = []int{
	0x37, 0x4a, 0x4d, 0x5a, 0x5d, 0x4c, // Silvermont, Airmont
	0x5c, 0x5f, 0x7a, // Goldmont
	0x86, 0x96, 0x9c, // Tremont
	0xbe, 0xaf, 0xb6, 0xdd, // Gracemont, Sierra Forest, Grand Ridge, Clearwater Forest
}

// callEvent is the event that counts calls on a kind of core, nil if none is
// known.
func (m *Machine) callEvent(p *PMU) *Event {
	ev := &Event{CPUs: p.CPUs, Attr: perfdata.Attr{Type: p.Type}}
	switch {
	case m.Vendor == "GenuineIntel":
		ev.Name, ev.Attr.Config = "br_inst_retired.near_call", intelNearCall
		if p.Name == "cpu_atom" || p.Name == "cpu" && slices.Contains(atomModels, m.Model) {
			ev.Attr.Config = atomNearCall
		}
	case m.Vendor == "AuthenticAMD" || m.Vendor == "HygonGenuine":
		ev.Name, ev.Attr.Config = "ex_ret_near_ret", amdNearReturn
	case strings.HasPrefix(p.Name, "armv8") || p.Aliases["br_return_retired"] != "":
		ev.Name, ev.Attr.Config = "br_return_retired", armReturn
	default:
		return nil
	}
	if len(m.Cores()) > 1 {
		ev.Name = p.Name + "/" + ev.Name + "/"
	}
	return ev
}

// cycles is the event that ticks with the work of a kind of core.
func (m *Machine) cycles(p *PMU) *Event {
	ev := &Event{Name: "cycles", CPUs: p.CPUs, Attr: perfdata.Attr{Type: perfdata.TypeHardware, Config: perfdata.HWCPUCycles}}
	if len(m.Cores()) > 1 {
		ev.Name = p.Name + "/cycles/"
		ev.Attr.Config |= uint64(p.Type) << 32
	}
	return ev
}

// branchSampling is AMD's way on Zen 3, where branches are recorded only with
// an event of their own (arch/x86/events/amd/brs.c: retired taken branches,
// all of them, with a fixed period).
const branchSampling = "branch-brs"

func (p *PMU) hasBranchSampling() bool { return p.Aliases[branchSampling] != "" }
