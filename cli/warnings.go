package cli

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/perfcorrect/perfcorrect/image"
)

func now() time.Time { return time.Now() }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// note is something that may be wrong with a recording, and what would have
// helped.
type note struct {
	What string `json:"what"`
	Hint string `json:"hint,omitempty"`
}

func (n note) String() string {
	if n.Hint == "" {
		return n.What
	}
	return n.What + "; " + n.Hint
}

// notes are what reading the whole recording brought to light.
func (in *input) notes() []note {
	var all []note
	add := func(n uint64, hint, format string, args ...any) {
		if n > 0 {
			all = append(all, note{fmt.Sprintf(format, args...), hint})
		}
	}
	r, s := in.reader.Stats(), in.session.Stats()
	if r.Damage != nil {
		add(1, "everything before that was used", "the recording is cut or damaged: %v", r.Damage)
	}
	for _, w := range r.Warnings {
		add(1, "", "%s: %s", in.name, w)
	}
	add(uint64(r.Malformed), "", "%s malformed, left out", count(r.Malformed, "record"))
	add(uint64(r.UnknownID), "", "%s of events the recording does not declare, left out", count(r.UnknownID, "sample"))
	add(uint64(r.OutOfOrder), "", "%s out of time order", count(r.OutOfOrder, "record"))
	add(s.LostRecords, "record with larger buffers: -m 16M", "%s lost while recording", count(s.LostRecords, "record"))
	add(s.LostSamples, "record with larger buffers or a lower frequency: -m 16M, -F 999", "%s lost while recording", count(s.LostSamples, "sample"))
	add(s.Throttles, "record with a lower frequency, or raise kernel.perf_event_max_sample_rate", "sampling was throttled %s", count(s.Throttles, "time"))
	add(s.MultiplexedIntervals, "record fewer counters at a time", "%s of %d intervals the counters shared the PMU with others", share(s.MultiplexedIntervals, s.Intervals), s.Intervals)
	add(s.BackwardIntervals, "", "counters went backwards in %s", count(s.BackwardIntervals, "interval"))
	add(s.NoEvent, "", "%s of no known event, left out", count(s.NoEvent, "sample"))
	add(s.NoThread, "", "%s without thread", count(s.NoThread, "sample"))
	add(s.SpacesCut, "", "%s not copied at fork, to bound memory: their frames are unknown", count(s.SpacesCut, "address space"))
	add(s.DeferredMissing, "", "%s whose user stack was to come later and did not", count(s.DeferredMissing, "sample"))
	var cut, stacks uint64
	for _, e := range s.Events {
		cut += e.Cut
		stacks += e.Stacks
	}
	add(cut, "kernel.perf_event_max_stack sets how many frames are recorded", "%s of %d stacks lack outer frames", share(cut, stacks), stacks)
	// A few addresses outside of any mapping are normal: frame pointers lead
	// astray in code compiled without them.
	if s.Unresolved*100 > s.Frames {
		add(s.Unresolved, "", "%s of %d addresses are in no mapping the recording knows", share(s.Unresolved, s.Frames), s.Frames)
	}
	return all
}

// symbolNotes say which images have no names, and why, worst first. Images of
// which fewer than one location in a hundred is are summed up.
func symbolNotes(store *image.Store) []note {
	problems := store.Problems()
	slices.SortStableFunc(problems, func(a, b image.Problem) int { return b.Locs - a.Locs })
	var all []note
	rest, restLocs := 0, 0
	for _, p := range problems {
		if p.Locs*100 < store.NumLocs() && p.Kind == image.Missing {
			rest++
			restLocs += p.Locs
			continue
		}
		all = append(all, note{fmt.Sprintf("%s: %s (%s)", p.Path, p.What, count(p.Locs, "address")), p.Hint})
	}
	if rest > 0 {
		all = append(all, note{What: fmt.Sprintf("%s more not found (%s)", count(rest, "file"), count(restLocs, "address"))})
	}
	return all
}

// count is "1 sample", "2 samples", "0 addresses".
func count[T int | int64 | uint64](n T, what string) string {
	if n != 1 {
		if what[len(what)-1] == 's' {
			what += "e"
		}
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// share is "3.2 %", with enough digits not to be zero.
func share(part, whole uint64) string {
	if whole == 0 {
		return "0 %"
	}
	p := 100 * float64(part) / float64(whole)
	switch {
	case part == 0 || part == whole:
		return fmt.Sprintf("%.0f %%", p)
	case p < 0.1:
		return "under 0.1 %"
	}
	return fmt.Sprintf("%.1f %%", p)
}
