package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// tracedProbes are uprobes made as tracepoints of their own.
//
// The PMU "uprobe" would do without their global names, but its events cannot
// be inherited: the attr points at the path in the recorder's memory, the
// kernel reads it again for each child, in the child's memory
// (perf_uprobe_init in kernel/trace/trace_event_perf.c, called by
// inherit_event), and the fork of the recorded program fails with EFAULT.
type tracedProbes struct {
	dir    string // of tracefs
	group  string
	events []string
}

// probeGroup begins the names of the groups, and the number of the recorder's
// process ends them, so that those of recorders that were killed can be told.
const probeGroup = "probe_perfcorrect_"

func newTracedProbes() (*tracedProbes, error) {
	for _, dir := range tracefs {
		t := &tracedProbes{dir: "/" + dir, group: probeGroup + strconv.Itoa(os.Getpid())}
		_, err := os.Stat(filepath.Join(t.dir, "uprobe_events"))
		if err == nil {
			t.removeStale()
			return t, nil
		}
		if errors.Is(err, os.ErrPermission) {
			return nil, &HintError{fmt.Errorf("calls are counted by probes: %w", err), "only root can make probes; sudo perfcorrect record ... runs the program as root, too"}
		}
	}
	return nil, &HintError{errors.New("calls are counted by probes, which need tracefs"), "as root: mount -t tracefs tracefs /sys/kernel/tracing"}
}

// add makes one event of the probes: all of them count together.
func (t *tracedProbes) add(m *Machine, name string, probes []Uprobe) (*Event, error) {
	name = t.unique(name)
	for i, p := range probes {
		if err := t.write(fmt.Sprintf("p:%s/%s %s:0x%x", t.group, name, p.Path, p.Offset)); err != nil {
			err = fmt.Errorf("probe at %s of %s: %w", p.Symbol, p.Path, err)
			if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
				return nil, &HintError{err, "probes that follow threads and children can be made by root only"}
			}
			return nil, err
		}
		if i == 0 {
			t.events = append(t.events, name)
		}
	}
	ev := &Event{Name: t.group + ":" + name, Uprobes: probes}
	return ev, m.tracepoint(ev, t.group, name)
}

// unique makes a name of an event out of that of a function.
func (t *tracedProbes) unique(symbol string) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, symbol)
	name = name[:min(len(name), 48)] // MAX_EVENT_NAME_LEN is 64
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "f" + name
	}
	for base, n := name, 2; ; n++ {
		taken := false
		for _, e := range t.events {
			taken = taken || e == name
		}
		if !taken {
			return name
		}
		name = base + "_" + strconv.Itoa(n)
	}
}

func (t *tracedProbes) write(line string) error {
	f, err := os.OpenFile(filepath.Join(t.dir, "uprobe_events"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// close removes the probes; their events have to be closed.
func (t *tracedProbes) close() error {
	if t == nil {
		return nil
	}
	var errs []error
	for _, e := range t.events {
		errs = append(errs, t.write("-:"+t.group+"/"+e))
	}
	t.events = nil
	return errors.Join(errs...)
}

// removeStale removes what recorders left behind that do not live any more.
func (t *tracedProbes) removeStale() {
	b, err := os.ReadFile(filepath.Join(t.dir, "uprobe_events"))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(b)) {
		// p:group/event path:0x...
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "p:"), " ")
		group, _, _ := strings.Cut(name, "/")
		pid, err := strconv.Atoi(strings.TrimPrefix(group, probeGroup))
		if strings.HasPrefix(group, probeGroup) && err == nil && unix.Kill(pid, 0) == unix.ESRCH {
			t.write("-:" + name)
		}
	}
}

// probeEvents makes the counters for Options.CountCalls. With CBS it is one
// event for all functions, since one limit has to hold for all their calls.
func (c *Config) probeEvents(program string) ([]*Event, error) {
	var all []Uprobe
	for _, spec := range c.CountCalls {
		probes, err := FindProbes(spec, program)
		if err != nil {
			return nil, err
		}
		all = append(all, probes...)
	}
	if len(all) > maxProbes {
		return nil, fmt.Errorf("%d functions to count calls of: the limit is %d", len(all), maxProbes)
	}
	together := c.CBS != nil
	inherited := !c.Target.Wide() && !c.Target.NoFollow && !c.followsByCPU()
	if len(all) == 0 || !inherited && !(together && len(all) > 1) {
		return c.Machine.pmuProbes(all)
	}
	var err error
	if c.probes, err = newTracedProbes(); err != nil {
		return nil, err
	}
	var events []*Event
	if together {
		name := all[0].Symbol
		if len(all) > 1 {
			name = "calls"
		}
		ev, err := c.probes.add(c.Machine, name, all)
		return []*Event{ev}, err
	}
	for _, p := range all {
		ev, err := c.probes.add(c.Machine, p.Symbol, []Uprobe{p})
		if err != nil {
			return nil, err
		}
		events = append(events, ev)
	}
	return events, nil
}

// pmuProbes are events of the PMU "uprobe": nothing is left behind by them.
func (m *Machine) pmuProbes(probes []Uprobe) ([]*Event, error) {
	if len(probes) == 0 {
		return nil, nil
	}
	pmu := m.PMU("uprobe")
	if pmu == nil {
		return nil, errors.New("this kernel has no uprobes (CONFIG_UPROBE_EVENTS)")
	}
	var events []*Event
	for _, p := range probes {
		events = append(events, &Event{
			Name:    "uprobes:" + p.Symbol,
			Attr:    perfdata.Attr{Type: pmu.Type, Config2: p.Offset},
			Uprobes: []Uprobe{p},
			path:    p.Path,
		})
	}
	return events, nil
}
