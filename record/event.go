package record

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// Event is an event that can be opened: what it counts is set in Attr, how it
// samples is decided by Plan.
type Event struct {
	Name string
	Attr perfdata.Attr
	CPUs []int // that have it; nil is all

	// What the event's own terms ask for; 0 and "" where they do not.
	Period, Freq uint64
	CallGraph    string
	StackSize    uint32
	MaxPrecise   bool // :P
	Read         bool // :S

	Uprobes []Uprobe // whose executions it counts
	path    string   // of the PMU "uprobe": the attr points at it
}

// Group is events that count together. With Read, only the first samples, and
// the values of all are read with its samples.
type Group struct {
	Events []*Event
	Read   bool
}

// Resolve looks up what Specs name on this machine. On a hybrid CPU an event
// of the cores becomes one for each kind of core.
func (m *Machine) Resolve(specs []GroupSpec) ([]Group, error) {
	var groups []Group
	for _, g := range specs {
		kinds := []*PMU{nil}
		if cores := m.Cores(); len(cores) > 1 && g.generic() {
			kinds = cores
		}
		for _, core := range kinds {
			out := Group{Read: g.Read}
			for _, s := range g.Events {
				ev, err := m.event(s, core)
				if err != nil {
					return nil, err
				}
				ev.Read = g.Read
				out.Events = append(out.Events, ev)
			}
			groups = append(groups, out)
		}
	}
	return groups, nil
}

// generic reports whether the group has an event that every core PMU has.
func (g *GroupSpec) generic() bool {
	for _, s := range g.Events {
		if s.PMU != "" {
			continue
		}
		if _, ok := genericEvent(s.Name); ok {
			return true
		}
		if _, ok := rawCode(s.Name); ok {
			return true
		}
	}
	return false
}

func (m *Machine) event(s Spec, core *PMU) (*Event, error) {
	ev := &Event{Name: s.Text}
	var err error
	if s.PMU != "" {
		err = m.pmuEvent(ev, s)
	} else {
		err = m.namedEvent(ev, s, core)
	}
	if err != nil {
		return nil, fmt.Errorf("event %q: %w", s.Text, err)
	}
	ev.modify(s.Modifiers)
	return ev, nil
}

// Words perf has for generic events (tools/perf/util/parse-events.l).
var hardwareEvents = map[string]uint64{
	"cycles": perfdata.HWCPUCycles, "cpu-cycles": perfdata.HWCPUCycles,
	"instructions":     perfdata.HWInstructions,
	"cache-references": perfdata.HWCacheReferences, "cache-misses": perfdata.HWCacheMisses,
	"branches": perfdata.HWBranchInstructions, "branch-instructions": perfdata.HWBranchInstructions,
	"branch-misses": perfdata.HWBranchMisses, "bus-cycles": perfdata.HWBusCycles,
	"stalled-cycles-frontend": perfdata.HWStalledFrontend, "stalled-cycles-backend": perfdata.HWStalledBackend,
	"ref-cycles": perfdata.HWRefCPUCycles,
}

var softwareEvents = map[string]uint64{
	"cpu-clock": perfdata.SWCPUClock, "task-clock": perfdata.SWTaskClock,
	"page-faults": perfdata.SWPageFaults, "faults": perfdata.SWPageFaults,
	"context-switches": perfdata.SWContextSwitches, "cs": perfdata.SWContextSwitches,
	"cpu-migrations": perfdata.SWCPUMigrations, "migrations": perfdata.SWCPUMigrations,
	"minor-faults": perfdata.SWPageFaultsMin, "major-faults": perfdata.SWPageFaultsMaj,
	"alignment-faults": perfdata.SWAlignmentFaults, "emulation-faults": perfdata.SWEmulationFaults,
	"dummy": perfdata.SWDummy, "bpf-output": perfdata.SWBPFOutput, "cgroup-switches": perfdata.SWCgroupSwitches,
}

var (
	cacheNames = map[string]uint64{
		"L1-dcache": 0, "L1-icache": 1, "LLC": 2, "dTLB": 3, "iTLB": 4, "branch": 5, "node": 6,
	}
	cacheOps = map[string]uint64{
		"loads": 0, "load-misses": 0x10000, "stores": 0x100, "store-misses": 0x10100,
		"prefetches": 0x200, "prefetch-misses": 0x10200,
	}
)

// genericEvent is a hardware event the kernel maps to the CPU's own.
func genericEvent(name string) (perfdata.Attr, bool) {
	if c, ok := hardwareEvents[name]; ok {
		return perfdata.Attr{Type: perfdata.TypeHardware, Config: c}, true
	}
	for cache, id := range cacheNames {
		if op, ok := strings.CutPrefix(name, cache+"-"); ok {
			if c, ok := cacheOps[op]; ok {
				return perfdata.Attr{Type: perfdata.TypeHWCache, Config: id | c}, true
			}
		}
	}
	return perfdata.Attr{}, false
}

// rawCode reads r1c4: the config of a core event in hexadecimal.
func rawCode(name string) (uint64, bool) {
	hex, ok := strings.CutPrefix(name, "r")
	if !ok || hex == "" {
		return 0, false
	}
	c, err := strconv.ParseUint(strings.TrimPrefix(hex, "0x"), 16, 64)
	return c, err == nil
}

func (m *Machine) namedEvent(ev *Event, s Spec, core *PMU) error {
	if c, ok := softwareEvents[s.Name]; ok {
		ev.Attr.Type, ev.Attr.Config = perfdata.TypeSoftware, c
		return nil
	}
	if a, ok := genericEvent(s.Name); ok {
		ev.Attr.Type, ev.Attr.Config = a.Type, a.Config
		if core != nil {
			// PERF_PMU_TYPE_SHIFT, include/uapi/linux/perf_event.h
			ev.Attr.Config |= uint64(core.Type) << 32
			ev.CPUs = core.CPUs
			ev.Name = core.Name + "/" + s.Name + "/"
		}
		return nil
	}
	if c, ok := rawCode(s.Name); ok {
		ev.Attr.Type, ev.Attr.Config = perfdata.TypeRaw, c
		if core != nil {
			ev.Attr.Type, ev.CPUs = core.Type, core.CPUs
			ev.Name = fmt.Sprintf("%s/config=%#x/", core.Name, c)
		}
		return nil
	}
	if system, name, ok := strings.Cut(s.Name, ":"); ok {
		if system == "mem" {
			return breakpoint(ev, name)
		}
		return m.tracepoint(ev, system, name)
	}
	// The name of an alias of a core PMU stands for itself.
	for _, p := range m.Cores() {
		if _, ok := p.Aliases[s.Name]; ok && (core == nil || core == p) {
			ev.Attr.Type, ev.CPUs = p.Type, p.CPUs
			return p.terms(ev, []Term{{Key: s.Name}}, false)
		}
	}
	return m.unknown(s.Name)
}

// unknown says what may have been meant.
func (m *Machine) unknown(name string) error {
	if len(m.Cores()) == 0 {
		return fmt.Errorf("no such event (this machine has no hardware counters; it has cpu-clock, task-clock, page-faults, context-switches, tracepoints such as sched:sched_switch, and uprobes)")
	}
	return fmt.Errorf("no such event; see perf list")
}

func (m *Machine) pmuEvent(ev *Event, s Spec) error {
	p := m.PMU(s.PMU)
	if p == nil {
		var have []string
		for _, p := range m.PMUs {
			have = append(have, p.Name)
		}
		return fmt.Errorf("this machine has no PMU %q: it has %s", s.PMU, strings.Join(have, ", "))
	}
	ev.Attr.Type, ev.CPUs = p.Type, p.CPUs
	return p.terms(ev, s.Terms, true)
}

// terms fills the attr from terms: those perf itself knows, aliases, and the
// PMU's formats, in that order of precedence as in
// tools/perf/util/parse-events.c.
func (p *PMU) terms(ev *Event, terms []Term, own bool) error {
	for _, t := range terms {
		if own {
			known, err := ev.term(t)
			if err != nil {
				return fmt.Errorf("%s: %w", t.Key, err)
			}
			if known {
				continue
			}
		}
		if alias, ok := p.Aliases[t.Key]; ok && t.Value == "" {
			sub, err := ParseSpecs(p.Name + "/" + alias + "/")
			if err != nil {
				return fmt.Errorf("alias %s: %w", t.Key, err)
			}
			if err := p.terms(ev, sub[0].Events[0].Terms, false); err != nil {
				return fmt.Errorf("alias %s: %w", t.Key, err)
			}
			continue
		}
		if err := p.term(ev, t); err != nil {
			return err
		}
	}
	return nil
}

func (p *PMU) term(ev *Event, t Term) error {
	value := uint64(1)
	if t.Value != "" {
		var err error
		if value, err = strconv.ParseUint(t.Value, 0, 64); err != nil {
			return fmt.Errorf("%s: %q is no number", t.Key, t.Value)
		}
	}
	switch t.Key {
	case "config":
		ev.Attr.Config |= value
		return nil
	case "config1":
		ev.Attr.Config1 |= value
		return nil
	case "config2":
		ev.Attr.Config2 |= value
		return nil
	case "config3":
		ev.Attr.Config3 |= value
		return nil
	}
	f, ok := p.Formats[t.Key]
	if !ok {
		return fmt.Errorf("PMU %s has no term %q: it has %s", p.Name, t.Key, strings.Join(sortedKeys(p.Formats), ", "))
	}
	if err := f.Set(&ev.Attr, value); err != nil {
		return fmt.Errorf("%s: %w", t.Key, err)
	}
	return nil
}

// term handles the terms that concern recording, not the PMU.
func (ev *Event) term(t Term) (known bool, err error) {
	switch t.Key {
	case "name":
		ev.Name = t.Value
	case "period":
		ev.Period, err = strconv.ParseUint(t.Value, 0, 64)
	case "freq":
		ev.Freq, err = strconv.ParseUint(t.Value, 0, 64)
	case "call-graph":
		if t.Value != "fp" && t.Value != "dwarf" && t.Value != "lbr" && t.Value != "no" {
			err = fmt.Errorf("%q is not one of fp, dwarf, lbr, no", t.Value)
		}
		ev.CallGraph = t.Value
	case "stack-size":
		var n uint64
		n, err = strconv.ParseUint(t.Value, 0, 32)
		ev.StackSize = uint32(n)
	case "branch_type":
		ev.Attr.BranchSampleType, err = ParseBranchFilter(t.Value)
	default:
		return false, nil
	}
	return true, err
}

// modify applies modifiers (tools/perf/Documentation/perf-list.txt). Any of
// u, k, h excludes the modes not named.
func (ev *Event) modify(mods string) {
	if strings.ContainsAny(mods, "ukh") {
		for c, flag := range map[string]perfdata.AttrFlags{
			"u": perfdata.FlagExcludeUser, "k": perfdata.FlagExcludeKernel, "h": perfdata.FlagExcludeHV,
		} {
			if !strings.Contains(mods, c) {
				ev.Attr.Flags |= flag
			}
		}
	}
	ev.setPrecise(strings.Count(mods, "p"))
	ev.MaxPrecise = strings.Contains(mods, "P")
	for c, flag := range map[string]perfdata.AttrFlags{
		"D": perfdata.FlagPinned, "e": perfdata.FlagExclusive, "I": perfdata.FlagExcludeIdle,
	} {
		if strings.Contains(mods, c) {
			ev.Attr.Flags |= flag
		}
	}
	if strings.ContainsAny(mods, "GH") {
		if !strings.Contains(mods, "G") {
			ev.Attr.Flags |= perfdata.FlagExcludeGuest
		}
		if !strings.Contains(mods, "H") {
			ev.Attr.Flags |= perfdata.FlagExcludeHost
		}
	}
	if mods != "" && !strings.HasSuffix(ev.Name, ":"+mods) {
		if strings.HasSuffix(ev.Name, "/") {
			ev.Name += mods
		} else {
			ev.Name += ":" + mods
		}
	}
}

// isTimer reports whether the event is a timer of the kernel's.
func (ev *Event) isTimer() bool {
	return ev.Attr.Type == perfdata.TypeSoftware && (ev.Attr.Config == perfdata.SWCPUClock || ev.Attr.Config == perfdata.SWTaskClock)
}

// preciseShift is where the two bits of precise_ip lie in the flags.
const preciseShift = 15

func (ev *Event) setPrecise(n int) {
	ev.Attr.Flags = ev.Attr.Flags&^(3<<preciseShift) | perfdata.AttrFlags(n)<<preciseShift
}

// breakpoint reads mem:ADDRESS[/LENGTH][:rwx].
func breakpoint(ev *Event, text string) error {
	addr, access, _ := strings.Cut(text, ":")
	addr, length, hasLength := strings.Cut(addr, "/")
	n := uint64(4) // HW_BREAKPOINT_LEN_4
	var err error
	if ev.Attr.Config1, err = strconv.ParseUint(addr, 0, 64); err != nil {
		return fmt.Errorf("%q is no address", addr)
	}
	if hasLength {
		if n, err = strconv.ParseUint(length, 0, 8); err != nil {
			return fmt.Errorf("%q is no length", length)
		}
	}
	ev.Attr.Type, ev.Attr.BPType = perfdata.TypeBreakpoint, 0
	for _, c := range access {
		switch c { // HW_BREAKPOINT_R, W, X
		case 'r':
			ev.Attr.BPType |= 1
		case 'w':
			ev.Attr.BPType |= 2
		case 'x':
			ev.Attr.BPType |= 4
			n = 8 // sizeof(long), as perf has it
		default:
			return fmt.Errorf("unknown access %q: want r, w, x", c)
		}
	}
	if ev.Attr.BPType == 0 {
		ev.Attr.BPType = 3
	}
	ev.Attr.Config2 = n
	return nil
}
