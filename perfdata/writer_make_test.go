package perfdata

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

const (
	mapStart = 0x400000
	mapLen   = 0x100000
	mapPgoff = 0x1000
)

// sampleMeta describes a group of cycles and instructions, read with every
// sample, with callchains, branch stacks, registers and stack dumps, and a
// context-switch event of another sample_type beside it.
func sampleMeta() *Meta {
	cycles := &Event{Name: "cycles:u", Index: 0, IDs: []uint64{11, 12}, Attr: Attr{
		Type: TypeHardware, Config: HWCPUCycles, SamplePeriod: 100000,
		SampleType: FieldIdentifier | FieldIP | FieldTID | FieldTime | FieldAddr | FieldCPU | FieldPeriod | FieldRead |
			FieldCallchain | FieldBranchStack | FieldRegsUser | FieldStackUser | FieldWeight,
		ReadFormat: ReadTotalTimeEnabled | ReadTotalTimeRunning | ReadID | ReadGroup,
		Flags: FlagInherit | FlagExcludeKernel | FlagExcludeHV | FlagMmap | FlagMmap2 | FlagComm | FlagCommExec |
			FlagTask | FlagSampleIDAll | FlagContextSwitch,
		BranchSampleType: BranchUser | BranchAnyCall | BranchHWIndex,
		SampleRegsUser:   1<<0 | 1<<6 | 1<<7 | 1<<8, // ax, bp, sp, ip
		SampleStackUser:  64,
	}}
	instructions := &Event{Name: "instructions:u", Index: 1, IDs: []uint64{21, 22}, Attr: cycles.Attr}
	instructions.Config, instructions.SamplePeriod = HWInstructions, 0
	switches := &Event{Name: "context-switches", Index: 2, IDs: []uint64{31}, Attr: Attr{
		Type: TypeSoftware, Config: SWContextSwitches, SamplePeriod: 1,
		SampleType: FieldIdentifier | FieldIP | FieldTID | FieldTime | FieldPeriod, Flags: FlagSampleIDAll,
		ReadFormat: cycles.ReadFormat,
	}}
	return &Meta{
		Events:   []*Event{cycles, instructions, switches},
		Hostname: "testhost", OSRelease: "6.1.0-test", Version: "6.1.test", Arch: "x86_64",
		CPUsAvailable: 8, CPUsOnline: 6, CPUDesc: "Test CPU @ 1 GHz", CPUID: "TestVendor,6,1,2", TotalMemKiB: 123456,
		Cmdline:     []string{"/usr/bin/perfcorrect", "record", "./a program"},
		PMUMappings: map[EventType]string{4: "cpu", 1: "software", 9: "uprobe"},
		Groups:      []GroupDesc{{LeaderIndex: 0, NrMembers: 2}},
		BuildIDs:    []BuildID{{PID: -1, Misc: MiscUser, ID: bytes.Repeat([]byte{0xab}, 20), Filename: "/test/prog"}},
		ClockID:     1,
		ClockData:   &ClockData{ClockID: 1, WallClockNS: 1_600_000_000_123_456_789, ClockIDTimeNS: 5_000_000_000},
		PMUCaps:     []PMUCaps{{PMU: "cpu", Caps: map[string]string{"branches": "32", "pmu_name": "test"}}},
	}
}

// sampleRecords are n samples of two threads on two CPUs and what surrounds
// them, in time order.
func sampleRecords(m *Meta, n int) []Record {
	cycles, switches := m.Events[0], m.Events[2]
	common := func(ev *Event, time uint64) Common {
		return Common{Event: ev, PID: 100, TID: 100, Time: time, ID: ev.IDs[0]}
	}
	recs := []Record{
		&Comm{Common: common(cycles, 1_000), CommPID: 100, CommTID: 100, Comm: "leader"},
		&Mmap{Common: common(cycles, 1_001), MapPID: 100, MapTID: 100, Addr: mapStart, Len: mapLen, Pgoff: mapPgoff,
			Maj: 8, Min: 1, Ino: 77, InoGen: 3, Prot: 5, MapFlags: 2, Filename: "/test/prog"},
		&Task{Common: Common{Type: TypeFork, Event: cycles, PID: 100, TID: 100, Time: 1_002, ID: 11}, TaskPID: 100, TaskPPID: 100, TaskTID: 101, TaskPTID: 100, TaskTime: 1_002},
		&Comm{Common: Common{Event: cycles, PID: 100, TID: 101, Time: 1_003, ID: 12}, CommPID: 100, CommTID: 101, Comm: "worker"},
	}
	sums := [2][2]uint64{}
	for i := range n {
		cpu := i % 2
		sums[cpu][0] += 100_000 + uint64(i)
		sums[cpu][1] += 70_000 + 3*uint64(i)
		s := &Sample{
			Common: Common{Event: cycles, PID: 100, TID: int32(100 + cpu), Time: 10_000 + 1000*uint64(i), CPU: uint32(cpu), ID: uint64(11 + cpu)},
			IP:     mapStart + uint64(i)*16, Addr: 0xdead0000 + uint64(i), Period: 100_000, Weight: uint64(i),
			Counters: []Counter{
				{ID: uint64(11 + cpu), Value: sums[cpu][0]},
				{ID: uint64(21 + cpu), Value: sums[cpu][1]},
			},
			TimeEnabled: 1000 * uint64(i+1), TimeRunning: 1000 * uint64(i+1),
			BranchHWIndex: ^uint64(0),
			RegsUser:      Regs{ABI: 2, Mask: cycles.SampleRegsUser, Values: []uint64{uint64(i), 0x7ff0, 0x7f00 + uint64(i), mapStart + uint64(i)*16}},
			StackUser:     bytes.Repeat([]byte{byte(i)}, 8*(i%9)), StackUserMax: 64,
		}
		s.Callchain = append(s.Callchain, ContextUser, s.IP)
		for j := range i % 6 {
			s.Callchain = append(s.Callchain, mapStart+0x8000+uint64(j*8+i))
		}
		for j := range i % 33 {
			s.Branches = append(s.Branches, Branch{From: mapStart + uint64(j*64+i), To: mapStart + 0x10000 + uint64(j), Flags: BranchFlags(2 | (j+1)<<4 | 4<<20)})
		}
		recs = append(recs, s)
		if i%10 == 9 {
			recs = append(recs, &Sample{Common: Common{Event: switches, PID: 100, TID: 101, Time: s.Time + 1, ID: 31}, IP: mapStart + 5, Period: 1},
				&Switch{Common: Common{Type: TypeSwitch, Misc: MiscSwitchOut | MiscUser, Event: cycles, PID: 100, TID: 101, Time: s.Time + 2, ID: 12, CPU: 1}},
				&Other{Common: Common{Type: TypeFinishedRound}})
		}
	}
	return append(recs, &Task{Common: Common{Type: TypeExit, Event: cycles, PID: 100, TID: 100, Time: 1 << 40, ID: 11}, TaskPID: 100, TaskPPID: 1, TaskTID: 100, TaskPTID: 1, TaskTime: 1 << 40})
}

func writeAll(t *testing.T, w *Writer, recs []Record) {
	t.Helper()
	for _, r := range recs {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, m *Meta, recs []Record, opts WriteOptions) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "perf.data")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := NewFileWriter(f, m, opts)
	if err != nil {
		t.Fatal(err)
	}
	writeAll(t, w, recs)
	return path
}

func writePipe(t *testing.T, m *Meta, recs []Record, opts WriteOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewPipeWriter(&b, m, opts)
	if err != nil {
		t.Fatal(err)
	}
	writeAll(t, w, recs)
	return b.Bytes()
}
