package formats

import (
	"fmt"
	"io"
	"strings"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
)

// Profile is what there is to write.
type Profile struct {
	Store  *image.Store
	Method string // that estimated the calls; "none" if they are samples

	// EventName and EventUnit are what the sampling event counts ("cpu",
	// "nanoseconds"; "cycles", "count"); see EventType.
	EventName, EventUnit string

	Stacks *graph.Stacks // for graph stacks
	DCG    *graph.DCG    // for graph dcg

	Start    int64 // ns since 1970; 0 if not known
	Duration int64 // ns
	Period   int64 // mean period of the samples, in EventUnit
	Comments []string

	// ThreadLabels adds the thread's name to the samples of a pprof file;
	// numbers are added where the stacks' labels have them.
	ThreadLabels bool
	// Inline asks for inlined calls to be shown as frames.
	Inline bool
}

// Writer writes one graph in one format.
type Writer func(io.Writer, *Profile) error

type kind struct{ graph, format string }

var writers = []struct {
	kind
	write Writer
}{
	{kind{"stacks", "pprof"}, writeStacksPprof},
	{kind{"stacks", "folded"}, writeFolded},
	{kind{"dcg", "pprof"}, writeDCGPprof},
	{kind{"dcg", "jsonl"}, writeDCGJSONL},
}

// Lookup returns the writer of a graph and format. The error says what there is.
func Lookup(graph, format string) (Writer, error) {
	var have []string
	for _, w := range writers {
		if w.kind == (kind{graph, format}) {
			return w.write, nil
		}
		if w.graph == graph {
			have = append(have, w.format)
		}
	}
	if have == nil {
		return nil, fmt.Errorf("unknown graph %q: have %s", graph, strings.Join(Graphs(), ", "))
	}
	return nil, fmt.Errorf("graph %s has no format %q: have %s", graph, format, strings.Join(have, ", "))
}

// Graphs lists the graphs there are writers for.
func Graphs() []string {
	var out []string
	for _, w := range writers {
		if len(out) == 0 || out[len(out)-1] != w.graph {
			out = append(out, w.graph)
		}
	}
	return out
}

// EventType returns the pprof sample type of an event: "cpu" in nanoseconds
// for the clocks, else its name without PMU and modifiers, in counts.
func EventType(e *perfdata.Event) (name, unit string) {
	if e == nil {
		return "events", "count"
	}
	if e.Type == perfdata.TypeSoftware && (e.Config == perfdata.SWCPUClock || e.Config == perfdata.SWTaskClock) {
		return "cpu", "nanoseconds"
	}
	name = e.Name
	if pmu, rest, ok := strings.Cut(name, "/"); ok && !strings.Contains(pmu, ":") {
		name, _, _ = strings.Cut(rest, "/")
	} else if i := strings.LastIndexByte(name, ':'); i > 0 && e.Type != perfdata.TypeTracepoint {
		name = name[:i]
	}
	switch name {
	case "":
		return "events", "count"
	case "cpu-cycles":
		name = "cycles" // the same event by perf's other name
	}
	return name, "count"
}
