package perfdata

import (
	"fmt"
	"math/bits"
)

// appendSample appends the body of PERF_RECORD_SAMPLE: the fields of a's
// sample_type in the order of perf_output_sample (kernel/events/core.c).
func appendSample(b []byte, s *Sample, a *Attr) ([]byte, error) {
	// Checked once and roughly before anything is copied, exactly when the
	// record is complete.
	variable := 8*len(s.Callchain) + 24*len(s.Branches) + len(s.Raw) + len(s.StackUser) + len(s.Aux) +
		24*len(s.Counters) + 8*len(s.RegsUser.Values) + 8*len(s.RegsIntr.Values)
	if variable > maxRecord {
		return b, tooLarge(variable)
	}
	f := a.SampleType
	b = appendSampleHead(b, s, f)
	var err error
	if f&FieldRead != 0 {
		if b, err = appendRead(b, a.ReadFormat, s.Counters, s.TimeEnabled, s.TimeRunning); err != nil {
			return b, err
		}
	}
	if f&FieldCallchain != 0 {
		if b, err = appendChain(b, s.Callchain); err != nil {
			return b, err
		}
	}
	if f&FieldRaw != 0 {
		b = appendRaw(b, s.Raw)
	}
	if f&FieldBranchStack != 0 {
		if b, err = appendBranches(b, s, a.BranchSampleType); err != nil {
			return b, err
		}
	}
	if f&FieldRegsUser != 0 {
		if b, err = appendRegs(b, &s.RegsUser, a.SampleRegsUser); err != nil {
			return b, fmt.Errorf("user %w", err)
		}
	}
	if f&FieldStackUser != 0 {
		if b, err = appendStack(b, s); err != nil {
			return b, err
		}
	}
	if f >= FieldWeight {
		return appendSampleTail(b, s, a)
	}
	return b, nil
}

// appendSampleHead appends IDENTIFIER to PERIOD.
func appendSampleHead(b []byte, s *Sample, f SampleFormat) []byte {
	if f&FieldIdentifier != 0 {
		b = le.AppendUint64(b, s.ID)
	}
	if f&FieldIP != 0 {
		b = le.AppendUint64(b, s.IP)
	}
	if f&FieldTID != 0 {
		b = appendPair(b, s.PID, s.TID)
	}
	if f&FieldTime != 0 {
		b = le.AppendUint64(b, s.Time)
	}
	if f&FieldAddr != 0 {
		b = le.AppendUint64(b, s.Addr)
	}
	if f&FieldID != 0 {
		b = le.AppendUint64(b, s.ID)
	}
	if f&FieldStreamID != 0 {
		b = le.AppendUint64(b, s.StreamID)
	}
	if f&FieldCPU != 0 {
		b = le.AppendUint64(b, uint64(s.CPU))
	}
	if f&FieldPeriod != 0 {
		b = le.AppendUint64(b, s.Period)
	}
	return b
}

// appendSampleTail appends WEIGHT to AUX, which few recordings have.
func appendSampleTail(b []byte, s *Sample, a *Attr) ([]byte, error) {
	f := a.SampleType
	if f&(FieldWeight|FieldWeightStruct) != 0 {
		b = le.AppendUint64(b, s.Weight)
	}
	if f&FieldDataSrc != 0 {
		b = le.AppendUint64(b, s.DataSrc)
	}
	if f&FieldTransaction != 0 {
		b = le.AppendUint64(b, s.Transaction)
	}
	if f&FieldRegsIntr != 0 {
		var err error
		if b, err = appendRegs(b, &s.RegsIntr, a.SampleRegsIntr); err != nil {
			return b, fmt.Errorf("interrupt %w", err)
		}
	}
	if f&FieldPhysAddr != 0 {
		b = le.AppendUint64(b, s.PhysAddr)
	}
	if f&FieldCgroup != 0 {
		b = le.AppendUint64(b, s.Cgroup)
	}
	if f&FieldDataPageSize != 0 {
		b = le.AppendUint64(b, s.DataPageSize)
	}
	if f&FieldCodePageSize != 0 {
		b = le.AppendUint64(b, s.CodePageSize)
	}
	if f&FieldAux != 0 {
		pad := -len(s.Aux) & 7
		b = le.AppendUint64(b, uint64(len(s.Aux)+pad))
		b = append(b, s.Aux...)
		b = appendZeros(b, pad)
	}
	return b, nil
}

// appendRead appends struct read_format, for PERF_SAMPLE_READ and for
// PERF_RECORD_READ.
func appendRead(b []byte, f ReadFormat, counters []Counter, enabled, running uint64) ([]byte, error) {
	if f&ReadGroup == 0 {
		if len(counters) != 1 {
			return b, fmt.Errorf("%d counters, a read_format without GROUP has exactly one", len(counters))
		}
		b = le.AppendUint64(b, counters[0].Value)
		b = appendReadTimes(b, f, enabled, running)
		return appendCounterTail(b, f, &counters[0]), nil
	}
	if n := 24 * len(counters); n > maxRecord {
		return b, tooLarge(n)
	}
	b = le.AppendUint64(b, uint64(len(counters)))
	b = appendReadTimes(b, f, enabled, running)
	for i := range counters {
		b = le.AppendUint64(b, counters[i].Value)
		b = appendCounterTail(b, f, &counters[i])
	}
	return b, nil
}

func appendReadTimes(b []byte, f ReadFormat, enabled, running uint64) []byte {
	if f&ReadTotalTimeEnabled != 0 {
		b = le.AppendUint64(b, enabled)
	}
	if f&ReadTotalTimeRunning != 0 {
		b = le.AppendUint64(b, running)
	}
	return b
}

func appendCounterTail(b []byte, f ReadFormat, c *Counter) []byte {
	if f&ReadID != 0 {
		b = le.AppendUint64(b, c.ID)
	}
	if f&ReadLost != 0 {
		b = le.AppendUint64(b, c.Lost)
	}
	return b
}

func appendChain(b []byte, chain []uint64) ([]byte, error) {
	if n := 8 * len(chain); n > maxRecord {
		return b, tooLarge(n)
	}
	b = le.AppendUint64(b, uint64(len(chain)))
	return appendWords(b, chain), nil
}

// appendRaw appends the raw data with its size. As in the kernel the size
// includes the padding that brings size word and data to a multiple of 8
// (perf_prepare_sample), so a reader sees up to 7 zero bytes more.
func appendRaw(b, raw []byte) []byte {
	pad := -(4 + len(raw)) & 7
	b = le.AppendUint32(b, uint32(len(raw)+pad))
	b = append(b, raw...)
	return appendZeros(b, pad)
}

func appendBranches(b []byte, s *Sample, f BranchSample) ([]byte, error) {
	b = le.AppendUint64(b, uint64(len(s.Branches)))
	if f&BranchHWIndex != 0 {
		b = le.AppendUint64(b, s.BranchHWIndex)
	}
	start := len(b)
	b = grow(b, 24*len(s.Branches))
	d := b[start:]
	for i := range s.Branches {
		br := &s.Branches[i]
		e := d[:24]
		le.PutUint64(e[0:], br.From)
		le.PutUint64(e[8:], br.To)
		le.PutUint64(e[16:], uint64(br.Flags))
		d = d[24:]
	}
	if f&BranchCounters == 0 {
		return b, nil
	}
	if len(s.BranchCounters) != len(s.Branches) {
		return b, fmt.Errorf("%d branch counters for %d branches", len(s.BranchCounters), len(s.Branches))
	}
	return appendWords(b, s.BranchCounters), nil
}

// appendRegs appends a register dump; the words must be as many as the attr's
// mask has bits, because a reader takes their number from there.
func appendRegs(b []byte, r *Regs, mask uint64) ([]byte, error) {
	b = le.AppendUint64(b, r.ABI)
	if r.ABI == 0 {
		return b, nil
	}
	if n := bits.OnesCount64(mask); len(r.Values) != n {
		return b, fmt.Errorf("registers: %d values, the attr's mask %#x has %d", len(r.Values), mask, n)
	}
	return appendWords(b, r.Values), nil
}

// appendStack appends the user stack dump: the room reserved, that many
// bytes, and how many of them were really dumped. A dump without room has
// neither bytes nor the last word (perf_output_sample_ustack).
func appendStack(b []byte, s *Sample) ([]byte, error) {
	room := s.StackUserMax
	if room == 0 {
		room = uint64(len(s.StackUser)+7) &^ 7
	}
	switch {
	case room > maxRecord:
		return b, tooLarge(int(min(room, 1<<31)))
	case room&7 != 0 || room < uint64(len(s.StackUser)):
		return b, fmt.Errorf("a stack dump of %d bytes in a room of %d; the room must be a multiple of 8 and hold it", len(s.StackUser), room)
	}
	b = le.AppendUint64(b, room)
	if room == 0 {
		return b, nil
	}
	b = append(b, s.StackUser...)
	b = appendZeros(b, int(room)-len(s.StackUser))
	return le.AppendUint64(b, uint64(len(s.StackUser))), nil
}
