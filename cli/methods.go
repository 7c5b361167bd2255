package cli

import (
	"errors"
	"strings"

	"github.com/perfcorrect/perfcorrect/correct"
	"github.com/perfcorrect/perfcorrect/perfdata"
)

const counterHint = "count calls in the group of the sampling event: perf record -e '{cycles,br_inst_retired.near_call}:S' -g; without a PMU, with a uprobe: see the README"

// supports tells what of the recording lets a method work, or in the error
// what is missing. The recording's events must be known.
func supports(method string, opt correct.Options) (evidence string, err error) {
	if method == "density" {
		event, how, err := correct.CallEvent(opt.Meta.Events, opt.Meta, opt.CallEvent)
		if err != nil {
			return "", err
		}
		if !readWithSamples(opt.Meta.Events) {
			return "", errors.New("calls were counted by " + event.Name + ", but not read with the samples")
		}
		return how, nil
	}
	if _, err := correct.New(method, opt); err != nil {
		return "", errors.New(strings.TrimPrefix(err.Error(), "method "+method+": "))
	}
	if method == "flow" && !haveChains(opt.Meta.Events) {
		return "", errors.New("the recording has no callchains; perf record -g")
	}
	return methodEvidence[method], nil
}

var methodEvidence = map[string]string{
	"none":  "samples",
	"calls": "samples of an event that counts calls",
	"lbr":   "branch stacks with calls",
	"lee":   "branch stacks with calls",
	"cbs":   "branch stacks with calls",
	"flow":  "callchains, and the program's code",
	"auto":  "the best of what there is",
}

func haveChains(events []*perfdata.Event) bool {
	for _, e := range events {
		if e.SampleType&(perfdata.FieldCallchain|perfdata.FieldStackUser) != 0 {
			return true
		}
	}
	return false
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
