package record

import (
	"os"
)

// Prepare looks at the machine and decides what to record. Run has to follow,
// or Close.
func Prepare(opt Options) (*Config, error) {
	m, err := ReadMachine(os.DirFS("/"))
	if err != nil {
		return nil, err
	}
	c := &Config{Options: opt, Machine: m, Say: func(string, ...any) {}}
	if err := c.prepare(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Config) prepare() error {
	program, err := c.program()
	if err != nil {
		return err
	}
	if c.Caps, err = Probe(c.Machine, c.Target.Wide() || c.followsByCPU()); err != nil {
		return err
	}
	probes, err := c.probeEvents(program)
	if err != nil {
		return err
	}
	c.Plan, err = NewPlan(c.Caps, &c.Options, probes)
	return err
}

// program is the file in which functions are looked up that are named without
// one.
func (c *Config) program() (string, error) {
	switch t := &c.Target; {
	case len(t.Command) > 0:
		return lookPath(t.Command[0])
	case len(t.PIDs) == 1:
		path, _ := os.Readlink("/proc/" + itoa(int32(t.PIDs[0])) + "/exe")
		return path, nil
	}
	return "", nil
}

// Close removes what Prepare put into the system.
func (c *Config) Close() error { return c.probes.close() }
