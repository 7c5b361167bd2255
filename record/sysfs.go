package record

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// PMU is one directory of /sys/bus/event_source/devices
// (Documentation/ABI/testing/sysfs-bus-event_source-devices-*).
type PMU struct {
	Name    string
	Type    perfdata.EventType
	CPUs    []int             // it counts on; nil is all
	Formats map[string]Format // of its terms: "event", "umask"...
	Aliases map[string]string // "branch-misses" -> "event=0xc5"
	Caps    map[string]string // "branches" -> "32"
	Core    bool              // counts what a CPU core does, and can follow a thread
}

// Machine is what events can be made of here.
type Machine struct {
	PMUs    []*PMU // sorted by name
	Vendor  string // of the CPU, as in /proc/cpuinfo: "GenuineIntel", "AuthenticAMD", "" on Arm
	Family  int
	Model   int
	CPUName string

	root fs.FS // "/": formats of tracepoints are read when needed
}

const devices = "sys/bus/event_source/devices"

// ReadMachine reads sysfs and /proc/cpuinfo under root, which stands for "/".
// A PMU that cannot be read is an error: leaving it out would show only later,
// as an event that does not exist.
func ReadMachine(root fs.FS) (*Machine, error) {
	m := &Machine{root: root}
	entries, err := fs.ReadDir(root, devices)
	if err != nil {
		return nil, fmt.Errorf("no list of event sources: %w (is /sys mounted?)", err)
	}
	for _, e := range entries {
		p, err := readPMU(root, e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // went away, or no PMU
		}
		if err != nil {
			return nil, err
		}
		m.PMUs = append(m.PMUs, p)
	}
	slices.SortFunc(m.PMUs, func(a, b *PMU) int { return strings.Compare(a.Name, b.Name) })
	m.readCPU()
	return m, nil
}

// PMU returns the PMU of that name, or nil.
func (m *Machine) PMU(name string) *PMU {
	for _, p := range m.PMUs {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Cores returns the PMUs of the CPU cores: one, two on a hybrid CPU, none in
// most virtual machines.
func (m *Machine) Cores() []*PMU {
	var cores []*PMU
	for _, p := range m.PMUs {
		if p.Core {
			cores = append(cores, p)
		}
	}
	return cores
}

func readPMU(root fs.FS, name string) (*PMU, error) {
	dir := path.Join(devices, name)
	typ, err := readUint(root, path.Join(dir, "type"))
	if err != nil {
		return nil, err
	}
	p := &PMU{Name: name, Type: perfdata.EventType(typ), Formats: map[string]Format{}}
	formats, err := readFiles(root, path.Join(dir, "format"))
	if err != nil {
		return nil, err
	}
	for term, text := range formats {
		if p.Formats[term], err = ParseFormat(text); err != nil {
			return nil, fmt.Errorf("/%s/format/%s: %w", dir, term, err)
		}
	}
	if p.Aliases, err = readFiles(root, path.Join(dir, "events")); err != nil {
		return nil, err
	}
	if p.Caps, err = readFiles(root, path.Join(dir, "caps")); err != nil {
		return nil, err
	}
	// Core PMUs of hybrid CPUs and of Arm have "cpus", all others "cpumask"
	// (tools/perf/util/pmu.c, pmu_cpumask and is_pmu_core).
	for _, f := range []string{"cpus", "cpumask"} {
		text, err := readText(root, path.Join(dir, f))
		if err != nil {
			continue
		}
		if p.CPUs, err = ParseCPUList(text); err != nil {
			return nil, fmt.Errorf("/%s/%s: %w", dir, f, err)
		}
		p.Core = f == "cpus"
		break
	}
	p.Core = p.Core || name == "cpu"
	return p, nil
}

// readFiles reads a directory of one-line files; it need not exist.
func readFiles(root fs.FS, dir string) (map[string]string, error) {
	entries, err := fs.ReadDir(root, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, e := range entries {
		text, err := readText(root, path.Join(dir, e.Name()))
		if err != nil {
			continue // aliases of uncore PMUs can be unreadable
		}
		files[e.Name()] = text
	}
	return files, nil
}

func readText(root fs.FS, name string) (string, error) {
	b, err := fs.ReadFile(root, name)
	return strings.TrimSpace(string(b)), err
}

func readUint(root fs.FS, name string) (uint64, error) {
	text, err := readText(root, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("/%s: %w", name, err)
	}
	return n, nil
}

// readCPU takes vendor, family and model from the first processor of
// /proc/cpuinfo. Arm has none of these.
func (m *Machine) readCPU() {
	text, _ := readText(m.root, "proc/cpuinfo")
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			if m.Vendor != "" || m.CPUName != "" {
				return // the end of the first processor
			}
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "vendor_id":
			m.Vendor = value
		case "cpu family":
			m.Family, _ = strconv.Atoi(value)
		case "model":
			m.Model, _ = strconv.Atoi(value)
		case "model name":
			m.CPUName = value
		}
	}
}

// maxCPU bounds CPU numbers, so that a list cannot unfold to much.
const maxCPU = 1 << 16

// ParseCPUList reads "0-3,8,10-11", the kernel's and perf's notation.
func ParseCPUList(s string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(strings.TrimSpace(s), ",") {
		if part == "" {
			continue
		}
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || a < 0 || b < a || b >= maxCPU {
			return nil, fmt.Errorf("%q is no list of CPUs", s)
		}
		for c := a; c <= b; c++ {
			cpus = append(cpus, c)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}
