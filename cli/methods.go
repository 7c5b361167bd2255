package cli

import (
	"errors"

	"github.com/perfcorrect/perfcorrect/correct"
	"github.com/perfcorrect/perfcorrect/perfdata"
)

const counterHint = "count calls in the group of the sampling event: perf record -e '{cycles,br_inst_retired.near_call}:S' -g; without a PMU, with a uprobe: see the README"

// supports tells what of the recording lets a method work, or in the error
// what is missing. The recording's events must be known.
func supports(method string, opt correct.Options) (evidence string, err error) {
	if method == "none" {
		return "samples", nil
	}
	event, how, err := correct.CallEvent(opt.Meta.Events, opt.Meta, opt.CallEvent)
	if err != nil {
		return "", err
	}
	if !readWithSamples(opt.Meta.Events) {
		return "", errors.New("calls were counted by " + event.Name + ", but not read with the samples")
	}
	return how, nil
}

// readWithSamples reports whether any event's samples carry the counters of
// its group.
func readWithSamples(events []*perfdata.Event) bool {
	for _, e := range events {
		if e.SampleType&perfdata.FieldRead != 0 && e.ReadFormat&perfdata.ReadGroup != 0 {
			return true
		}
	}
	return false
}
