package vpmu

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

const (
	firstPID = 1000          // the program's process; its threads follow. Real ones would differ from run to run.
	timeBase = 1_000_000_000 // ns: when the virtual machine's clock starts
	allRegs  = 0xff0fff      // PERF_REG_X86_*: what perf record --user-regs takes by default
	nearCall = 0x02c4        // BR_INST_RETIRED.NEAR_CALL: event C4, mask 02
)

// recorder writes one recording.
type recorder struct {
	*Recording
	lane    int    // whose wall clock gives the time
	freq    uint64 // mean samples a second
	w       *perfdata.Writer
	file    *os.File
	meta    *perfdata.Meta
	events  []*perfdata.Event // leader first
	names   []string          // what each counts
	sample  perfdata.Sample
	rng     *rand.Rand
	threads []throttleState
	written int
	dropped int // by Lost and Throttle
	losing  int // samples still to lose of a stretch
	lost    uint64
	unsaid  uint64 // lost, and no LOST record yet
}

func tid(index uint32) int32 { return firstPID + int32(index) }

// id of event e of a thread: every thread has instances of its own.
func (r *recorder) id(index uint32, e int) uint64 {
	return 1 + uint64(index)*uint64(len(r.events)) + uint64(e)
}

func newRecorder(rec *Recording, lane int, freq uint64, threads int, program []string, ids []perfdata.BuildID) (*recorder, error) {
	r := &recorder{Recording: rec, lane: lane, freq: freq, rng: rand.New(rand.NewPCG(rec.Seed, 0x10c0)), threads: make([]throttleState, threads)}
	r.names = []string{rec.Event}
	for _, m := range rec.Members {
		if m != rec.Event || rec.Clock == "wall" {
			r.names = append(r.names, m)
		}
	}
	for i, name := range r.names {
		a, label := r.attr(name, i == 0)
		r.events = append(r.events, &perfdata.Event{Attr: a, Index: i, Name: label})
	}
	for i, ev := range r.events {
		ev.Leader = r.events[0]
		for t := range threads {
			ev.IDs = append(ev.IDs, r.id(uint32(t), i))
		}
	}
	r.events[0].Group = r.events
	r.meta = &perfdata.Meta{
		Events: r.events, BuildIDs: ids,
		Hostname: "vpmu", OSRelease: "6.1.0-vpmu", Version: "6.1.0", Arch: "x86_64", CPUsAvailable: 1, CPUsOnline: 1,
		CPUDesc: "Virtual PMU", CPUID: "GenuineIntel-6-143-8", TotalMemKiB: 1 << 20,
		Cmdline:     append([]string{"vpmu"}, program...),
		PMUMappings: map[perfdata.EventType]string{perfdata.TypeRaw: "cpu", perfdata.TypeSoftware: "software"},
		PMUCaps:     []perfdata.PMUCaps{{PMU: "cpu", Caps: map[string]string{"branches": "32", "max_precise": "3"}}},
	}
	if len(r.events) > 1 {
		r.meta.Groups = []perfdata.GroupDesc{{LeaderIndex: 0, NrMembers: uint32(len(r.events))}}
	}
	f, err := os.Create(rec.Output)
	if err != nil {
		return nil, err
	}
	r.file = f
	r.w, err = perfdata.NewFileWriter(f, r.meta, perfdata.WriteOptions{})
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", rec.Output, err)
	}
	return r, nil
}

func (r *recorder) close() error {
	err := r.sayLost(0)
	if e := r.w.Close(); err == nil {
		err = e
	}
	if e := r.file.Close(); err == nil {
		err = e
	}
	return err
}

func (r *recorder) common(typ perfdata.RecordType, misc perfdata.Misc, index uint32, at uint64) perfdata.Common {
	return perfdata.Common{
		Type: typ, Misc: misc, Event: r.events[0], PID: firstPID, TID: tid(index), Time: timeBase + at, ID: r.id(index, 0),
	}
}

// event writes what all recordings share, stamped with this one's clock.
func (r *recorder) event(e any, program string, execs *execMaps) error {
	switch e := e.(type) {
	case threadEvent:
		at := e.at[r.lane]
		if e.index == 0 {
			name := filepath.Base(program)
			return r.w.Write(&perfdata.Comm{
				Common: r.common(perfdata.TypeComm, perfdata.MiscCommExec, 0, at), CommPID: firstPID, CommTID: firstPID, Comm: name[:min(15, len(name))],
			})
		}
		return r.w.Write(&perfdata.Task{
			Common:  r.common(perfdata.TypeFork, 0, e.parent, at),
			TaskPID: firstPID, TaskPPID: firstPID, TaskTID: tid(e.index), TaskPTID: tid(e.parent), TaskTime: timeBase + at,
		})
	case exitEvent:
		at, i := e.at[r.lane], e.totals.Index
		return r.w.Write(&perfdata.Task{
			Common:  r.common(perfdata.TypeExit, 0, i, at),
			TaskPID: firstPID, TaskPPID: 1, TaskTID: tid(i), TaskPTID: 1, TaskTime: timeBase + at,
		})
	case commEvent:
		return r.w.Write(&perfdata.Comm{Common: r.common(perfdata.TypeComm, 0, e.index, e.at[r.lane]), CommPID: firstPID, CommTID: tid(e.index), Comm: e.comm})
	case switchEvent:
		misc := []perfdata.Misc{0, perfdata.MiscSwitchOut, perfdata.MiscSwitchOut | perfdata.MiscSwitchOutPreempt}[min(e.what, 2)]
		return r.w.Write(&perfdata.Switch{
			Common:      r.common(perfdata.TypeSwitch, misc|perfdata.MiscUser, e.index, e.at[r.lane]),
			NextPrevPID: -1, NextPrevTID: -1,
		})
	case mapEvent:
		for _, m := range execs.split(e) {
			if err := r.mmap(m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *recorder) mmap(m mapEvent) error {
	misc := perfdata.MiscUser
	if m.prot&protExec == 0 {
		if r.StackDump == 0 {
			return nil // perf asks for data mappings only to unwind
		}
		misc |= perfdata.MiscMmapData
	}
	return r.w.Write(&perfdata.Mmap{
		Common: r.common(perfdata.TypeMmap2, misc, m.index, m.at[r.lane]), MapPID: firstPID, MapTID: tid(m.index),
		Addr: m.addr, Len: m.len, Pgoff: m.pgoff, Maj: m.maj, Min: m.min, Ino: m.ino, Prot: m.prot, MapFlags: m.flags, Filename: m.path,
	})
}

func (r *recorder) value(name string, s *sampleEvent) uint64 {
	switch name {
	case "near_call":
		return s.calls
	case "instructions":
		return s.insns
	case "branches":
		return s.branches
	}
	return s.cycles
}

func (r *recorder) write(s *sampleEvent) error {
	ok, err := r.keep(s)
	if err != nil || !ok {
		return err
	}
	t, p := &r.threads[s.index], &r.sample
	misc := perfdata.MiscUser
	if r.Skid == 0 && !r.Defer {
		misc |= perfdata.MiscExactIP
	}
	p.Common = r.common(perfdata.TypeSample, misc, s.index, s.time)
	p.IP, p.Period = s.ip, max(1, s.period)
	p.TimeEnabled, p.TimeRunning = s.enabled, s.running
	p.Counters = p.Counters[:0]
	for i, name := range r.names {
		c := perfdata.Counter{ID: r.id(s.index, i), Value: r.value(name, s)}
		if i == 0 {
			c.Value, c.Lost = s.leader-t.gone, r.lost
		}
		p.Counters = append(p.Counters, c)
	}
	p.Callchain = p.Callchain[:0]
	if r.Callchain != "none" {
		p.Callchain = append(p.Callchain, perfdata.ContextUser, s.ip)
		p.Callchain = append(p.Callchain, s.chain...)
	}
	p.Branches, p.BranchHWIndex = p.Branches[:0], ^uint64(0)
	for _, b := range s.stack {
		p.Branches = append(p.Branches, perfdata.Branch{From: b.from, To: b.to, Flags: perfdata.BranchFlags(b.flags)})
	}
	p.RegsUser, p.StackUser, p.StackUserMax = perfdata.Regs{}, nil, 0
	if s.hasRegs {
		p.RegsUser = perfdata.Regs{ABI: 2, Mask: allRegs, Values: s.regs[:]}
		p.StackUser = s.dump[:len(s.dump)&^7]
		p.StackUserMax = uint64(r.StackDump &^ 7)
	}
	if err := r.w.Write(p); err != nil {
		return fmt.Errorf("%s: %w", r.Output, err)
	}
	r.written++
	if r.Throttle > 0 && r.rng.Float64() < r.Throttle {
		t.left, t.at = max(1, r.ThrottleRun), s.leader
		id := r.id(s.index, 0)
		return r.w.Write(&perfdata.Throttle{
			Common: r.common(perfdata.TypeThrottle, 0, s.index, s.time), ThrottleTime: timeBase + s.time, ThrottleID: id, Stream: id,
		})
	}
	return nil
}

// harvest turns the event stream into recordings and truth.
func (c *Config) harvest(log string, specs []laneSpec, count, timeLane []int, res *Result) error {
	width := laneWidth(specs)
	truth := new(truthData)
	if err := res.read(log, width, truth); err != nil {
		return err
	}
	res.Registers = truth.regs
	res.Odd = map[string]uint64{}
	for i, name := range oddNames {
		if name != "" && truth.odd[i] > 0 {
			res.Odd[name] = truth.odd[i]
		}
	}
	execs := new(execMaps)
	if err := c.record(log, width, count, timeLane, truth, execs, res); err != nil {
		return err
	}
	if c.TruthDir == "" {
		return nil
	}
	return writeTruth(c, truth, res)
}

func (c *Config) record(log string, width int, count, timeLane []int, truth *truthData, execs *execMaps, res *Result) (err error) {
	if len(c.Recordings) == 0 {
		return nil
	}
	threads := 0
	for _, t := range res.Threads {
		threads = max(threads, int(t.Index)+1)
	}
	var recs []*recorder
	defer func() {
		for _, r := range recs {
			if e := r.close(); err == nil {
				err = e
			}
		}
	}()
	ids := execs.buildIDs(truth.images)
	for i := range c.Recordings {
		rec := &c.Recordings[i]
		cycles := float64(max(1, res.Total.Cycles[timeLane[i]]))
		freq := uint64(float64(res.Total.Cycles[count[i]])/rec.Period/cycles*1e9 + 0.5)
		r, err := newRecorder(rec, timeLane[i], freq, threads, c.Program[1:], ids)
		if err != nil {
			return err
		}
		recs = append(recs, r)
	}
	f, err := os.Open(log)
	if err != nil {
		return err
	}
	defer f.Close()
	err = newDecoder(f, width).run(sink{
		sample: func(s *sampleEvent) error { return recs[s.sampler].write(s) },
		event: func(e any) error {
			for _, r := range recs {
				if err := r.event(e, c.Program[1], execs); err != nil {
					return err
				}
			}
			return nil
		},
	})
	for i, r := range recs {
		res.Samples = append(res.Samples, r.written)
		res.Lost = append(res.Lost, r.dropped)
		res.Cycles = append(res.Cycles, float64(res.Total.Cycles[timeLane[i]]))
	}
	return err
}
