package record

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// machine reads one of the machines of testdata.
func machine(t testing.TB, name string) *Machine {
	t.Helper()
	m, err := ReadMachine(os.DirFS("testdata/" + name))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParseSpecs(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"cycles", "cycles||"},
		{"cycles:u", "cycles||u"},
		{"cycles:ppk", "cycles||ppk"},
		{"r1c4", "r1c4||"},
		{"cpu/event=0xc4,umask=0x2/u", "|cpu event=0xc4 umask=0x2|u"},
		{"cpu/event=0xc4,name=calls/:pp", "|cpu event=0xc4 name=calls|pp"},
		{"sched:sched_switch", "sched:sched_switch||"},
		{"sched:sched_switch:u", "sched:sched_switch||u"},
		{"cpu-clock,page-faults:k", "cpu-clock||;page-faults||k"},
		{"{cycles,r2c4}:S", "{cycles||S,r2c4||S}S"},
		{"{cycles:u,cpu/event=0xc4,umask=2/}:S,cs", "{cycles||uS,|cpu event=0xc4 umask=2|S}S;cs||"},
		{"grp{a,b}", "{a||,b||}"},
		{"mem:0x1000/8:rw,cs", "mem:0x1000/8:rw||;cs||"},
	} {
		groups, err := ParseSpecs(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := specText(groups); got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

func specText(groups []GroupSpec) string {
	var all []string
	for _, g := range groups {
		var events []string
		for _, s := range g.Events {
			text := s.Name + "|" + s.PMU
			for _, term := range s.Terms {
				text += " " + term.Key
				if term.Value != "" {
					text += "=" + term.Value
				}
			}
			events = append(events, text+"|"+s.Modifiers)
		}
		text := strings.Join(events, ",")
		if g.Braces {
			text = "{" + text + "}"
		}
		if g.Read {
			text += "S"
		}
		all = append(all, text)
	}
	return strings.Join(all, ";")
}

func TestParseSpecsErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "a name is missing"},
		{"cycles,", "a name is missing"},
		{"{cycles", "not closed with }"},
		{"cpu/event=1", "not closed with /"},
		{"cpu/event=1/x", `unknown modifier "x"`},
		{"cycles:pppp", "at most three"},
		{"{a,b}:Z", `unknown modifier "Z"`},
		{"a}b", "unexpected"},
	} {
		if _, err := ParseSpecs(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.text, err, c.want)
		}
	}
}

func TestFormat(t *testing.T) {
	f, err := ParseFormat("config:0-7,32-35\n")
	if err != nil {
		t.Fatal(err)
	}
	var a perfdata.Attr
	if err := f.Set(&a, 0x1c8); err != nil {
		t.Fatal(err)
	}
	if want := uint64(0x1_0000_00c8); a.Config != want {
		t.Errorf("config %#x, want %#x", a.Config, want)
	}
	if err := f.Set(&a, 0x1000); err == nil {
		t.Error("a value of 13 bits was put into 12")
	}
	full, err := ParseFormat("config1:0-63")
	if err != nil || full.Set(&a, ^uint64(0)) != nil || a.Config1 != ^uint64(0) {
		t.Errorf("64 bits: %#x, %v", a.Config1, err)
	}
	for _, bad := range []string{"", "config", "config:", "config:8-1", "config:0-64", "colour:0-7", "config:a"} {
		if _, err := ParseFormat(bad); err == nil {
			t.Errorf("%q was taken for a format", bad)
		}
	}
}

func TestParseCPUList(t *testing.T) {
	for text, want := range map[string][]int{
		"0": {0}, "0-3\n": {0, 1, 2, 3}, "0,2-3,8": {0, 2, 3, 8}, "3,1,2-3": {1, 2, 3}, "": nil,
	} {
		if got, err := ParseCPUList(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{"a", "1-", "-1", "3-1", "0-4000000000", "1,b"} {
		if got, err := ParseCPUList(bad); err == nil {
			t.Errorf("%q: got %v", bad, got)
		}
	}
}

// attrText is what Resolve set: type, config, config1, config2, flags.
func eventText(ev *Event) string {
	a := &ev.Attr
	s := fmt.Sprintf("%s %d:%#x", ev.Name, a.Type, a.Config)
	if a.Config1 != 0 || a.Config2 != 0 {
		s += fmt.Sprintf(",%#x,%#x", a.Config1, a.Config2)
	}
	for _, f := range []struct {
		bit  perfdata.AttrFlags
		name string
	}{
		{perfdata.FlagExcludeUser, "!u"}, {perfdata.FlagExcludeKernel, "!k"}, {perfdata.FlagExcludeHV, "!h"},
		{perfdata.FlagPinned, "pinned"}, {perfdata.FlagExcludeGuest, "!G"}, {perfdata.FlagExcludeHost, "!H"},
	} {
		if a.Flags&f.bit != 0 {
			s += " " + f.name
		}
	}
	if p := a.PreciseIP(); p > 0 {
		s += fmt.Sprintf(" p%d", p)
	}
	if ev.CPUs != nil {
		s += fmt.Sprintf(" on %d CPUs", len(ev.CPUs))
	}
	return s
}

func TestResolve(t *testing.T) {
	for _, c := range []struct{ machine, text, want string }{
		{"none", "cpu-clock:u", "cpu-clock:u 1:0x0 !k !h"},
		{"none", "{cs,faults:k}:S", "cs:S 1:0x3 | faults:kS 1:0x2 !u !h"},
		{"none", "uprobe/retprobe,config2=0x40/", "uprobe/retprobe,config2=0x40/ 8:0x1,0x0,0x40"},
		{"none", "mem:0x1000:w", "mem:0x1000:w 5:0x0,0x1000,0x4"},
		{"none", "L1-dcache-load-misses", "L1-dcache-load-misses 3:0x10000"},
		{"intel-lbr", "cycles:pp", "cycles:pp 0:0x0 p2"},
		{"intel-lbr", "r2c4", "r2c4 4:0x2c4"},
		{"intel-lbr", "cpu/event=0xc4,umask=0x2/u", "cpu/event=0xc4,umask=0x2/u 4:0x2c4 !k !h"},
		{"intel-lbr", "cpu/branch-misses,cmask=1/", "cpu/branch-misses,cmask=1/ 4:0x10000c5"},
		{"intel-lbr", "cpu/mem-loads,name=loads/P", "loads:P 4:0x1cd,0x3,0x0"},
		{"intel-lbr", "mem-loads", "mem-loads 4:0x1cd,0x3,0x0"},
		{"intel-lbr", "uncore_imc_0/clockticks/", "uncore_imc_0/clockticks/ 14:0xff on 2 CPUs"},
		{"intel-hybrid", "cycles:u", "cpu_atom/cycles/u 0:0xa00000000 !k !h on 8 CPUs ; cpu_core/cycles/u 0:0x400000000 !k !h on 16 CPUs"},
		{"intel-hybrid", "cpu_atom/event=0xc4,umask=0xf9/", "cpu_atom/event=0xc4,umask=0xf9/ 10:0xf9c4 on 8 CPUs"},
		{"intel-hybrid", "r2c4", "cpu_atom/config=0x2c4/ 10:0x2c4 on 8 CPUs ; cpu_core/config=0x2c4/ 4:0x2c4 on 16 CPUs"},
		{"amd-zen4", "cpu/event=0x1c8/", "cpu/event=0x1c8/ 4:0x1000000c8"},
		{"amd-zen3", "branch-brs", "branch-brs 4:0xc4"},
		{"arm", "armv8_pmuv3_0/br_return_retired/", "armv8_pmuv3_0/br_return_retired/ 8:0xe on 4 CPUs"},
		{"arm", "cycles:G", "cycles:G 0:0x0 !H"},
	} {
		specs, err := ParseSpecs(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		groups, err := machine(t, c.machine).Resolve(specs)
		if err != nil {
			t.Errorf("%s: %s: %v", c.machine, c.text, err)
			continue
		}
		var all []string
		for _, g := range groups {
			var events []string
			for _, ev := range g.Events {
				events = append(events, eventText(ev))
			}
			all = append(all, strings.Join(events, " | "))
		}
		if got := strings.Join(all, " ; "); got != c.want {
			t.Errorf("%s: %s:\n got %s\nwant %s", c.machine, c.text, got, c.want)
		}
	}
}

func TestResolveErrors(t *testing.T) {
	for _, c := range []struct{ machine, text, want string }{
		{"none", "nonsense", "this machine has no hardware counters"},
		{"intel-lbr", "nonsense", "see perf list"},
		{"none", "cpu/event=1/", `no PMU "cpu": it has breakpoint, software, tracepoint, uprobe`},
		{"intel-lbr", "cpu/colour=1/", `no term "colour": it has any, cmask`},
		{"intel-lbr", "cpu/umask=0x100/", "umask: value 0x100 is too large: it has 8 bits"},
		{"intel-lbr", "cpu/umask=x/", `"x" is no number`},
		{"intel-lbr", "cycles,cpu/period=many/", "period"},
		{"none", "sched:nosuch", "tracefs"},
		{"none", "mem:zero", `"zero" is no address`},
	} {
		specs, err := ParseSpecs(c.text)
		if err == nil {
			_, err = machine(t, c.machine).Resolve(specs)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: error %v, want %q", c.machine, c.text, err, c.want)
		}
	}
}

func FuzzParseSpecs(f *testing.F) {
	for _, s := range []string{"cycles:u", "{a,b}:S", "cpu/event=0xc4,umask=2/pp,cs", "sched:sched_switch", "x{", "mem:0:r"} {
		f.Add(s)
	}
	m := machine(f, "intel-hybrid")
	f.Fuzz(func(t *testing.T, s string) {
		groups, err := ParseSpecs(s)
		if err != nil {
			return
		}
		if len(groups) == 0 {
			t.Error("no error and no event")
		}
		m.Resolve(groups)
	})
}
