package record

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

const (
	// flushEvery bounds what a recorder that is killed leaves unwritten.
	flushEvery    = time.Second
	progressEvery = 250 * time.Millisecond
)

// loop drains the rings whenever one is half full, and once a second.
func (r *recorder) loop(ctx context.Context, signals *signals, exited chan struct{}) error {
	deadline := time.Time{}
	if r.Duration > 0 {
		deadline = r.started.Add(r.Duration)
	}
	flush := r.started.Add(flushEvery)
	progress := r.started.Add(progressEvery)
	for {
		until := flush
		earlier(&until, deadline)
		if r.Progress != nil {
			earlier(&until, progress)
		}
		for _, s := range r.strategy {
			earlier(&until, s.next())
		}
		ended, err := r.poll.wait(time.Until(until))
		if err != nil {
			return err
		}
		now := time.Now()
		r.drain()
		r.round()
		for _, s := range r.strategy {
			if err := s.after(now); err != nil {
				return err
			}
		}
		if !now.Before(flush) {
			flush = now.Add(flushEvery)
			if err := r.writer.Flush(); err != nil && r.writeErr == nil {
				r.writeErr = err
			}
		}
		if r.Progress != nil && !now.Before(progress) {
			progress = now.Add(progressEvery)
			r.Progress(r.counts(), now.Sub(r.started))
		}
		switch {
		case r.writeErr != nil:
			if exited != nil && !closed(exited) {
				r.Say("%v; the program runs on", r.outputError())
			}
			return nil
		case ended || exited != nil && closed(exited):
			return nil
		case ctx.Err() != nil || signals.ended():
			return nil
		case !deadline.IsZero() && !now.Before(deadline):
			if exited != nil {
				r.timeUp = true
				signals.terminate()
			}
			return nil
		}
	}
}

func earlier(t *time.Time, other time.Time) {
	if !other.IsZero() && other.Before(*t) {
		*t = other
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// drain copies what the rings hold to the writer.
func (r *recorder) drain() {
	for _, ring := range r.rings {
		a, b := ring.pending()
		if len(a) == 0 {
			continue
		}
		r.written = true
		if r.filter != nil || len(r.periods) > 0 {
			r.drainRecords(a, b)
		} else {
			r.scan.write = r.write
			r.scan.records(a, b)
		}
		ring.release(len(a) + len(b))
	}
}

// write passes on whole records.
func (r *recorder) write(b []byte) {
	if r.writeErr == nil {
		r.writeErr = r.writer.WriteRaw(b)
	}
}

// round ends a pass over all rings: what comes later is not older than what
// was there a pass ago.
func (r *recorder) round() {
	if !r.written || r.writeErr != nil {
		return
	}
	r.written = false
	r.writeErr = r.writer.FinishedRound()
}

func (r *recorder) counts() Counts {
	c := r.scan.Counts
	c.Bytes = r.writer.Size()
	c.NoBuildID = r.ids.missing
	return c
}

// finish completes the recording.
func (r *recorder) finish() *Result {
	r.drain()
	r.round()
	if r.writeErr == nil {
		r.lostAtTheEnd()
	}
	for _, s := range r.strategy {
		if e, ok := s.(interface{ end(*Counts) }); ok {
			e.end(&r.scan.Counts)
		}
	}
	r.ids.kernel(r.modules)
	r.meta.BuildIDs = r.ids.list
	r.meta.SampleTime = perfdata.TimeRange{First: r.scan.First, Last: r.scan.Last}
	if err := r.writer.Close(); err != nil && r.writeErr == nil {
		r.writeErr = err
	}
	res := &Result{Counts: r.counts(), Events: r.meta.Events}
	r.close()
	r.poll.close()
	if err := r.Output.close(); err != nil && r.writeErr == nil {
		r.writeErr = err
	}
	return res
}

// lostAtTheEnd accounts for records that were lost and never reported: the
// kernel writes LOST into a ring when there is room again, which may never
// have come. Each event knows what it lost (PERF_FORMAT_LOST).
func (r *recorder) lostAtTheEnd() {
	if !r.Caps.Lost {
		return
	}
	var lost uint64
	for _, in := range r.instances {
		lost += readLost(in)
	}
	if lost <= r.scan.Lost {
		return
	}
	missing := lost - r.scan.Lost
	r.scan.Lost = lost
	r.writeErr = r.writer.Write(&perfdata.Lost{
		Common: perfdata.Common{Type: perfdata.TypeLost, Time: r.scan.Last, ID: r.instances[0].id},
		LostID: r.instances[0].id, Count: missing,
	})
}

// readLost reads an event's counter of lost records. The layout is that of
// read_format (perf_event_open(2)).
func readLost(in *instance) uint64 {
	var b [8 * (3 + 3*(maxProbes+8))]byte
	n, err := unix.Read(in.fd, b[:])
	if err != nil {
		return 0
	}
	word := func(i int) uint64 {
		if 8*i+8 > n {
			return 0
		}
		return nativeU64(b[8*i:])
	}
	l := readLayout(in.event.Attr.ReadFormat)
	return word(l.first + l.per - 1) // of a group the leader's
}

// counterLayout says where the counters stand in what is read of an event, in
// words: the first, and how many each takes. Value, id, lost of a counter lie
// together.
type counterLayout struct{ first, per int }

func readLayout(f perfdata.ReadFormat) counterLayout {
	l := counterLayout{per: 1}
	for _, bit := range []perfdata.ReadFormat{perfdata.ReadID, perfdata.ReadLost} {
		if f&bit != 0 {
			l.per++
		}
	}
	times := 0
	for _, bit := range []perfdata.ReadFormat{perfdata.ReadTotalTimeEnabled, perfdata.ReadTotalTimeRunning} {
		if f&bit != 0 {
			times++
		}
	}
	if f&perfdata.ReadGroup != 0 {
		l.first = 1 + times // behind the number of counters and the times
	} else {
		l.per += times // value, times, id, lost
	}
	return l
}

// processOf is the process a thread belongs to, 0 if it has ended.
func processOf(tid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "Tgid:"); ok {
			n, _ := number(strings.TrimSpace(v))
			return n
		}
	}
	return 0
}
