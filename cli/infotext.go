package cli

import (
	"fmt"
	"io"
	"strings"
)

// writeText writes for people: one fact a line, what is missing last.
func (r *recordingInfo) writeText(w io.Writer) error {
	var b strings.Builder
	rec := r.Recording
	fmt.Fprintf(&b, "%s: %s in %.1f s, of %s in %s\n", rec.File, count(rec.Samples, "sample"), rec.Seconds,
		count(rec.Threads, "thread"), count(rec.Processes, "process"))
	if rec.Host+rec.OSRelease+rec.PerfVersion != "" {
		fmt.Fprintf(&b, "  recorded on %s, Linux %s %s, by perf %s\n", orUnknown(rec.Host), orUnknown(rec.OSRelease), rec.Arch, orUnknown(rec.PerfVersion))
	}
	if rec.CPU != "" {
		fmt.Fprintf(&b, "  on %s of %s\n", count(int(rec.CPUsOnline), "CPU"), rec.CPU)
	}
	if len(rec.Cmdline) > 0 {
		fmt.Fprintf(&b, "  with %s\n", shellWords(rec.Cmdline))
	}
	b.WriteString("\nevents\n")
	for _, e := range r.Events {
		fmt.Fprintf(&b, "  %s: %s\n", e.Name, e.text())
	}
	b.WriteString("\nevidence\n")
	for _, e := range r.Evidence {
		fmt.Fprintf(&b, "  %s %-17s %s\n", mark(e.There), e.Name, e.Detail)
	}
	b.WriteString("\nmethods\n")
	for _, m := range r.Methods {
		fmt.Fprintf(&b, "  %s %-17s %s\n", mark(m.Works), m.Name, m.Detail)
	}
	if len(r.Advice) > 0 {
		b.WriteString("\nwhat would have made it better\n")
	}
	for _, a := range r.Advice {
		fmt.Fprintf(&b, "  %s\n", a.What)
		if a.Hint != "" {
			fmt.Fprintf(&b, "      %s\n", a.Hint)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (e eventPart) text() string {
	parts := []string{count(e.Samples, "sample")}
	switch {
	case strings.HasSuffix(e.Every, "Hz"):
		parts = append(parts, fmt.Sprintf("at %s (period %.0f on average)", e.Every, e.Period))
	case e.Every != "":
		parts = append(parts, "one every "+e.Every)
	}
	if e.Leader != "" {
		parts = append(parts, "in the group of "+e.Leader)
	}
	return strings.Join(parts, ", ")
}

func mark(there bool) string {
	if there {
		return "+"
	}
	return "-"
}

func orUnknown(s string) string {
	if s == "" {
		return "(unknown)"
	}
	return s
}

// shellWords is a command line as one could type it.
func shellWords(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$&|;<>(){}[]*?!#~`") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		quoted[i] = a
	}
	return strings.Join(quoted, " ")
}
