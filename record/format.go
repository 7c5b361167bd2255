package record

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// Format says which bits of the attr a term fills: "config:0-7,32-35".
type Format struct {
	Field string // config, config1, config2, config3
	Bits  []BitRange
}

// BitRange is bits From to To, both included.
type BitRange struct{ From, To int }

// ParseFormat reads a format file of a PMU.
func ParseFormat(text string) (Format, error) {
	field, bits, ok := strings.Cut(strings.TrimSpace(text), ":")
	f := Format{Field: field}
	switch field {
	case "config", "config1", "config2", "config3":
	default:
		ok = false
	}
	if !ok {
		return f, fmt.Errorf("%q is no format", text)
	}
	for part := range strings.SplitSeq(bits, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || a < 0 || b < a || b > 63 {
			return f, fmt.Errorf("%q is no format", text)
		}
		f.Bits = append(f.Bits, BitRange{a, b})
	}
	return f, nil
}

// Width is the number of bits of the term's value.
func (f Format) Width() int {
	n := 0
	for _, b := range f.Bits {
		n += b.To - b.From + 1
	}
	return n
}

// Set puts value into the attr, lowest bits into the first range
// (tools/perf/util/pmu.c, pmu_format_value).
func (f Format) Set(a *perfdata.Attr, value uint64) error {
	if w := f.Width(); w < 64 && value>>w != 0 {
		return fmt.Errorf("value %#x is too large: it has %d bits", value, w)
	}
	var word uint64
	for _, b := range f.Bits {
		for bit := b.From; bit <= b.To; bit++ {
			word |= value & 1 << bit
			value >>= 1
		}
	}
	switch f.Field {
	case "config":
		a.Config |= word
	case "config1":
		a.Config1 |= word
	case "config2":
		a.Config2 |= word
	case "config3":
		a.Config3 |= word
	}
	return nil
}
