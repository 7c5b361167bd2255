package correct

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// ErrNoCallEvent is returned where a recording has no counter of calls.
var ErrNoCallEvent = errors.New("the recording has no counter of calls")

// CallEvent finds the event that counts calls: the one asked for by name or
// code, or with "" the best that is recognised. how says in words what was
// taken for it and why. If several count together (a probe for each function,
// the kinds of cores of a hybrid CPU), it is the first of them.
//
// nameOrCode is the name of an event, with or without PMU and modifiers; a
// code in perf's notation (r02c4, cpu/event=0xc4,umask=0x2/); or part of the
// name.
func CallEvent(events []*perfdata.Event, meta *perfdata.Meta, nameOrCode string) (e *perfdata.Event, how string, err error) {
	all, how, err := callEvents(events, meta, nameOrCode)
	if err != nil {
		return nil, "", err
	}
	return all[0], how, nil
}

// callEvents is CallEvent with all events whose counts are to be added up.
func callEvents(events []*perfdata.Event, meta *perfdata.Meta, spec string) ([]*perfdata.Event, string, error) {
	if meta == nil {
		meta = &perfdata.Meta{}
	}
	if spec != "" {
		return namedEvents(events, meta, spec)
	}
	for _, k := range callKinds {
		var found []*perfdata.Event
		for _, e := range events {
			if k.is(e, meta) {
				found = append(found, e)
			}
		}
		if len(found) > 0 {
			found = inGroups(found)
			return found, list(found) + " (" + k.what + ")", nil
		}
	}
	return nil, "", ErrNoCallEvent
}

// inGroups keeps the events that are read with another event's samples, if any is.
func inGroups(events []*perfdata.Event) []*perfdata.Event {
	var in []*perfdata.Event
	for _, e := range events {
		if e.Leader != nil && e.Leader != e || len(e.Group) > 1 {
			in = append(in, e)
		}
	}
	if len(in) > 0 {
		return in
	}
	return events
}

func list(events []*perfdata.Event) string {
	var names []string
	for _, e := range events {
		if !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	if len(names) > 3 {
		names = append(names[:3], fmt.Sprintf("%d more", len(names)-3))
	}
	return strings.Join(names, " + ")
}

// namedEvents finds the events the user means: by name, else by code, else by
// part of the name.
func namedEvents(events []*perfdata.Event, meta *perfdata.Meta, spec string) ([]*perfdata.Event, string, error) {
	low := strings.ToLower(spec)
	code, pmu, isCode := parseCode(low)
	for _, rule := range []struct {
		how string
		is  func(*perfdata.Event) bool
	}{
		{"by name", func(e *perfdata.Event) bool { return e.Name == spec || bareName(e.Name) == spec }},
		{"by code", func(e *perfdata.Event) bool {
			return isCode && coreEvent(e, meta) && e.Config == code && (pmu == "" || pmu == "cpu" || meta.PMUMappings[e.Type] == pmu)
		}},
		{"by part of its name", func(e *perfdata.Event) bool { return strings.Contains(strings.ToLower(e.Name), low) }},
	} {
		var found []*perfdata.Event
		for _, e := range events {
			if rule.is(e) {
				found = append(found, e)
			}
		}
		if len(found) > 0 {
			return found, list(found) + " (" + rule.how + ")", nil
		}
	}
	var have []string
	for _, e := range events {
		have = append(have, e.Name)
	}
	return nil, "", fmt.Errorf("no event %q in the recording: have %s", spec, strings.Join(have, ", "))
}

// parseCode reads perf's notations of a raw event: r02c4, and
// cpu/event=0xc4,umask=0x2/, which is x86's layout of config (event in bits
// 0-7, umask in bits 8-15; /sys/bus/event_source/devices/cpu/format).
func parseCode(s string) (config uint64, pmu string, ok bool) {
	if hex, found := strings.CutPrefix(s, "r"); found {
		config, err := strconv.ParseUint(bareName(hex), 16, 64)
		return config, "", err == nil
	}
	pmu, terms, found := strings.Cut(s, "/")
	if !found {
		return 0, "", false
	}
	terms, _, _ = strings.Cut(terms, "/")
	for t := range strings.SplitSeq(terms, ",") {
		key, value, _ := strings.Cut(t, "=")
		n, err := strconv.ParseUint(value, 0, 64)
		switch {
		case key == "name":
			continue
		case err != nil:
			return 0, "", false
		case key == "event" && n <= 0xffff:
			config |= n&0xff | n>>8<<32
		case key == "umask" && n <= 0xff:
			config |= n << 8
		case key == "config":
			config |= n
		default:
			return 0, "", false
		}
		ok = true
	}
	return config, pmu, ok
}

// coreEvent reports whether an event's config is a code of the CPU's own PMU:
// of type raw, or of a PMU with a type of its own (the kinds of cores of a
// hybrid CPU, and every PMU of Arm).
func coreEvent(e *perfdata.Event, meta *perfdata.Meta) bool {
	if e.Type == perfdata.TypeRaw {
		return true
	}
	name := meta.PMUMappings[e.Type]
	return e.Type > perfdata.TypeBreakpoint &&
		(name == "cpu" || name == "cpu_core" || name == "cpu_atom" || strings.HasPrefix(name, "armv8"))
}
