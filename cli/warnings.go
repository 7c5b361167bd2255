package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/session"
	"github.com/perfcorrect/perfcorrect/unwind"
)

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
	all = append(all, cutStacks(s)...)
	if s.Unmended*100 > s.Samples {
		add(s.Unmended, "record the top of the stack as well, as perfcorrect record does", "%s of %d stacks lack the caller of their first function: it has no frame", share(s.Unmended, s.Samples), s.Samples)
	}
	// A few addresses outside of any mapping are normal: frame pointers lead
	// astray in code compiled without them.
	if s.Unresolved*100 > s.Frames {
		add(s.Unresolved, "", "%s of %d addresses are in no mapping the recording knows", share(s.Unresolved, s.Frames), s.Frames)
	}
	return all
}

// cutStacks say how many stacks lack outer frames, by reason.
func cutStacks(s *session.Stats) []note {
	hints := map[unwind.Outcome]string{
		unwind.Truncated:    "raise kernel.perf_event_max_stack before recording",
		unwind.DumpTooShort: "record longer ones: perf record --call-graph dwarf,32768",
	}
	var stacks uint64
	for _, e := range s.Events {
		stacks += e.Stacks
	}
	var all []note
	for o, n := range s.Outcomes {
		if o := unwind.Outcome(o); o.Cut() && n > 0 {
			all = append(all, note{fmt.Sprintf("%s of %d stacks lack outer frames: %v", share(n, stacks), stacks, o), hints[o]})
		}
	}
	return all
}

// maxSymbolNotes bounds what is said of single files.
const maxSymbolNotes = 8

// symbolNotes say which images have no names, and why: what the user can do
// something about first, then by how many addresses are concerned. An image
// of which fewer than one address in a hundred is, and those beyond
// maxSymbolNotes, are summed up.
func symbolNotes(store *image.Store) []note {
	worst := map[*image.Image]image.Problem{}
	for _, p := range store.Problems() {
		if w, ok := worst[p.Image]; !ok || gravity(p) > gravity(w) {
			worst[p.Image] = p
		}
	}
	var problems []image.Problem
	for _, p := range worst {
		problems = append(problems, p)
	}
	slices.SortFunc(problems, func(a, b image.Problem) int {
		return cmp.Or(cmp.Compare(b.Locs, a.Locs), cmp.Compare(a.Path, b.Path))
	})
	var all []note
	rest, restLocs := 0, 0
	for _, p := range problems {
		if len(all) == maxSymbolNotes || p.Kind == image.Missing && p.Locs*100 < store.NumLocs() {
			rest++
			restLocs += p.Locs
			continue
		}
		all = append(all, note{fmt.Sprintf("%s: %s (%s)", p.Path, p.What, count(p.Locs, "address")), p.Hint})
	}
	if rest > 0 {
		all = append(all, note{What: fmt.Sprintf("%s more without names (%s)", count(rest, "file"), count(restLocs, "address"))})
	}
	return all
}

// gravity orders the problems of one image: one with a hint is worth saying
// first, and a file with another build ID says more than one that is missing.
func gravity(p image.Problem) int {
	switch {
	case p.Hint != "":
		return 2
	case p.Kind != image.Missing:
		return 1
	}
	return 0
}

// atMost joins the first n words.
func atMost(words []string, n int) string {
	if len(words) > n {
		words = append(words[:n:n], fmt.Sprintf("and %d more", len(words)-n))
	}
	return strings.Join(words, ", ")
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
