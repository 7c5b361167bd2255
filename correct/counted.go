package correct

import (
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// countedCalls adds up what the call counters counted in an interval, scaled
// up if they shared the PMU with others. It is false if they were not read, or
// did not run.
func countedCalls(i *session.Interval, counters []*perfdata.Event) (float64, bool) {
	if i == nil || i.Backwards {
		return 0, false
	}
	var n uint64
	read := false
	for _, c := range i.Counts {
		for _, k := range counters {
			if c.Event == k || c.Event != nil && c.Event.Name == k.Name {
				n += c.Value
				read = true
				break
			}
		}
	}
	switch {
	case !read, i.Enabled > 0 && i.Running == 0:
		return 0, false
	case i.Multiplexed():
		return float64(n) * float64(i.Enabled) / float64(i.Running), true
	}
	return float64(n), true
}
