package record

import (
	"os"
)

// Prepare looks at the machine and decides what to record.
func Prepare(opt Options) (*Config, error) {
	m, err := ReadMachine(os.DirFS("/"))
	if err != nil {
		return nil, err
	}
	caps, err := Probe(m, &opt.Target)
	if err != nil {
		return nil, err
	}
	program := ""
	if len(opt.Target.Command) > 0 {
		if program, err = lookPath(opt.Target.Command[0]); err != nil {
			return nil, err
		}
	} else if len(opt.Target.PIDs) == 1 {
		program, _ = os.Readlink("/proc/" + itoa(int32(opt.Target.PIDs[0])) + "/exe")
	}
	probes, err := m.probeEvents(opt.CountCalls, program)
	if err != nil {
		return nil, err
	}
	plan, err := NewPlan(caps, &opt, probes)
	if err != nil {
		return nil, err
	}
	return &Config{Options: opt, Machine: m, Caps: caps, Plan: plan, Say: func(string, ...any) {}}, nil
}

// probeEvents are the counters for Options.CountCalls.
func (m *Machine) probeEvents(specs []string, program string) ([]*Event, error) {
	var events []*Event
	for _, spec := range specs {
		probes, err := FindProbes(spec, program)
		if err != nil {
			return nil, err
		}
		for _, p := range probes {
			ev, err := m.probeEvent(p)
			if err != nil {
				return nil, err
			}
			events = append(events, ev)
		}
	}
	return events, nil
}
