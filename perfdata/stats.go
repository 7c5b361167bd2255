package perfdata

import (
	"fmt"
	"maps"
)

// Stats counts what was read. Nothing is left out silently: what Records did
// not deliver is counted here.
type Stats struct {
	Records     map[RecordType]int64 // all records met, by type; those inside COMPRESSED too
	Unknown     int64                // of a type this package does not know; delivered as *Other
	Malformed   int64                // contents contradict the size; not delivered
	UnknownID   int64                // samples whose event id was never declared; not delivered
	OutOfOrder  int64                // came later than FINISHED_ROUND allows: delivered after younger ones
	Lost        int64                // records missing by PERF_RECORD_LOST, sum of Count
	LostSamples int64                // samples missing by PERF_RECORD_LOST_SAMPLES, sum of Count
	Damage      *Damage              // why reading ended early, nil if it did not
	Warnings    []string             // parts of the header that could not be read
}

// Damage says where a recording that is cut or corrupt ceased to be readable.
// Everything before was delivered.
type Damage struct {
	Path   string // file
	Offset int64  // bytes from its start, or from the start of the decompressed stream
	What   string
	Unread int64 // bytes not read, -1 if unknown (a pipe)
}

func (d *Damage) String() string {
	s := fmt.Sprintf("%s: offset %d: %s", d.Path, d.Offset, d.What)
	if d.Unread > 0 {
		s += fmt.Sprintf(", %d bytes not read", d.Unread)
	}
	return s
}

// counter counts records by type; types beyond those known are few.
type counter struct {
	known [TypeMax]int64
	other map[RecordType]int64
}

func (c *counter) add(t RecordType) {
	if t < TypeMax {
		c.known[t]++
		return
	}
	if c.other == nil {
		c.other = make(map[RecordType]int64)
	}
	if len(c.other) >= maxOtherTypes {
		if _, ok := c.other[t]; !ok {
			t = ^RecordType(0) // garbage: no need to tell more of them apart
		}
	}
	c.other[t]++
}

const maxOtherTypes = 4096

func (c *counter) addTo(m map[RecordType]int64) {
	for t, n := range c.known {
		if n != 0 {
			m[RecordType(t)] += n
		}
	}
	for t, n := range c.other {
		m[t] += n
	}
}

// Known reports whether the type is one this package knows.
func (t RecordType) Known() bool {
	return t >= TypeMmap && t <= TypeCallchainDeferred || t >= TypeHeaderAttr && t < TypeMax
}

// Stats returns the counts so far. It is not safe to call concurrently with
// the loop over Records.
func (r *Reader) Stats() *Stats {
	s := r.stats
	s.Records = make(map[RecordType]int64)
	r.counts.addTo(s.Records)
	maps.DeleteFunc(s.Records, func(_ RecordType, n int64) bool { return n == 0 })
	for t, n := range r.framed {
		if n != 0 {
			s.Records[RecordType(t)] += n
		}
	}
	s.Unknown = 0
	for t, n := range s.Records {
		if !t.Known() {
			s.Unknown += n
		}
	}
	return &s
}
