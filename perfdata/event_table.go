package perfdata

import "slices"

// An eventTable finds the event a raw record belongs to, and the places of
// time and id in it. The goroutine that sorts and the one that decodes have a
// table each, because in pipe mode events are still added while both work.
type eventTable struct {
	entries []*tableEntry
	byID    map[uint64]*tableEntry
	big     bool

	// Distinct places of the id over all entries: in samples from the start,
	// in other records from the end. perf itself demands that there is just
	// one (evlist__valid_sample_type); simpleperf and perf inject do not.
	headIDs, tailIDs []int

	lastID uint64 // the entry found last, samples come in streaks
	last   *tableEntry
}

// tableEntry is an event with the places of its fields in bytes. 0 means the
// field is not recorded.
type tableEntry struct {
	ev       *Event
	headTime int // in a sample, from the start of the record
	headID   int
	tailSize int // sample_id at the end of other records
	tailTime int // from the end of the record
	tailID   int
}

func newEventTable(big bool) *eventTable {
	return &eventTable{byID: make(map[uint64]*tableEntry), big: big}
}

func (t *eventTable) add(ev *Event) {
	e := &tableEntry{ev: ev}
	e.layout()
	t.entries = append(t.entries, e)
	if e.headID != 0 && !slices.Contains(t.headIDs, e.headID) {
		t.headIDs = append(t.headIDs, e.headID)
	}
	if e.tailID != 0 && !slices.Contains(t.tailIDs, e.tailID) {
		t.tailIDs = append(t.tailIDs, e.tailID)
	}
	for _, id := range ev.IDs {
		t.byID[id] = e
	}
	t.last = nil
}

// declare makes id one of the event's.
func (t *eventTable) declare(id uint64, index int) {
	if index < len(t.entries) {
		t.byID[id] = t.entries[index]
	}
}

// layout follows the order of fields in perf_output_sample and
// __perf_event__output_id_sample (kernel/events/core.c).
func (e *tableEntry) layout() {
	st := e.ev.SampleType
	at := 8
	field := func(f SampleFormat) int {
		if st&f == 0 {
			return 0
		}
		at += 8
		return at - 8
	}
	e.headID = field(FieldIdentifier)
	field(FieldIP)
	field(FieldTID)
	e.headTime = field(FieldTime)
	field(FieldAddr)
	if id := field(FieldID); e.headID == 0 {
		e.headID = id
	}

	if e.ev.Flags&FlagSampleIDAll == 0 {
		return
	}
	back := func(f SampleFormat) int {
		if st&f == 0 {
			return 0
		}
		e.tailSize += 8
		return e.tailSize
	}
	e.tailID = back(FieldIdentifier)
	back(FieldCPU)
	back(FieldStreamID)
	if id := back(FieldID); e.tailID == 0 {
		e.tailID = id
	}
	e.tailTime = back(FieldTime)
	back(FieldTID)
}

// find returns the entry of a raw record of the kernel, or nil if the id in
// it was never declared. known is false in that case; an entry may still be
// given for its layout when all events agree on it.
func (t *eventTable) find(raw []byte, typ RecordType) (e *tableEntry, known bool) {
	switch len(t.entries) {
	case 0:
		return nil, false
	case 1:
		return t.entries[0], true
	}
	if typ == TypeSample {
		return t.lookup(raw, t.headIDs, false)
	}
	return t.lookup(raw, t.tailIDs, true)
}

func (t *eventTable) lookup(raw []byte, places []int, tail bool) (*tableEntry, bool) {
	if len(places) == 0 || len(t.byID) == 0 {
		return t.entries[0], true
	}
	zero := false
	for _, p := range places {
		at := p
		if tail {
			at = len(raw) - p
		}
		if at < 8 || at+8 > len(raw) {
			continue
		}
		id := load64(raw[at:], t.big)
		e := t.last
		if e == nil || id != t.lastID {
			e = t.byID[id]
		}
		if e != nil && (tail && e.tailID == p || !tail && e.headID == p) {
			t.lastID, t.last = id, e
			return e, true
		}
		zero = zero || id == 0
	}
	// Records perf synthesises itself carry id 0 and mean the first event
	// (evlist__event2evsel, tools/perf/util/evlist.c).
	if zero {
		return t.entries[0], true
	}
	if len(places) == 1 {
		return t.entries[0], false
	}
	return nil, false
}

// timeOf returns the time of a raw record, and false if it has none. perf
// takes 0 and ^0 for none too (ordered_events__queue).
func (t *eventTable) timeOf(raw []byte, typ RecordType) (uint64, bool) {
	if typ >= TypeHeaderAttr {
		return 0, false
	}
	e, _ := t.find(raw, typ)
	if e == nil {
		return 0, false
	}
	at := e.headTime
	if typ != TypeSample {
		if e.tailTime == 0 {
			return 0, false
		}
		at = len(raw) - e.tailTime
	}
	if at < 8 || at+8 > len(raw) {
		return 0, false
	}
	v := load64(raw[at:], t.big)
	return v, v != 0 && v != ^uint64(0)
}
