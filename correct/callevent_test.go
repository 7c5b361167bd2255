package correct

import (
	"errors"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

func event(name string, typ perfdata.EventType, config uint64) *perfdata.Event {
	return &perfdata.Event{Name: name, Attr: perfdata.Attr{Type: typ, Config: config}}
}

func TestCallEventIsRecognised(t *testing.T) {
	const intelID, amdID, armID = "GenuineIntel,6,151,2", "AuthenticAMD,25,97,2", "0x00000000410fd490"
	pmus := map[perfdata.EventType]string{4: "cpu_core", 6: "kprobe", 7: "uprobe", 8: "cpu_core", 10: "cpu_atom", 11: "armv8_pmuv3_0", 12: "uncore_cbox_0"}
	cycles := event("cycles", perfdata.TypeHardware, 0)
	for _, c := range []struct {
		what      string
		cpu, arch string
		events    []*perfdata.Event
		want, how string // name of the event, part of how; "" if none
	}{
		{"by name", intelID, "x86_64", []*perfdata.Event{cycles, event("br_inst_retired.near_call", 4, 0x02c4)}, "br_inst_retired.near_call", "near calls retired"},
		{"by name with PMU, capitals", intelID, "x86_64", []*perfdata.Event{event("cpu_core/BR_INST_RETIRED.NEAR_CALL/u", 8, 0x02c4)}, "cpu_core/BR_INST_RETIRED.NEAR_CALL/u", "near calls"},
		{"mispredicted calls are not calls", intelID, "x86_64", []*perfdata.Event{event("br_misp_retired.near_call", 4, 0x02c5)}, "", ""},
		{"raw code", intelID, "x86_64", []*perfdata.Event{cycles, event("r02c4", 4, 0x02c4)}, "r02c4", "event 0xc4, umask 0x02"},
		{"Atom", intelID, "x86_64", []*perfdata.Event{event("cpu_atom/event=0xc4,umask=0xf9/", 10, 0xf9c4)}, "cpu_atom/event=0xc4,umask=0xf9/", "Atom"},
		{"edge detection makes it another event", intelID, "x86_64", []*perfdata.Event{event("r402c4", 4, 0x402c4)}, "", ""},
		{"an uncore event with the same code", intelID, "x86_64", []*perfdata.Event{event("uncore", 12, 0x02c4)}, "", ""},
		{"Intel's code on AMD", amdID, "x86_64", []*perfdata.Event{event("r02c4", 4, 0x02c4)}, "", ""},
		{"vendor not recorded", "", "x86_64", []*perfdata.Event{event("r02c4", 4, 0x02c4)}, "r02c4", "near calls"},
		{"AMD's returns", amdID, "x86_64", []*perfdata.Event{cycles, event("ex_ret_near_ret", 4, 0xc8)}, "ex_ret_near_ret", "standing in"},
		{"AMD's returns by code", amdID, "x86_64", []*perfdata.Event{event("rc8", 4, 0xc8)}, "rc8", "AMD"},
		{"0xc8 is something else on Intel", intelID, "x86_64", []*perfdata.Event{event("rc8", 4, 0xc8)}, "", ""},
		{"Arm", armID, "aarch64", []*perfdata.Event{event("armv8_pmuv3_0/config=0xe/", 11, 0x0e)}, "armv8_pmuv3_0/config=0xe/", "0x0e of Arm"},
		{"Arm by name", armID, "aarch64", []*perfdata.Event{event("br_return_retired", 11, 0x0e)}, "br_return_retired", "standing in"},
		{"calls before returns", intelID, "x86_64", []*perfdata.Event{event("br_inst_retired.near_return", 4, 0x08c4), event("br_inst_retired.near_call", 4, 0x02c4)}, "br_inst_retired.near_call", "calls"},
		{"perf probe", "", "x86_64", []*perfdata.Event{cycles, event("probe_prog:compute", perfdata.TypeTracepoint, 1500)}, "probe_prog:compute", "probe at function entry"},
		{"entry before return", "", "x86_64", []*perfdata.Event{event("probe_prog:f__return", perfdata.TypeTracepoint, 1), event("probe_prog:f", perfdata.TypeTracepoint, 2)}, "probe_prog:f", "entry"},
		{"uprobe PMU", "", "x86_64", []*perfdata.Event{event("compute", 7, 0)}, "compute", "entry"},
		{"other tracepoints", "", "x86_64", []*perfdata.Event{event("sched:sched_switch", perfdata.TypeTracepoint, 9)}, "", ""},
		{"two probes", "", "", []*perfdata.Event{event("probe_p:f", perfdata.TypeTracepoint, 1), event("probe_p:g", perfdata.TypeTracepoint, 2)}, "probe_p:f", "probe_p:f + probe_p:g"},
	} {
		e, how, err := CallEvent(c.events, &perfdata.Meta{CPUID: c.cpu, Arch: c.arch, PMUMappings: pmus}, "")
		switch {
		case c.want == "":
			if !errors.Is(err, ErrNoCallEvent) {
				t.Errorf("%s: %v (%s), %v; want none", c.what, e, how, err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.what, err)
		case e.Name != c.want || !strings.Contains(how, c.how):
			t.Errorf("%s: %s (%s), want %s (%s)", c.what, e.Name, how, c.want, c.how)
		}
	}
}

func TestCallEventByNameOrCode(t *testing.T) {
	events := []*perfdata.Event{
		event("cycles:u", perfdata.TypeHardware, 0),
		event("cpu/event=0xc4,umask=0x2/u", 4, 0x02c4),
		event("rff24", 4, 0xff24),
		event("probe_x:call_it", perfdata.TypeTracepoint, 0x02c4),
	}
	for spec, want := range map[string]int{
		"cycles": 0, "cycles:u": 0, "r02c4": 1, "r2C4": 1, "cpu/event=0xc4,umask=0x2/": 1, "cpu/umask=2,event=196,name=calls/u": 1,
		"cpu/config=0xff24/": 2, "rff24": 2, "call_it": 3, "CALL": 3,
	} {
		e, how, err := CallEvent(events, nil, spec)
		if err != nil || e != events[want] || how == "" {
			t.Errorf("%q finds %v (%s, %v), want %s", spec, e, how, err, events[want].Name)
		}
	}
	for _, spec := range []string{"r02c5", "cpu/event=0xc4/", "cpu/event=0xc4,umask=0x2,edge/", "nothing", "r"} {
		e, _, err := CallEvent(events, nil, spec)
		if spec == "r" { // part of several names
			if err != nil {
				t.Errorf("%q: %v", spec, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "cycles:u") {
			t.Errorf("%q finds %v, error %v; want an error that lists the events", spec, e, err)
		}
	}
}
