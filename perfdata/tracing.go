package perfdata

import (
	"bytes"
	"strconv"
	"strings"
)

// tracepointNames finds the names of tracepoints, "system:name" by
// Attr.Config, in the tracing data of perf (trace-cmd's format 0.5 and 0.6:
// tools/perf/util/trace-event-info.c): after a header come counted blocks of
// format descriptions, first those of ftrace, then those of each system. What
// cannot be read is left out: names are a convenience here.
func tracepointNames(b []byte) map[uint64]string {
	const magic = "\x17\x08\x44tracing"
	rest, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok {
		return nil
	}
	c := &cursor{b: rest}
	c.cstr() // version
	c.big = c.u8() != 0
	c.u8()  // size of long
	c.u32() // page size
	for range 2 {
		c.cstr() // "header_page", "header_event"
		c.take(c.u64())
	}
	for range c.u32() {
		c.take(c.u64()) // events of ftrace itself
		if c.bad {
			return nil
		}
	}
	names := make(map[uint64]string)
	for range c.u32() {
		system := c.cstr()
		for range c.u32() {
			name, id, ok := formatName(c.take(c.u64()))
			if c.bad {
				return names
			}
			if ok {
				names[id] = system + ":" + name
			}
		}
		if c.bad {
			break
		}
	}
	return names
}

// formatName reads the first lines of a format file of tracefs: "name: NAME"
// and "ID: NUMBER".
func formatName(b []byte) (name string, id uint64, ok bool) {
	for line := range strings.Lines(string(b[:min(len(b), 512)])) {
		if v, found := strings.CutPrefix(line, "name: "); found {
			name = strings.TrimSpace(v)
		}
		if v, found := strings.CutPrefix(line, "ID: "); found {
			n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
			return name, n, err == nil && name != ""
		}
	}
	return "", 0, false
}

// cstr reads a string that ends in NUL.
func (c *cursor) cstr() string {
	i := bytes.IndexByte(c.b, 0)
	if i < 0 {
		c.fail()
		return ""
	}
	s := string(c.b[:i])
	c.b = c.b[i+1:]
	return s
}

// simpleperfNames finds the names simpleperf records in its own feature
// META_INFO (129), pairs of strings: "event_type_info" is a list of lines
// "name,type,config".
func simpleperfNames(b []byte) map[[2]uint64]string {
	parts := strings.Split(string(b), "\x00")
	for i := 0; i+1 < len(parts); i += 2 {
		if parts[i] != "event_type_info" {
			continue
		}
		names := make(map[[2]uint64]string)
		for line := range strings.Lines(parts[i+1]) {
			f := strings.Split(strings.TrimSpace(line), ",")
			if len(f) != 3 {
				continue
			}
			typ, err1 := strconv.ParseUint(f[1], 10, 32)
			config, err2 := strconv.ParseUint(f[2], 10, 64)
			if err1 == nil && err2 == nil {
				names[[2]uint64{typ, config}] = f[0]
			}
		}
		return names
	}
	return nil
}
