package vpmu

import "github.com/perfcorrect/perfcorrect/perfdata"

type throttleState struct {
	left int // ticks without a sample
	at   uint64
	gone uint64 // counts of the leader while it was stopped
	last uint64 // time
}

// keep decides about a sample by the rules of Lost and Throttle, and writes
// the records that tell of it.
func (r *recorder) keep(s *sampleEvent) (bool, error) {
	t := &r.threads[s.index]
	throttle := func(typ perfdata.RecordType) error {
		id := r.id(s.index, 0)
		return r.w.Write(&perfdata.Throttle{
			Common: r.common(typ, 0, s.index, s.time), ThrottleTime: timeBase + s.time, ThrottleID: id, Stream: id,
		})
	}
	if t.left > 0 {
		r.dropped++
		if t.left--; t.left == 0 {
			t.gone += s.leader - t.at
			return false, throttle(perfdata.TypeUnthrottle)
		}
		return false, nil
	}
	if r.losing == 0 && r.Lost > 0 && r.rng.Float64() < r.Lost {
		r.losing = max(1, r.LostRun)
	}
	if r.losing > 0 {
		r.losing--
		r.lost++
		r.unsaid++
		r.dropped++
		return false, nil
	}
	return true, r.sayLost(s.time)
}

func (r *recorder) sayLost(at uint64) error {
	if r.unsaid == 0 {
		return nil
	}
	n := r.unsaid
	r.unsaid = 0
	if at == 0 {
		at = r.sample.Time - min(r.sample.Time, timeBase)
	}
	return r.w.Write(&perfdata.Lost{Common: r.common(perfdata.TypeLost, 0, 0, at), LostID: r.id(0, 0), Count: n})
}
