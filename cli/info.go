package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

func infoCommand() *command {
	return &command{
		name:    "info",
		args:    "[perf.data...]",
		summary: "tell what is in a recording, and what can be made of it",
		about: `Reads recordings of perf record and tells what is in them: who recorded what,
the events, what evidence of calls there is, which methods of perfcorrect it
supports, and what would have made it better. With --format jsonl each line is
an object with a member "kind": recording, event, evidence, method or advice.`,
		flags: func(fs *flagSet) runFunc {
			i := new(info)
			i.inputFlags.declare(fs)
			i.format = choice(fs, "format", "text to read, or JSON lines for machines", "text", "jsonl")
			fs.stringVar(&i.output, "output", "o", "-", "write to `FILE`; - is standard output")
			fs.stringVar(&i.callEvent, "call-event", "", "", "the event that counts calls, by `NAME` or code; default is recognised")
			return i.run
		},
	}
}

type info struct {
	inputFlags
	format    *string
	output    string
	callEvent string
}

func (i *info) run(ctx context.Context, e *env, args []string) error {
	names, err := i.names(args)
	if err != nil {
		return err
	}
	return e.writeOutput(ctx, i.output, func(w io.Writer) error {
		for _, name := range names {
			r, err := i.read(ctx, e, name)
			if err != nil {
				return err
			}
			if *i.format == "jsonl" {
				err = r.writeJSON(w)
			} else {
				err = r.writeText(w)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// read reads all of a recording, for only then is known what it lacks.
func (i *info) read(ctx context.Context, e *env, name string) (*recordingInfo, error) {
	i.store = nil // the files of one recording are not the next one's
	in, err := i.open(e, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	t := newTally()
	for s, err := range in.samples(ctx, e) {
		if err != nil {
			return nil, err
		}
		t.add(s)
	}
	return i.describe(in, t), nil
}

// recordingInfo is what info tells of one recording. Its parts are the
// objects of --format jsonl.
type recordingInfo struct {
	Recording recordingPart
	Events    []eventPart
	Evidence  []evidencePart
	Methods   []methodPart
	Advice    []note
}

type recordingPart struct {
	File        string   `json:"file"`
	Host        string   `json:"host,omitempty"`
	OSRelease   string   `json:"os_release,omitempty"`
	Arch        string   `json:"arch,omitempty"`
	CPU         string   `json:"cpu,omitempty"`
	CPUsOnline  uint32   `json:"cpus_online,omitempty"`
	PerfVersion string   `json:"perf_version,omitempty"`
	Cmdline     []string `json:"cmdline,omitempty"`
	Mode        string   `json:"mode"` // file, pipe or directory
	Compressed  bool     `json:"compressed"`
	Samples     uint64   `json:"samples"`
	Seconds     float64  `json:"seconds"` // from the first to the last sample
	Processes   int      `json:"processes"`
	Threads     int      `json:"threads"` // with samples
	Records     int64    `json:"records"`
}

type eventPart struct {
	Name    string  `json:"name"`
	Samples uint64  `json:"samples"`
	Every   string  `json:"every,omitempty"` // period or frequency asked for
	Period  float64 `json:"mean_period,omitempty"`
	Leader  string  `json:"leader,omitempty"` // of its group, if it is a member
}

type evidencePart struct {
	Name   string `json:"name"`
	There  bool   `json:"there"`
	Detail string `json:"detail"`
}

type methodPart struct {
	Name   string `json:"name"`
	Works  bool   `json:"works"`
	Detail string `json:"detail"`
}

func (r *recordingInfo) writeJSON(w io.Writer) error {
	type part struct {
		kind string
		body any
	}
	parts := []part{{"recording", r.Recording}}
	for _, p := range r.Events {
		parts = append(parts, part{"event", p})
	}
	for _, p := range r.Evidence {
		parts = append(parts, part{"evidence", p})
	}
	for _, p := range r.Methods {
		parts = append(parts, part{"method", p})
	}
	for _, p := range r.Advice {
		parts = append(parts, part{"advice", p})
	}
	for _, p := range parts {
		b, err := json.Marshal(p.body)
		if err != nil {
			return err
		}
		// The body is an object with at least one member.
		if _, err := fmt.Fprintf(w, "{\"kind\":%q,%s\n", p.kind, b[1:]); err != nil {
			return err
		}
	}
	return nil
}
