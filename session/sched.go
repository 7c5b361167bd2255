package session

import "github.com/perfcorrect/perfcorrect/perfdata"

// schedState is what a thread is doing, as far as the recording tells.
type schedState uint8

const (
	unknownState schedState = iota
	running
	runnable // could run, has no CPU
	blocked
)

// sched adds up a thread's time off the CPU.
type sched struct {
	state schedState
	since uint64 // ns
	// guessed is the state before a sample showed that the thread ran although
	// nothing had switched it in; see ranAt.
	guessed      schedState
	guessedSince uint64

	waited, blocked uint64 // ns, finished periods only

	// The latest finished periods, which per-CPU intervals need.
	lastWait, lastBlock period
	lastIn              uint64 // time of the last switch in
	waitBeforeIn        uint64 // ns of runnable that ended in it
}

// period is a stretch of time, ns.
type period struct{ start, end uint64 }

// overlap is how much of p lies in (start, end].
func (p period) overlap(start, end uint64) uint64 {
	lo, hi := max(p.start, start), min(p.end, end)
	if hi <= lo {
		return 0
	}
	return hi - lo
}

// set ends the current state at time t and begins another.
func (c *sched) set(state schedState, t uint64) {
	c.guessed = unknownState
	if t > c.since {
		switch c.state {
		case runnable:
			c.waited += t - c.since
			c.lastWait = period{c.since, t}
		case blocked:
			c.blocked += t - c.since
			c.lastBlock = period{c.since, t}
		}
	}
	c.state, c.since = state, t
}

// switchIn: the thread has a CPU from t on. Recordings may show one switch by
// a record and a tracepoint; the first counts.
func (c *sched) switchIn(t uint64) bool {
	if c.guessed != unknownState {
		// The sample that made us guess came between the record of the thread's
		// leaving and its really being gone: take the guess back.
		c.state, c.since = c.guessed, c.guessedSince
	}
	if c.state == running {
		return false
	}
	c.waitBeforeIn = 0
	if c.state == runnable && t > c.since {
		c.waitBeforeIn = t - c.since
	}
	c.set(running, t)
	c.lastIn = t
	return true
}

// switchOut: the thread leaves its CPU at t, preempted or to wait for something.
func (c *sched) switchOut(t uint64, preempted bool) bool {
	if c.state == runnable || c.state == blocked {
		return false // told before
	}
	if preempted {
		c.set(runnable, t)
	} else {
		c.set(blocked, t)
	}
	return true
}

// wake: what the blocked thread waited for has happened.
func (c *sched) wake(t uint64) bool {
	if c.state != blocked {
		return false
	}
	c.set(runnable, t)
	return true
}

// ranAt: a sample shows the thread running at t. If it was thought to be off
// the CPU, the switch in is missing from the recording (lost, or a tracepoint
// opened on the thread, which does not fire when others give way to it), and
// how the time was spent is not known; unless a switch in follows.
func (c *sched) ranAt(t uint64) (missed bool) {
	if c.state != runnable && c.state != blocked {
		return false
	}
	c.guessed, c.guessedSince = c.state, c.since
	c.state, c.since = running, t
	return true
}

// offAt is the time spent runnable and blocked up to t.
func (c *sched) offAt(t uint64) (waited, blockedFor uint64) {
	waited, blockedFor = c.waited, c.blocked
	if t > c.since {
		switch c.state {
		case runnable:
			waited += t - c.since
		case blocked:
			blockedFor += t - c.since
		}
	}
	return waited, blockedFor
}

// taskSwitch handles SWITCH and SWITCH_CPU_WIDE. The latter's other thread has
// a record of its own.
func (s *Session) taskSwitch(r *perfdata.Switch) {
	if r.Has&perfdata.FieldTID == 0 || r.Has&perfdata.FieldTime == 0 {
		return
	}
	if r.TID <= 0 { // the idle thread of any CPU, or one that is no more
		return
	}
	th := s.thread(r.PID, r.TID)
	if r.Misc&perfdata.MiscSwitchOut == 0 {
		s.countIn(th, r.Time)
		return
	}
	s.countOut(th, r.Time, r.Misc&perfdata.MiscSwitchOutPreempt != 0)
}

func (s *Session) countIn(th *Thread, t uint64) {
	if th.sched.switchIn(t) {
		s.stats.SwitchesIn++
	}
}

func (s *Session) countOut(th *Thread, t uint64, preempted bool) {
	if !th.sched.switchOut(t, preempted) {
		return
	}
	s.stats.SwitchesOut++
	if preempted {
		s.stats.Preempted++
	}
}
