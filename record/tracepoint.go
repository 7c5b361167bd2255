package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// tracefs is mounted at either place.
var tracefs = []string{"sys/kernel/tracing", "sys/kernel/debug/tracing"}

func (m *Machine) tracepoint(ev *Event, system, name string) error {
	var err error
	for _, dir := range tracefs {
		var id uint64
		id, err = readUint(m.root, path.Join(dir, "events", system, name, "id"))
		if err == nil {
			ev.Attr.Type, ev.Attr.Config = perfdata.TypeTracepoint, id
			return nil
		}
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("tracepoints are readable by root only: %w", err)
		}
	}
	for _, dir := range tracefs {
		if _, err := fs.Stat(m.root, path.Join(dir, "events")); err == nil {
			return fmt.Errorf("no such tracepoint (/%s/events lists them)", dir)
		}
	}
	return fmt.Errorf("no such event; tracepoints need tracefs: mount -t tracefs tracefs /sys/kernel/tracing: %w", err)
}

// TracingData is what perf script needs to print tracepoints: their formats,
// in the layout of trace-cmd 0.6 (tools/perf/util/trace-event-info.c). names
// are those of the events, "sched:sched_switch". It is nil without tracepoints.
func (m *Machine) TracingData(names []string) []byte {
	systems := map[string][]string{}
	for _, n := range names {
		system, name, _ := strings.Cut(n, ":")
		name, _, _ = strings.Cut(name, ":") // modifiers
		if !slices.Contains(systems[system], name) {
			systems[system] = append(systems[system], name)
		}
	}
	if len(systems) == 0 {
		return nil
	}
	le := binary.LittleEndian
	read := func(name string) []byte {
		for _, dir := range tracefs {
			if b, err := fs.ReadFile(m.root, path.Join(dir, name)); err == nil {
				return b
			}
		}
		return nil
	}
	var b bytes.Buffer
	block := func(data []byte) {
		b.Write(le.AppendUint64(nil, uint64(len(data))))
		b.Write(data)
	}
	number := func(n int) { b.Write(le.AppendUint32(nil, uint32(n))) }
	b.WriteString("\x17\x08\x44tracing0.6\x00")
	b.WriteByte(0) // little endian
	b.WriteByte(8) // size of long
	number(os.Getpagesize())
	b.WriteString("header_page\x00")
	block(read("events/header_page"))
	b.WriteString("header_event\x00")
	block(read("events/header_event"))
	number(0) // events of ftrace itself
	number(len(systems))
	for _, system := range sortedKeys(systems) {
		b.WriteString(system + "\x00")
		number(len(systems[system]))
		for _, name := range systems[system] {
			block(read(path.Join("events", system, name, "format")))
		}
	}
	number(0)  // kallsyms
	number(0)  // printk formats
	block(nil) // command names
	return b.Bytes()
}
