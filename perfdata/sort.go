package perfdata

import (
	"cmp"
	"slices"
	"sort"
)

// rawRec is a record that waits to be passed on. Its order is (time, seq):
// equal times keep the order of arrival.
type rawRec struct {
	time, seq uint64
	chunk     *chunk
	pos, n    uint32
}

func (r *rawRec) bytes() []byte { return r.chunk.buf[r.pos : r.pos+r.n] }

const rawRecSize = 32

// run is a sorted sequence of records, in memory or in the spill file.
type run struct {
	recs []rawRec
	head int
	disk *spillRun
	cur  rawRec // the first record, if empty is false
	data []byte // its bytes
	done bool
}

// sorter brings records into time order.
//
// With FINISHED_ROUND records it does what perf's ordered_events do. perf
// record drains the ring buffers of all CPUs one after the other, a round.
// A record that is written while round n is drained may be older than one
// drained in round n from another buffer, but not older than the youngest of
// round n-1, because every buffer was drained completely since:
//
//	        cpu 0     cpu 1
//	round 1  1 2 3     2 3 4      max 4: nothing is passed on
//	round 2  4 5       5 7        max 7: everything up to 4 is
//	round 3  6 8       9          max 9: everything up to 7 is
//
// (tools/perf/util/session.c, comment above process_finished_round.)
//
// Without rounds everything is held back until the end.
//
// Records of one buffer are in order already, so the input is a shuffle of a
// few sorted sequences. They are found again by patience: a record goes
// behind the youngest run end that is not younger than it. The runs are then
// merged. What exceeds the memory limit is written to a temporary file as one
// more run.
type sorter struct {
	pool  *chunkPool
	emit  func(r *rawRec, data []byte) error
	limit int64 // bytes held in memory

	runs  []*run   // in memory, by falling end
	tails []uint64 // their ends
	last  int      // the run appended to last
	disk  []*run
	spill *spillFile
	free  [][]rawRec

	seq        uint64
	held       int64
	max        uint64
	nextFlush  uint64
	passed     uint64 // time of the last record passed on
	outOfOrder int64
	heap       []*run
}

const maxRuns = 1024

// add takes the record data, which lies in c.
func (s *sorter) add(c *chunk, pos, n int, time uint64) error {
	s.seq++
	c.live++
	rec := rawRec{time: time, seq: s.seq, chunk: c, pos: uint32(pos), n: uint32(n)}
	s.max = max(s.max, time)
	s.place(rec)
	s.held += int64(n) + rawRecSize
	if s.held > s.limit {
		return s.spillAll()
	}
	return nil
}

func (s *sorter) place(rec rawRec) {
	i := s.last
	if i >= len(s.runs) || s.tails[i] > rec.time || i > 0 && s.tails[i-1] <= rec.time {
		i = sort.Search(len(s.tails), func(i int) bool { return s.tails[i] <= rec.time })
	}
	if i == len(s.runs) {
		if len(s.runs) == maxRuns {
			s.collapse()
			i = sort.Search(len(s.tails), func(i int) bool { return s.tails[i] <= rec.time })
		}
		if i == len(s.runs) {
			r := &run{}
			if n := len(s.free); n > 0 {
				r.recs, s.free = s.free[n-1], s.free[:n-1]
			}
			s.runs = append(s.runs, r)
			s.tails = append(s.tails, 0)
		}
	}
	r := s.runs[i]
	r.recs = append(r.recs, rec)
	s.tails[i] = rec.time
	s.last = i
}

// collapse unites short runs, so that input in falling order does not cost a
// run per record. Runs much longer than all shorter ones together stay: each
// record is then moved a logarithmic number of times.
func (s *sorter) collapse() {
	slices.SortFunc(s.runs, func(a, b *run) int { return cmp.Compare(len(a.recs)-a.head, len(b.recs)-b.head) })
	var all []rawRec
	n := 0
	for ; n < len(s.runs); n++ {
		recs := s.runs[n].recs[s.runs[n].head:]
		if n > maxRuns/2 && len(recs) > 4*len(all) {
			break
		}
		all = append(all, recs...)
	}
	slices.SortFunc(all, func(a, b rawRec) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.seq, b.seq))
	})
	s.runs = append(s.runs[n:], &run{recs: all})
	s.retail()
}

// retail restores the order of runs and tails after runs changed.
func (s *sorter) retail() {
	slices.SortStableFunc(s.runs, func(a, b *run) int {
		return cmp.Compare(b.recs[len(b.recs)-1].time, a.recs[len(a.recs)-1].time)
	})
	s.tails = s.tails[:0]
	for _, r := range s.runs {
		s.tails = append(s.tails, r.recs[len(r.recs)-1].time)
	}
	s.last = 0
}

// round is FINISHED_ROUND.
func (s *sorter) round() error {
	err := s.flush(s.nextFlush)
	s.nextFlush = s.max
	return err
}

// flush passes on all records up to the time limit, in order.
func (s *sorter) flush(limit uint64) error {
	if err := s.merge(limit, s.pass); err != nil {
		return err
	}
	s.disk = slices.DeleteFunc(s.disk, func(r *run) bool { return r.done })
	if len(s.disk) == 0 && s.spill != nil {
		return s.spill.rewind()
	}
	return nil
}

func (s *sorter) pass(r *rawRec, data []byte) error {
	if r.time < s.passed {
		s.outOfOrder++
	}
	s.passed = r.time
	return s.emit(r, data)
}

// merge hands all records up to the limit to out and takes them off the runs.
func (s *sorter) merge(limit uint64, out func(*rawRec, []byte) error) error {
	h := s.heap[:0]
	for _, list := range [2][]*run{s.runs, s.disk} {
		for _, r := range list {
			if err := r.load(); err != nil {
				return err
			}
			if !r.done && r.cur.time <= limit {
				h = append(h, r)
			}
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		siftDown(h, i)
	}
	for len(h) > 0 {
		r := h[0]
		if err := out(&r.cur, r.data); err != nil {
			return err
		}
		if r.disk == nil {
			s.held -= int64(r.cur.n) + rawRecSize
			s.pool.release(r.cur.chunk)
			r.head++
		} else {
			r.disk.loaded = false
		}
		if err := r.load(); err != nil {
			return err
		}
		if r.done || r.cur.time > limit {
			h[0] = h[len(h)-1]
			h = h[:len(h)-1]
		}
		if len(h) > 1 {
			siftDown(h, 0)
		}
	}
	s.heap = h
	s.prune()
	return nil
}

// prune drops runs that are used up, and the used-up part of the others.
func (s *sorter) prune() {
	kept := s.runs[:0]
	for _, r := range s.runs {
		switch {
		case r.done:
			if cap(r.recs) >= 256 && len(s.free) < 64 {
				s.free = append(s.free, r.recs[:0])
			}
			continue
		case r.head > len(r.recs)/2:
			r.recs = r.recs[:copy(r.recs, r.recs[r.head:])]
			r.head = 0
		}
		kept = append(kept, r)
	}
	clear(s.runs[len(kept):])
	s.runs = kept
	s.retail()
}

// load makes cur the first record of the run.
func (r *run) load() error {
	if r.disk != nil {
		if r.done || r.disk.loaded {
			return nil
		}
		ok, err := r.disk.next(&r.cur)
		r.data, r.done = r.disk.data, !ok
		return err
	}
	if r.head == len(r.recs) {
		r.done = true
		return nil
	}
	r.cur = r.recs[r.head]
	r.data = r.cur.bytes()
	return nil
}

func (r *run) before(o *run) bool {
	if r.cur.time != o.cur.time {
		return r.cur.time < o.cur.time
	}
	return r.cur.seq < o.cur.seq
}

func siftDown(h []*run, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1].before(h[c]) {
			c++
		}
		if !h[c].before(h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// spillAll moves everything held in memory to the spill file, as one run.
func (s *sorter) spillAll() error {
	if s.spill == nil {
		f, err := newSpillFile()
		if err != nil {
			return err
		}
		s.spill = f
	}
	disk := s.disk
	s.disk = nil
	s.spill.begin()
	err := s.merge(^uint64(0), s.spill.write)
	s.disk = disk
	if err != nil {
		return err
	}
	r, err := s.spill.finish()
	if err != nil {
		return err
	}
	s.disk = append(s.disk, &run{disk: r})
	return nil
}

// finish passes on everything that is left and frees the temporary file.
func (s *sorter) finish() error {
	err := s.flush(^uint64(0))
	s.close()
	return err
}

func (s *sorter) close() {
	if s.spill != nil {
		s.spill.close()
		s.spill = nil
	}
}
