package record

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// caps are the capabilities of a machine of testdata, as a kernel on it would
// show them.
func caps(t *testing.T, name string) *Capabilities {
	c := &Capabilities{Arch: "amd64", Machine: machine(t, name), Kernel: true, GroupRead: true, Lost: true, MaxFreq: 100000}
	anyCall := perfdata.BranchAnyCall | perfdata.BranchTypeSave
	switch name {
	case "intel-lbr", "intel-hybrid", "intel-atom":
		c.Cycles, c.Calls, c.Branches, c.Precise = true, true, anyCall, 3
	case "intel-vm":
		c.Cycles, c.Calls = true, true
	case "amd-zen3":
		c.Cycles, c.Calls = true, true // BRS refuses cycles with branches
	case "amd-zen4", "amd-zen5":
		c.Cycles, c.Calls, c.Branches = true, true, anyCall
	case "arm":
		c.Arch = "arm64"
		c.Cycles, c.Calls, c.Branches = true, true, anyCall
	}
	return c
}

// planText writes what is to be opened, a line for each event.
func planText(p *Plan) string {
	var b strings.Builder
	for _, g := range p.Groups {
		for i, ev := range g.Events {
			if i > 0 {
				b.WriteString("  ")
			}
			a := &ev.Attr
			fmt.Fprintf(&b, "%s %d:%#x", ev.Name, a.Type, a.Config)
			switch {
			case g.Read && i > 0:
				b.WriteString(" counts")
			case a.Freq():
				fmt.Fprintf(&b, " %dHz", a.SamplePeriod)
			default:
				fmt.Fprintf(&b, " every %d", a.SamplePeriod)
			}
			for _, f := range []struct {
				on   bool
				name string
			}{
				{a.SampleType&perfdata.FieldRead != 0, "read"},
				{a.SampleType&perfdata.FieldCallchain != 0, "chain"},
				{a.SampleType&perfdata.FieldBranchStack != 0, "branch=" + branchText(a.BranchSampleType)},
				{a.SampleType&perfdata.FieldStackUser != 0, fmt.Sprintf("regs=%#x stack=%d", a.SampleRegsUser, a.SampleStackUser)},
				{a.SampleType&perfdata.FieldRaw != 0, "raw"},
				{a.PreciseIP() > 0, fmt.Sprintf("p%d", a.PreciseIP())},
				{a.Flags&perfdata.FlagExcludeKernel != 0, "!k"},
				{a.Flags&perfdata.FlagExcludeCallchainUser != 0, "!userchain"},
				{a.Flags&perfdata.FlagInherit != 0, "inherit"},
				{a.Flags&perfdata.FlagEnableOnExec != 0, "onexec"},
				{a.Flags&perfdata.FlagMmap2 != 0, "tracks"},
				{a.Flags&perfdata.FlagContextSwitch != 0, "switches"},
				{a.WakeupEvents > 0, "wakes"},
			} {
				if f.on {
					b.WriteString(" " + f.name)
				}
			}
			b.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func lines(s ...string) string { return strings.Join(s, "\n") }

func TestPlan(t *testing.T) {
	command := Target{Command: []string{"./app"}}
	wide := Target{AllCPUs: true}
	probe := func() []*Event {
		return []*Event{{Name: "probe_x:f", Attr: perfdata.Attr{Type: perfdata.TypeTracepoint, Config: 77}, Uprobes: []Uprobe{{}}}}
	}
	for _, c := range []struct {
		name, machine string
		opt           Options
		change        func(*Capabilities)
		probes        []*Event
		want, line    string
	}{
		{name: "no PMU", machine: "none", opt: Options{Target: command},
			want: "cpu-clock 1:0x0 4000Hz chain regs=0x1c0 stack=512 inherit onexec tracks switches",
			line: "cpu-clock at 4000 Hz; callchains, 512 bytes of stack, context switches (no hardware counters here; --count-calls FUNC counts calls of functions)"},
		{name: "no PMU, calls counted", machine: "none", opt: Options{Target: command, Freq: 100}, probes: probe(),
			want: lines("cpu-clock 1:0x0 100Hz read chain regs=0x1c0 stack=512 inherit onexec tracks switches",
				"  probe_x:f 2:0x4d counts read inherit"),
			line: "cpu-clock with counts of probe_x:f at 100 Hz; callchains, 512 bytes of stack, context switches (no hardware counters here)"},
		{name: "user rights only", machine: "none", opt: Options{Target: command},
			change: func(c *Capabilities) { c.Kernel = false },
			want:   "cpu-clock 1:0x0 4000Hz chain regs=0x1c0 stack=512 !k inherit onexec tracks switches"},
		{name: "system-wide", machine: "none", opt: Options{Target: wide},
			want: "cpu-clock 1:0x0 4000Hz chain regs=0x1c0 stack=512 tracks switches"},
		{name: "LBR", machine: "intel-lbr", opt: Options{Target: command},
			want: lines("cycles 0:0x0 4000Hz read chain branch=any_call p3 inherit onexec tracks switches",
				"  br_inst_retired.near_call 4:0x2c4 counts read inherit"),
			line: "cycles with counts of br_inst_retired.near_call at 4000 Hz; branch stacks (any_call), callchains, context switches"},
		{name: "LBR before Linux 6.12", machine: "intel-lbr", opt: Options{Target: command},
			change: func(c *Capabilities) { c.GroupRead = false },
			want: lines("cycles 0:0x0 4000Hz chain branch=any_call p3 inherit onexec tracks switches",
				"br_inst_retired.near_call 4:0x2c4 4000Hz chain branch=any_call inherit onexec")},
		{name: "LBR before Linux 6.12, one thread", machine: "intel-lbr", opt: Options{Target: Target{Command: []string{"a"}, NoFollow: true}},
			change: func(c *Capabilities) { c.GroupRead = false },
			want: lines("cycles 0:0x0 4000Hz read chain branch=any_call p3 onexec tracks switches",
				"  br_inst_retired.near_call 4:0x2c4 counts read")},
		{name: "LBR before Linux 6.12, system-wide", machine: "intel-lbr", opt: Options{Target: wide},
			change: func(c *Capabilities) { c.GroupRead = false },
			want: lines("cycles 0:0x0 4000Hz read chain branch=any_call p3 tracks switches",
				"  br_inst_retired.near_call 4:0x2c4 counts read")},
		{name: "counters without branches", machine: "intel-vm", opt: Options{Target: command},
			want: lines("cycles 0:0x0 4000Hz read chain regs=0x1c0 stack=512 inherit onexec tracks switches",
				"  br_inst_retired.near_call 4:0x2c4 counts read inherit",
				"br_inst_retired.near_call 4:0x2c4 4000Hz chain regs=0x1c0 stack=512 inherit onexec"),
			line: "cycles with counts of br_inst_retired.near_call at 4000 Hz, samples of br_inst_retired.near_call; callchains, 512 bytes of stack, context switches (no branch stacks here)"},
		{name: "Atom", machine: "intel-atom", opt: Options{Target: command, Switches: Off},
			want: lines("cycles 0:0x0 4000Hz read chain branch=any_call p3 inherit onexec tracks",
				"  br_inst_retired.near_call 4:0xf9c4 counts read inherit")},
		{name: "hybrid", machine: "intel-hybrid", opt: Options{Target: command},
			want: lines("cpu_atom/cycles/ 0:0xa00000000 4000Hz read chain branch=any_call p3 inherit onexec",
				"  cpu_atom/br_inst_retired.near_call/ 10:0xf9c4 counts read inherit",
				"cpu_core/cycles/ 0:0x400000000 4000Hz read chain branch=any_call p3 inherit onexec",
				"  cpu_core/br_inst_retired.near_call/ 4:0x2c4 counts read inherit",
				"dummy:u 1:0x9 every 1 !k inherit onexec tracks switches")},
		{name: "Zen 3", machine: "amd-zen3", opt: Options{Target: command},
			want: lines("cycles 0:0x0 4000Hz read chain regs=0x1c0 stack=512 inherit onexec tracks switches",
				"  ex_ret_near_ret 4:0xc8 counts read inherit",
				"ex_ret_near_ret 4:0xc8 4000Hz chain regs=0x1c0 stack=512 inherit onexec",
				"branch-brs 4:0xc4 every 1000003 chain branch=any regs=0x1c0 stack=512 inherit onexec")},
		{name: "Zen 4", machine: "amd-zen4", opt: Options{Target: command},
			want: lines("cycles 0:0x0 4000Hz read chain branch=any_call inherit onexec tracks switches",
				"  ex_ret_near_ret 4:0xc8 counts read inherit")},
		{name: "Zen 5", machine: "amd-zen5", opt: Options{Target: wide, Freq: 1000},
			want: lines("cycles 0:0x0 1000Hz read chain branch=any_call tracks switches",
				"  ex_ret_near_ret 4:0xc8 counts read")},
		{name: "Arm", machine: "arm", opt: Options{Target: command},
			want: lines("cycles 0:0x0 4000Hz read chain branch=any_call inherit onexec",
				"  br_return_retired 8:0xe counts read inherit",
				"dummy:u 1:0x9 every 1 !k inherit onexec tracks switches")},
		{name: "counters refused", machine: "intel-lbr", opt: Options{Target: command},
			change: func(c *Capabilities) { *c = Capabilities{Arch: "amd64", Machine: c.Machine} },
			want:   "cpu-clock 1:0x0 4000Hz chain regs=0x1c0 stack=512 !k inherit onexec tracks switches",
			line:   "cpu-clock at 4000 Hz; callchains, 512 bytes of stack, context switches, user code only (the hardware counters cannot be opened; --count-calls FUNC counts calls of functions)"},
		{name: "perf's own", machine: "intel-lbr", opt: Options{Target: command, Events: "cycles:u", CallGraph: "fp", Count: 10007},
			want: "cycles:u 0:0x0 every 10007 chain !k inherit onexec tracks"},
		{name: "-b", machine: "intel-lbr", opt: Options{Target: command, Events: "cycles", CallGraph: "no", Branch: perfdata.BranchAny},
			want: "cycles 0:0x0 4000Hz branch=any inherit onexec tracks"},
		{name: "dwarf", machine: "none", opt: Options{Target: command, CallGraph: "dwarf", Switches: Off},
			want: "cpu-clock 1:0x0 4000Hz chain regs=0xff0fff stack=8192 !userchain inherit onexec tracks"},
		{name: "dwarf with a size", machine: "none", opt: Options{Target: command, CallGraph: "dwarf", StackSize: 1001, Switches: Off},
			want: "cpu-clock 1:0x0 4000Hz chain regs=0xff0fff stack=1008 !userchain inherit onexec tracks"},
		{name: "lbr", machine: "intel-lbr", opt: Options{Target: command, Events: "cycles", CallGraph: "lbr"},
			want: "cycles 0:0x0 4000Hz chain branch=stack inherit onexec tracks"},
		{name: "no dump", machine: "none", opt: Options{Target: command, NoDump: true, Switches: Off},
			want: "cpu-clock 1:0x0 4000Hz chain inherit onexec tracks"},
		{name: "terms", machine: "intel-lbr", opt: Options{Target: command, Events: "cpu/event=0xc4,period=99,call-graph=no/,cpu/cpu-cycles,freq=50/", NoDump: true},
			want: lines("cpu/event=0xc4,period=99,call-graph=no/ 4:0xc4 every 99 inherit onexec",
				"cpu/cpu-cycles,freq=50/ 4:0x3c 50Hz chain inherit onexec",
				"dummy:u 1:0x9 every 1 !k inherit onexec tracks")},
		{name: "too often", machine: "none", opt: Options{Target: command, Freq: 200000, NoDump: true, Switches: Off},
			want: "cpu-clock 1:0x0 100000Hz chain inherit onexec tracks"},
		{name: "CBS", machine: "none", opt: Options{Target: command, CBS: &CBS{16, 7}, NoDump: true}, probes: probe(),
			want: lines("cpu-clock 1:0x0 100Hz chain tracks wakes", "probe_x:f 2:0x4d every 7 chain")},
		{name: "CBS with a counter", machine: "intel-lbr", opt: Options{Target: Target{Command: []string{"a"}, NoFollow: true}, CBS: &CBS{16, 7}},
			want: lines("cycles 0:0x0 100Hz chain branch=any_call p3 onexec tracks switches wakes",
				"br_inst_retired.near_call 4:0x2c4 every 7 chain branch=any_call")},
		{name: "self-tuning", machine: "none", opt: Options{Target: command, Tune: &Tune{}, NoDump: true},
			want: "cpu-clock 1:0x0 4000Hz chain tracks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := caps(t, c.machine)
			if c.change != nil {
				c.change(k)
			}
			p, err := NewPlan(k, &c.opt, c.probes)
			if err != nil {
				t.Fatal(err)
			}
			if got := planText(p); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if c.line != "" && p.Line != c.line {
				t.Errorf("line\n%s\nwant\n%s", p.Line, c.line)
			}
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	command := Target{Command: []string{"./app"}}
	probe := []*Event{{Name: "probe_x:f", Attr: perfdata.Attr{Type: perfdata.TypeTracepoint}, Uprobes: []Uprobe{{}}}}
	for _, c := range []struct {
		opt    Options
		probes []*Event
		want   string
	}{
		{Options{Target: command}, probe, "before Linux 6.12"},
		{Options{Target: command, Events: "{cpu-clock,cs}:S"}, nil, "before Linux 6.12"},
		{Options{Target: command, CBS: &CBS{1, 1}}, nil, "--count-calls"},
		{Options{Target: Target{TIDs: []int{1}}, Tune: &Tune{}}, nil, "--no-inherit"},
		{Options{Target: command, Events: "cycles,"}, nil, "a name is missing"},
		{Options{Target: command, CallGraph: "tree"}, nil, "not one of fp, dwarf, lbr, no"},
	} {
		k := caps(t, "none")
		k.GroupRead = false
		if _, err := NewPlan(k, &c.opt, c.probes); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.opt, err, c.want)
		}
	}
}

// Events read together have to look to a reader as perf's do: the ids of all
// at the same place, members that do not sample.
func TestPlanIsReadable(t *testing.T) {
	for _, name := range []string{"none", "intel-lbr", "intel-hybrid", "intel-vm", "amd-zen3", "amd-zen4", "arm"} {
		p, err := NewPlan(caps(t, name), &Options{Target: Target{AllCPUs: true}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range p.Events() {
			if ev.Attr.SampleType&commonFields != commonFields || ev.Attr.Flags&perfdata.FlagSampleIDAll == 0 {
				t.Errorf("%s: %s lacks common fields: %#x", name, ev.Name, ev.Attr.SampleType)
			}
		}
		tracks := 0
		for _, ev := range p.Events() {
			if ev.Attr.Flags&perfdata.FlagTask != 0 {
				tracks++
			}
		}
		if tracks != 1 {
			t.Errorf("%s: %d events report forks", name, tracks)
		}
	}
}
