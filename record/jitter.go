package record

import (
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

// jitter varies the period so that samples do not run in lockstep with what
// the program does periodically.
//
// perf's kernel side has no random periods. PERF_EVENT_IOC_PERIOD sets the
// period of one instance and starts it anew, by an interrupt on its CPU, so a
// change costs a few microseconds and the rest of the period under way. Every
// jitterEvery, all instances get a new rate, drawn evenly from the share
// around the one asked for. Within that time the phase of ticks against
// any fixed period of the program moves on by another, random step with each
// tick, which is what lockstep needs not to happen; a change for each tick
// would cost more than the samples.
//
// The rates, not the periods, are drawn evenly: the kernel's timers keep
// showing the period they were opened with (hw.last_period is not set by
// __perf_event_period), and so their sum over time stays right. Each step away
// from the rate asked for is followed by one as far to the other side, so that
// this holds soon.
//
// An inherited instance keeps the period its thread was born with: one drawn
// at another time, so that threads differ. It is the first thread whose rate
// goes on changing (or one that has changed places with it: the kernel swaps
// the contexts of threads with equal events, perf_event_context_sched_out).
type jitter struct {
	share float64
	r     *recorder
	in    []*instance
	away  []away // by instance
	at    time.Time
	turn  int // where the next change begins
	rng   *rand.Rand
}

const (
	jitterEvery = 100 * time.Millisecond
	jitterBatch = 64 // changes at a time, whatever the number of instances
)

func (j *jitter) begin(r *recorder) error {
	j.r, j.in = r, r.clocks()
	j.away = make([]away, len(j.in))
	j.rng = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	return nil
}

func (j *jitter) perSample() bool              { return false }
func (j *jitter) sample(_, _ uint64, _ []byte) {}

func (j *jitter) next() time.Time {
	if len(j.in) == 0 {
		return time.Time{}
	}
	if j.at.IsZero() {
		j.at = j.r.started.Add(jitterEvery)
	}
	return j.at
}

func (j *jitter) after(now time.Time) error {
	if len(j.in) == 0 || now.Before(j.next()) {
		return nil
	}
	j.at = now.Add(jitterEvery)
	for range min(len(j.in), jitterBatch) {
		j.turn = (j.turn + 1) % len(j.in)
		v := &j.away[j.turn]
		if v.back = !v.back; v.back {
			v.share = j.share * (2*j.rng.Float64() - 1)
		} else {
			v.share = -v.share
		}
		if err := j.r.setRate(j.in[j.turn], (1+v.share)*j.r.scale); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// away is how far an instance's rate is from the one asked for.
type away struct {
	share float64
	back  bool // the next step goes as far to the other side
}
