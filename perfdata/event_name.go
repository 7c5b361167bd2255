package perfdata

import (
	"fmt"
	"strings"
)

var hardwareNames = []string{
	"cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses",
	"bus-cycles", "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles",
}

var softwareNames = []string{
	"cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults",
	"major-faults", "alignment-faults", "emulation-faults", "dummy", "bpf-output", "cgroup-switches",
}

var (
	cacheNames   = []string{"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"}
	cacheOps     = []string{"load", "store", "prefetch"}
	cacheResults = []string{"s", "-misses"}
)

// attrName makes the name perf would print for an attr that was recorded
// without one (evsel__name, tools/perf/util/evsel.c).
func attrName(a *Attr, pmus map[EventType]string) string {
	name := bareName(a, pmus)
	if m := modifiers(a); m != "" {
		name += ":" + m
	}
	return name
}

func bareName(a *Attr, pmus map[EventType]string) string {
	low, pmu := a.Config&0xffffffff, EventType(a.Config>>32) // PERF_PMU_TYPE_SHIFT
	switch a.Type {
	case TypeHardware:
		name := pick(hardwareNames, low)
		if name == "" {
			return fmt.Sprintf("unknown-hardware:0x%x", a.Config)
		}
		if p := pmus[pmu]; pmu != 0 && p != "" {
			return p + "/" + name + "/"
		}
		return name
	case TypeSoftware:
		if name := pick(softwareNames, a.Config); name != "" {
			return name
		}
		return fmt.Sprintf("unknown-software:0x%x", a.Config)
	case TypeTracepoint:
		return fmt.Sprintf("tracepoint:%d", a.Config)
	case TypeHWCache:
		name, op, res := pick(cacheNames, low&0xff), pick(cacheOps, low>>8&0xff), pick(cacheResults, low>>16&0xff)
		if name == "" || op == "" || res == "" {
			return fmt.Sprintf("unknown-cache:0x%x", a.Config)
		}
		return name + "-" + op + res
	case TypeRaw:
		return fmt.Sprintf("r%x", a.Config)
	case TypeBreakpoint:
		return fmt.Sprintf("mem:0x%x", a.Config1)
	}
	if p := pmus[a.Type]; p != "" {
		return fmt.Sprintf("%s/config=0x%x/", p, a.Config)
	}
	return fmt.Sprintf("pmu%d/config=0x%x/", a.Type, a.Config)
}

// modifiers are the letters behind the colon: who is counted, and how precisely.
func modifiers(a *Attr) string {
	var s strings.Builder
	if a.Flags&(FlagExcludeUser|FlagExcludeKernel|FlagExcludeHV) != 0 && a.Type != TypeTracepoint {
		for _, m := range []struct {
			off AttrFlags
			ch  byte
		}{{FlagExcludeUser, 'u'}, {FlagExcludeKernel, 'k'}, {FlagExcludeHV, 'h'}} {
			if a.Flags&m.off == 0 {
				s.WriteByte(m.ch)
			}
		}
	}
	for range a.PreciseIP() {
		s.WriteByte('p')
	}
	return s.String()
}

func pick(names []string, i uint64) string {
	if i < uint64(len(names)) {
		return names[i]
	}
	return ""
}
