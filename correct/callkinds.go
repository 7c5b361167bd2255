package correct

import (
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// callKind is a kind of event that counts calls, or something as frequent.
type callKind struct {
	what string
	is   func(*perfdata.Event, *perfdata.Meta) bool
}

// callKinds, best first. Codes are those of the kernel's
// tools/perf/pmu-events/arch: x86/*/pipeline.json (Intel), x86/amdzen*/core.json
// and branch.json (AMD), arm64/common-and-microarch.json.
var callKinds = []callKind{
	{"near calls retired", nameHas([]string{"near_call", "br_inst_retired.call", "bl_retired"}, "misp", "_r3")},
	{"near calls retired: event 0xc4, umask 0x02", code(intel, 0xc4, 0x02)},
	{"near calls retired on an Atom core: event 0xc4, umask 0xf9", code(intel, 0xc4, 0xf9)},
	{"near calls retired in user code", nameHas([]string{"near_call_r3"}, "misp")},
	{"near returns retired, standing in for calls",
		nameHas([]string{"near_return", "ex_ret_near_ret", "br_return_retired", "br_ret_retired"}, "misp")},
	{"near returns retired, standing in for calls: event 0xc8 of AMD", code(amd, 0xc8, 0)},
	{"near returns retired, standing in for calls: event 0xc4, umask 0x08", code(intel, 0xc4, 0x08)},
	{"procedure returns retired, standing in for calls: event 0x0e of Arm", armReturn},
	{"probe at function entry", func(e *perfdata.Event, m *perfdata.Meta) bool { return isProbe(e, m) && !isReturnProbe(e, m) }},
	{"probe at function return, standing in for calls", isProbe},
}

func nameHas(parts []string, not ...string) func(*perfdata.Event, *perfdata.Meta) bool {
	return func(e *perfdata.Event, _ *perfdata.Meta) bool {
		name := strings.ToLower(e.Name)
		if e.Type == perfdata.TypeTracepoint {
			return false
		}
		for _, n := range not {
			if strings.Contains(name, n) {
				return false
			}
		}
		for _, p := range parts {
			if strings.Contains(name, p) {
				return true
			}
		}
		return false
	}
}

type vendor func(*perfdata.Meta) bool

// intel also accepts x86 recordings that do not name the vendor: the codes it
// is used with mean nothing sensible to AMD, where 0xc4 counts all taken
// branches and has no umask.
func intel(m *perfdata.Meta) bool {
	return strings.HasPrefix(m.CPUID, "GenuineIntel") || m.CPUID == "" && isX86(m.Arch)
}

func amd(m *perfdata.Meta) bool {
	return strings.HasPrefix(m.CPUID, "AuthenticAMD") || strings.HasPrefix(m.CPUID, "HygonGenuine")
}

func isX86(arch string) bool {
	return arch == "x86_64" || arch == "" || len(arch) == 4 && arch[0] == 'i' && strings.HasSuffix(arch, "86")
}

// code matches an x86 event code. The remaining bits of config (edge, invert,
// threshold: bits 16 to 31) make another event of it.
func code(v vendor, event, umask uint64) func(*perfdata.Event, *perfdata.Meta) bool {
	return func(e *perfdata.Event, m *perfdata.Meta) bool {
		return v(m) && coreEvent(e, m) && e.Config&0xffff_ffff == umask<<8|event && e.Config>>32&0xf == 0
	}
}

// armReturn matches BR_RETURN_RETIRED, an architectural event of PMUv3.
func armReturn(e *perfdata.Event, m *perfdata.Meta) bool {
	arm := m.Arch == "aarch64" || strings.HasPrefix(m.Arch, "arm")
	return arm && coreEvent(e, m) && e.Config&0xffff == 0x0e
}

// isProbe recognises members placed in code: the tracepoints perf probe makes
// (group probe, probe_prog...), those of trace-cmd and ftrace (uprobes,
// kprobes), and the PMUs kprobe and uprobe.
func isProbe(e *perfdata.Event, m *perfdata.Meta) bool {
	group, _, ok := strings.Cut(e.Name, ":")
	if e.Type == perfdata.TypeTracepoint {
		return ok && (group == "probe" || strings.HasPrefix(group, "probe_") || group == "uprobes" || group == "kprobes")
	}
	pmu := m.PMUMappings[e.Type]
	return e.Type > perfdata.TypeBreakpoint && (pmu == "uprobe" || pmu == "kprobe" ||
		pmu == "" && strings.HasPrefix(e.Name, "uprobe"))
}

// isReturnProbe: perf probe names them func__return; the PMUs have a bit for
// it (config:0, "retprobe").
func isReturnProbe(e *perfdata.Event, _ *perfdata.Meta) bool {
	if e.Type == perfdata.TypeTracepoint {
		return strings.HasSuffix(e.Name, "__return")
	}
	return e.Config&1 != 0
}
