package record

import (
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

// cbs is counter-based sampling live (Arnold and Grove, CGO 2005, section 4):
// a timer says when, a counter of calls says which. At each tick of the
// clock on a CPU, the call events of that CPU may overflow Samples times
// (PERF_EVENT_IOC_REFRESH), after every Stride calls; then the kernel
// disables them until the next tick.
//
// The paper draws the first call of a burst from [1..Stride], so that all
// calls in it are equally likely. Here each burst draws its stride from
// [1..2*Stride-1], which has that effect on the first call and the same mean.
//
// The period is set behind the refresh, and even if it stays the same: since
// Linux 6.17 an event that reaches its limit is stopped as well as disabled
// (__perf_event_overflow in kernel/events/core.c), and enabling one of a tracepoint or
// uprobe does not start it again (perf_trace_add in
// kernel/trace/trace_event_perf.c); a change of the period does.
//
// PERF_EVENT_IOC_REFRESH is refused for inherited events (kernel/events/core.c,
// _perf_event_refresh), so the events belong to CPUs, and samples of other
// processes are left out (filter).
type cbs struct {
	CBS
	clock map[uint64]int   // by id: the CPU
	calls map[uint64]int   // by id: index in bursts
	on    map[int][]*burst // by CPU
	all   []*burst
	ticks map[int]bool // CPUs with a tick in this drain
	rng   *rand.Rand
}

// burst is a call event of a CPU.
type burst struct {
	in   *instance
	left uint64 // overflows it may still have
}

func (c *cbs) begin(r *recorder) error {
	c.clock, c.calls, c.on, c.ticks = map[uint64]int{}, map[uint64]int{}, map[int][]*burst{}, map[int]bool{}
	c.rng = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	for _, in := range r.instances {
		switch {
		case in.event.isOneOf(r.Plan.Calls):
			b := &burst{in: in}
			c.calls[in.id] = len(c.all)
			c.all = append(c.all, b)
			c.on[in.cpu] = append(c.on[in.cpu], b)
		case in.event == r.Plan.Sampling:
			c.clock[in.id] = in.cpu
		}
	}
	return nil
}

func (c *cbs) perSample() bool { return true }

func (c *cbs) sample(id, _ uint64, _ []byte) {
	if i, ok := c.calls[id]; ok {
		if b := c.all[i]; b.left > 0 {
			b.left--
		}
		return
	}
	if cpu, ok := c.clock[id]; ok {
		c.ticks[cpu] = true
	}
}

// after lets the CPUs that ticked sample again: up to Samples, whatever was
// left over of the burst before, for the kernel adds to that.
func (c *cbs) after(time.Time) error {
	for cpu := range c.ticks {
		delete(c.ticks, cpu)
		for _, b := range c.on[cpu] {
			more := c.Samples - min(b.left, c.Samples)
			if more == 0 {
				continue
			}
			if err := ioctl(b.in.fd, unix.PERF_EVENT_IOC_REFRESH, int(more)); err != nil {
				return fmt.Errorf("PERF_EVENT_IOC_REFRESH of %s: %w", b.in.event.Name, err)
			}
			if err := setPeriod(b.in.fd, 1+c.rng.Uint64N(2*c.Stride-1)); err != nil {
				return err
			}
			b.left += more
		}
	}
	return nil
}

func (c *cbs) next() time.Time { return time.Time{} }
