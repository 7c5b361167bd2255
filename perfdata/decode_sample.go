package perfdata

import (
	"math/bits"
	"slices"
)

// decodeSample fills d.sample; false if the record is too short for what it
// says it holds.
func (d *decoder) decodeSample(ev *Event, h rawHeader, raw []byte, offset int64) bool {
	c := cursor{b: raw[headerSize:], big: d.big}
	hwIndex := ev.BranchSampleType&BranchHWIndex != 0
	n := d.fields(&c, ev, h, offset, hwIndex)
	if c.bad && hwIndex && n == 0 {
		// perf_output_sample wrote just the number 0, without hw_idx, where
		// the hardware had no branch stack at all.
		c = cursor{b: raw[headerSize:], big: d.big}
		d.fields(&c, ev, h, offset, false)
	}
	return !c.bad
}

// fields reads the fields in the order of perf_output_sample
// (kernel/events/core.c). It returns the length of the branch stack, -1
// without one.
func (d *decoder) fields(c *cursor, ev *Event, h rawHeader, offset int64, hwIndex bool) int {
	s := &d.sample
	st := ev.SampleType
	*s = Sample{
		Common:   Common{Type: TypeSample, Misc: h.misc, Offset: offset, Event: ev, Has: st},
		Counters: s.Counters[:0], Callchain: s.Callchain[:0],
		Branches: s.Branches[:0], BranchCounters: s.BranchCounters[:0],
		RegsUser: Regs{Values: s.RegsUser.Values[:0]}, RegsIntr: Regs{Values: s.RegsIntr.Values[:0]},
	}
	if st&FieldIdentifier != 0 {
		s.ID = c.u64()
	}
	if st&FieldIP != 0 {
		s.IP = c.u64()
	}
	if st&FieldTID != 0 {
		s.PID, s.TID = c.i32(), c.i32()
	}
	if st&FieldTime != 0 {
		s.Time = c.u64()
	}
	if st&FieldAddr != 0 {
		s.Addr = c.u64()
	}
	if st&FieldID != 0 {
		s.ID = c.u64()
	}
	if st&FieldStreamID != 0 {
		s.StreamID = c.u64()
	}
	if st&FieldCPU != 0 {
		s.CPU = c.u32()
		c.u32()
	}
	if st&FieldPeriod != 0 {
		s.Period = c.u64()
	} else if ev.Flags&FlagFreq == 0 {
		s.Period = ev.SamplePeriod
	}
	if st&FieldRead != 0 {
		s.Counters = c.counters(s.Counters, ev.ReadFormat, &s.TimeEnabled, &s.TimeRunning)
	}
	if st&FieldCallchain != 0 {
		s.Callchain = c.words(s.Callchain, c.u64())
	}
	branches := -1
	if st>>10 == 0 {
		return branches
	}
	if st&FieldRaw != 0 {
		s.Raw = c.take(uint64(c.u32()))
	}
	if st&FieldBranchStack != 0 {
		d.branchStack(c, ev, hwIndex)
		branches = len(s.Branches)
	}
	d.lateFields(c, ev)
	return branches
}

func (d *decoder) branchStack(c *cursor, ev *Event, hwIndex bool) {
	s := &d.sample
	n := c.u64()
	s.BranchHWIndex = ^uint64(0)
	if hwIndex {
		s.BranchHWIndex = c.u64()
	}
	if n > uint64(len(c.b))/24 {
		c.fail()
		return
	}
	for range n {
		s.Branches = append(s.Branches, Branch{c.u64(), c.u64(), branchFlags(c.u64(), c.big)})
	}
	if ev.BranchSampleType&BranchCounters != 0 {
		s.BranchCounters = c.words(s.BranchCounters, n)
	}
}

func (d *decoder) lateFields(c *cursor, ev *Event) {
	s := &d.sample
	st := ev.SampleType
	if st&FieldRegsUser != 0 {
		c.regs(&s.RegsUser, ev.SampleRegsUser)
	}
	if st&FieldStackUser != 0 {
		if s.StackUserMax = c.u64(); s.StackUserMax != 0 {
			s.StackUser = c.take(s.StackUserMax)
			if n := c.u64(); n <= uint64(len(s.StackUser)) {
				s.StackUser = s.StackUser[:n]
			} else {
				c.fail()
			}
		}
	}
	if st&(FieldWeight|FieldWeightStruct) != 0 {
		s.Weight = c.u64()
	}
	if st&FieldDataSrc != 0 {
		s.DataSrc = c.u64()
	}
	if st&FieldTransaction != 0 {
		s.Transaction = c.u64()
	}
	if st&FieldRegsIntr != 0 {
		c.regs(&s.RegsIntr, ev.SampleRegsIntr)
	}
	if st&FieldPhysAddr != 0 {
		s.PhysAddr = c.u64()
	}
	if st&FieldCgroup != 0 {
		s.Cgroup = c.u64()
	}
	if st&FieldDataPageSize != 0 {
		s.DataPageSize = c.u64()
	}
	if st&FieldCodePageSize != 0 {
		s.CodePageSize = c.u64()
	}
	if st&FieldAux != 0 {
		s.Aux = c.take(c.u64())
	}
}

func (c *cursor) regs(r *Regs, mask uint64) {
	if r.ABI = c.u64(); r.ABI == 0 {
		return
	}
	r.Mask = mask
	r.Values = c.words(r.Values, uint64(bits.OnesCount64(mask)))
}

// Clone returns a copy that shares no memory with s or the reader.
func (s *Sample) Clone() *Sample {
	c := *s
	c.Counters = slices.Clone(s.Counters)
	c.Callchain = slices.Clone(s.Callchain)
	c.Raw = slices.Clone(s.Raw)
	c.Branches = slices.Clone(s.Branches)
	c.BranchCounters = slices.Clone(s.BranchCounters)
	c.RegsUser.Values = slices.Clone(s.RegsUser.Values)
	c.StackUser = slices.Clone(s.StackUser)
	c.RegsIntr.Values = slices.Clone(s.RegsIntr.Values)
	c.Aux = slices.Clone(s.Aux)
	return &c
}
