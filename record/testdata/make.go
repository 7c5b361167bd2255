//go:build ignore

// make.go writes the machines of this folder.
package main

import (
	"log"
	"os"
	"path/filepath"
	"strings"
)

const x86Format = `event config:0-7
umask config:8-15
edge config:18
inv config:23
cmask config:24-31`

const intelFormat = x86Format + `
pc config:19
any config:21
ldlat config1:0-15
offcore_rsp config1:0-63
frontend config1:0-23`

const amdFormat = `event config:0-7,32-35
umask config:8-15
edge config:18
inv config:23
cmask config:24-31`

const intelEvents = `cpu-cycles event=0x3c
instructions event=0xc0
branch-instructions event=0xc4
branch-misses event=0xc5
cache-misses event=0x2e,umask=0x41
mem-loads event=0xcd,umask=0x1,ldlat=3`

const amdEvents = `cpu-cycles event=0x76
instructions event=0xc0
branch-instructions event=0xc2
branch-misses event=0xc3`

// cpuinfo: vendor, family, model, name.
func cpuinfo(f ...string) string {
	if len(f) == 0 {
		return "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n\n"
	}
	one := "processor\t: 0\nvendor_id\t: " + f[0] + "\ncpu family\t: " + f[1] + "\nmodel\t\t: " + f[2] + "\nmodel name\t: " + f[3] + "\nstepping\t: 4\n\n"
	return one + strings.Replace(one, "processor\t: 0", "processor\t: 1", 1)
}

type pmu struct {
	name, typ, cpus, cpumask, format, events, caps string
}

func main() {
	software := []pmu{
		{name: "software", typ: "1"}, {name: "tracepoint", typ: "2"}, {name: "breakpoint", typ: "5"},
		{name: "uprobe", typ: "8", format: "retprobe config:0\nref_ctr_offset config:32-63"},
	}
	machine("none", cpuinfo("AuthenticAMD", "25", "1", "AMD EPYC"), "0-1", software...)
	lbr := "branches 32\nmax_precise 3\npmu_name skylake"
	machine("intel-lbr", cpuinfo("GenuineIntel", "6", "85", "Intel(R) Xeon(R) Gold 6130"), "0-31", append(software,
		pmu{name: "cpu", typ: "4", format: intelFormat, events: intelEvents, caps: lbr},
		pmu{name: "uncore_imc_0", typ: "14", cpumask: "0,16", format: x86Format, events: "clockticks event=0xff"})...)
	machine("intel-hybrid", cpuinfo("GenuineIntel", "6", "151", "12th Gen Intel(R) Core(TM) i9-12900K"), "0-23", append(software,
		pmu{name: "cpu_core", typ: "4", cpus: "0-15", format: intelFormat, events: intelEvents, caps: "branches 32\nmax_precise 3\npmu_name alderlake_hybrid"},
		pmu{name: "cpu_atom", typ: "10", cpus: "16-23", format: intelFormat, events: intelEvents, caps: "branches 32\nmax_precise 3\npmu_name alderlake_hybrid"})...)
	machine("intel-atom", cpuinfo("GenuineIntel", "6", "190", "Intel(R) N100"), "0-3", append(software,
		pmu{name: "cpu", typ: "4", format: intelFormat, events: intelEvents, caps: "branches 32\nmax_precise 3\npmu_name gracemont"})...)
	machine("intel-vm", cpuinfo("GenuineIntel", "6", "85", "Intel Xeon Processor (Skylake)"), "0-3", append(software,
		pmu{name: "cpu", typ: "4", format: intelFormat, events: intelEvents, caps: "max_precise 0\npmu_name skylake"})...)
	machine("amd-zen3", cpuinfo("AuthenticAMD", "25", "1", "AMD EPYC 7763 64-Core Processor"), "0-7", append(software,
		pmu{name: "cpu", typ: "4", format: amdFormat, events: amdEvents + "\nbranch-brs event=0xc4", caps: "branches 16"})...)
	machine("amd-zen4", cpuinfo("AuthenticAMD", "25", "17", "AMD EPYC 9354 32-Core Processor"), "0-7", append(software,
		pmu{name: "cpu", typ: "4", format: amdFormat, events: amdEvents, caps: "branches 16"},
		pmu{name: "ibs_op", typ: "9", format: "cnt_ctl config:19"})...)
	machine("amd-zen5", cpuinfo("AuthenticAMD", "26", "2", "AMD EPYC 9755 128-Core Processor"), "0-7", append(software,
		pmu{name: "cpu", typ: "4", format: amdFormat, events: amdEvents, caps: "branches 16"},
		pmu{name: "ibs_op", typ: "11", format: "cnt_ctl config:19"})...)
	machine("arm", cpuinfo(), "0-3", append(software,
		pmu{name: "armv8_pmuv3_0", typ: "8", cpus: "0-3", format: "event config:0-15\nlong config1:0",
			events: "cpu_cycles event=0x0011\nbr_return_retired event=0x000e\ninst_retired event=0x0008", caps: "branches 64"})...)
}

func machine(name, cpuinfo, online string, pmus ...pmu) {
	if err := os.RemoveAll(name); err != nil {
		log.Fatal(err)
	}
	write(name+"/proc/cpuinfo", cpuinfo)
	write(name+"/sys/devices/system/cpu/online", online+"\n")
	for _, p := range pmus {
		dir := name + "/sys/bus/event_source/devices/" + p.name
		write(dir+"/type", p.typ+"\n")
		if p.cpus != "" {
			write(dir+"/cpus", p.cpus+"\n")
		}
		if p.cpumask != "" {
			write(dir+"/cpumask", p.cpumask+"\n")
		}
		for sub, text := range map[string]string{"format": p.format, "events": p.events, "caps": p.caps} {
			for line := range strings.Lines(text) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				write(filepath.Join(dir, sub, key), value+"\n")
			}
		}
	}
}

func write(path, text string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}
}
