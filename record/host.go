package record

import (
	"bufio"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// describeHost fills what the recording says about the machine.
func describeHost(meta *perfdata.Meta, m *Machine) {
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		meta.Hostname = unix.ByteSliceToString(uts.Nodename[:])
		meta.OSRelease = unix.ByteSliceToString(uts.Release[:])
		meta.Arch = unix.ByteSliceToString(uts.Machine[:])
	}
	if text, err := readText(m.root, "sys/devices/system/cpu/online"); err == nil {
		cpus, _ := ParseCPUList(text)
		meta.CPUsOnline = uint32(len(cpus))
	}
	if text, err := readText(m.root, "sys/devices/system/cpu/possible"); err == nil {
		cpus, _ := ParseCPUList(text)
		meta.CPUsAvailable = uint32(len(cpus))
	}
	meta.CPUDesc = m.CPUName
	meta.CPUID = m.cpuID()
	meta.TotalMemKiB = totalMemory()
	meta.PMUMappings = map[perfdata.EventType]string{}
	for _, p := range m.PMUs {
		meta.PMUMappings[p.Type] = p.Name
		if p.Core && len(p.Caps) > 0 {
			meta.PMUCaps = append(meta.PMUCaps, perfdata.PMUCaps{PMU: p.Name, Caps: p.Caps})
		}
	}
	if cores := m.Cores(); len(cores) > 1 {
		for _, p := range cores {
			text, _ := readText(m.root, path.Join(devices, p.Name, "cpus"))
			meta.HybridTopology = append(meta.HybridTopology, perfdata.HybridPMU{PMU: p.Name, CPUs: text})
		}
	}
}

// cpuID is what perf writes into the feature CPUID: "GenuineIntel-6-154-3"
// (tools/perf/arch/x86/util/header.c), on Arm the MIDR.
func (m *Machine) cpuID() string {
	if m.Vendor == "" {
		midr, _ := readText(m.root, "sys/devices/system/cpu/cpu0/regs/identification/midr_el1")
		return midr
	}
	stepping := 0
	text, _ := readText(m.root, "proc/cpuinfo")
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		if key, value, _ := strings.Cut(s.Text(), ":"); strings.TrimSpace(key) == "stepping" {
			stepping, _ = strconv.Atoi(strings.TrimSpace(value))
			break
		}
	}
	return m.Vendor + "-" + strconv.Itoa(m.Family) + "-" + strconv.Itoa(m.Model) + "-" + strconv.Itoa(stepping)
}

func totalMemory() uint64 {
	var si unix.Sysinfo_t
	if unix.Sysinfo(&si) != nil {
		return 0
	}
	return uint64(si.Totalram) * uint64(si.Unit) / 1024
}

// clockData ties the clock of the records to the time of day.
func clockData(c *Clock) (resolution uint64, data *perfdata.ClockData) {
	var res, at unix.Timespec
	if unix.ClockGetres(c.ID, &res) != nil || unix.ClockGettime(c.ID, &at) != nil {
		return 0, nil
	}
	return uint64(res.Nano()), &perfdata.ClockData{
		ClockID: uint32(c.ID), WallClockNS: uint64(time.Now().UnixNano()), ClockIDTimeNS: uint64(at.Nano()),
	}
}

// clocks are the names perf record -k knows (tools/perf/util/clockid.c).
var clocks = map[string]int32{
	"monotonic": unix.CLOCK_MONOTONIC, "mono": unix.CLOCK_MONOTONIC,
	"monotonic_raw": unix.CLOCK_MONOTONIC_RAW, "raw": unix.CLOCK_MONOTONIC_RAW,
	"realtime": unix.CLOCK_REALTIME, "real": unix.CLOCK_REALTIME,
	"boottime": unix.CLOCK_BOOTTIME, "boot": unix.CLOCK_BOOTTIME,
	"tai": unix.CLOCK_TAI,
}

// ParseClock reads the argument of -k: a name, with or without CLOCK_, or a
// number.
func ParseClock(s string) (*Clock, bool) {
	name := strings.TrimPrefix(strings.ToLower(s), "clock_")
	if id, ok := clocks[name]; ok {
		return &Clock{name, id}, true
	}
	n, err := strconv.ParseInt(s, 10, 32)
	return &Clock{s, int32(n)}, err == nil
}
