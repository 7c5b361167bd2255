package record

import (
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// Probe finds out by trying what this process may open; wide: on CPUs, whatever runs there. The
// error says why nothing at all can be.
func Probe(m *Machine, wide bool) (*Capabilities, error) {
	c := &Capabilities{Arch: runtime.GOARCH, Machine: m, MaxFreq: sysctl("perf_event_max_sample_rate")}
	try := &trial{wide: wide}
	clock := perfdata.Attr{Type: perfdata.TypeSoftware, Config: perfdata.SWCPUClock, SamplePeriod: 1_000_000}
	err := try.open(clock)
	c.Kernel = err == nil
	if err != nil {
		if userErr := try.open(userOnly(clock)); userErr != nil {
			return nil, Explain(userErr, readRights(), wide)
		}
		clock = userOnly(clock)
	}
	lost := clock
	lost.ReadFormat = perfdata.ReadLost
	c.Lost = try.open(lost) == nil
	group := clock
	group.Flags |= perfdata.FlagInherit
	group.SampleType = perfdata.FieldTID | perfdata.FieldRead
	group.ReadFormat = perfdata.ReadID | perfdata.ReadGroup
	c.GroupRead = (&trial{cpu: true}).open(group) == nil
	c.hardware(try)
	return c, nil
}

// hardware looks what the counters of the cores can do.
func (c *Capabilities) hardware(try *trial) {
	cores := c.Machine.Cores()
	if len(cores) == 0 {
		return
	}
	core := cores[0]
	cycles := c.Machine.cycles(core).Attr
	cycles.SamplePeriod, cycles.Flags = 1000, perfdata.FlagFreq
	if !c.Kernel {
		cycles = userOnly(cycles)
	}
	if len(core.CPUs) > 0 {
		try = &trial{wide: try.wide, cpu: true, on: core.CPUs[0]}
	}
	if try.open(cycles) != nil {
		return
	}
	c.Cycles = true
	if ev := c.Machine.callEvent(core); ev != nil {
		a := ev.Attr
		if !c.Kernel {
			a = userOnly(a)
		}
		c.Calls = try.open(a) == nil
	}
	for _, b := range []perfdata.BranchSample{
		perfdata.BranchAnyCall | perfdata.BranchTypeSave, perfdata.BranchAnyCall,
		perfdata.BranchAny | perfdata.BranchTypeSave, perfdata.BranchAny,
	} {
		a := cycles
		a.SampleType |= perfdata.FieldBranchStack
		a.BranchSampleType = b
		if try.open(a) == nil {
			c.Branches = b
			break
		}
	}
	if c.Machine.Vendor != "GenuineIntel" {
		return // AMD's precise cycles are another PMU's (ibs_op), with limits of their own
	}
	for n := 3; n > 0; n-- {
		ev := Event{Attr: cycles}
		ev.setPrecise(n)
		if try.open(ev.Attr) == nil {
			c.Precise = n
			break
		}
	}
}

func userOnly(a perfdata.Attr) perfdata.Attr {
	a.Flags |= perfdata.FlagExcludeKernel | perfdata.FlagExcludeHV
	return a
}

// trial opens events only to see whether that works.
type trial struct {
	wide bool // on a CPU instead of this process
	cpu  bool // this process on CPU on
	on   int
}

func (t *trial) open(a perfdata.Attr) error {
	pid, cpu := 0, -1
	if t.cpu {
		cpu = t.on
	}
	if t.wide {
		pid, cpu = -1, t.on
	}
	a.Flags |= perfdata.FlagDisabled
	fd, err := openEvent(&Event{Name: attrText(&a), Attr: a}, pid, cpu, -1, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// attrText names an event on trial in errors.
func attrText(a *perfdata.Attr) string {
	if a.Type == perfdata.TypeSoftware {
		return "cpu-clock"
	}
	return "cycles"
}

// sysctl reads a number below /proc/sys/kernel, 0 if it cannot.
func sysctl(name string) uint64 {
	b, _ := os.ReadFile(path.Join("/proc/sys/kernel", name))
	n, _ := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return n
}
