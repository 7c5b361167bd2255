package formats

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/klauspost/compress/gzip"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

// Field numbers of profile.proto (github.com/google/pprof/proto).
const (
	profileSampleType = 1
	profileSample     = 2
	profileMapping    = 3
	profileLocation   = 4
	profileFunction   = 5
	profileString     = 6
	profileTime       = 9
	profileDuration   = 10
	profilePeriodType = 11
	profilePeriod     = 12
	profileComment    = 13
	profileDefault    = 14

	typeType, typeUnit                        = 1, 2
	sampleLocation, sampleValue, sampleLabel  = 1, 2, 3
	labelKey, labelString, labelNumber        = 1, 2, 3
	mappingID, mappingStart, mappingLimit     = 1, 2, 3
	mappingOffset, mappingFile, mappingBuild  = 4, 5, 6
	mappingHasFunctions                       = 7 // 8 file names, 9 line numbers
	locationID, locationMapping, locationAddr = 1, 2, 3
	locationLine                              = 4
	lineFunction, lineLine                    = 1, 2
	functionID, functionName, functionSystem  = 1, 2, 3
	functionFile, functionStartLine           = 4, 5
)

// pprofWriter writes a profile.proto message as a stream: samples as they
// come, then what they refer to, the string table last. A profile.Profile of
// the same content, 1.2 million samples of 10 to 20 frames, would take more
// memory than everything else in the program (see BenchmarkPprof).
type pprofWriter struct {
	p     *Profile
	out   *proto
	gz    *gzip.Writer
	body  []byte // of the message being built
	inner []byte

	strings map[string]uint64
	table   []string
	used    []bool // by Loc
	carry   float64
}

type valueType struct{ name, unit string }

func newPprofWriter(w io.Writer, p *Profile, types []valueType, defaultType string) *pprofWriter {
	// Level 3 is at 100 MB/s within a tenth of the size of the best.
	gz, _ := gzip.NewWriterLevel(w, 3) // fails for unknown levels only
	pw := &pprofWriter{
		p: p, out: newProto(gz), gz: gz,
		strings: map[string]uint64{"": 0}, table: []string{""},
		used: make([]bool, p.Store.NumLocs()),
	}
	for _, t := range types {
		pw.out.message(profileSampleType, pw.valueType(t))
	}
	pw.header(defaultType)
	return pw
}

func (w *pprofWriter) valueType(t valueType) []byte {
	b := appendField(w.body[:0], typeType, w.str(t.name))
	w.body = appendField(b, typeUnit, w.str(t.unit))
	return w.body
}

// header writes what concerns the profile as a whole.
func (w *pprofWriter) header(defaultType string) {
	if w.p.EventName != "" {
		w.out.message(profilePeriodType, w.valueType(valueType{w.p.EventName, w.p.EventUnit}))
	}
	b := appendField(w.body[:0], profileTime, uint64(w.p.Start))
	b = appendField(b, profileDuration, uint64(w.p.Duration))
	b = appendField(b, profilePeriod, uint64(w.p.Period))
	for _, c := range w.p.Comments {
		b = appendField(b, profileComment, w.str(c))
	}
	w.body = appendField(b, profileDefault, w.str(defaultType))
	w.out.write(w.body)
}

func (w *pprofWriter) str(s string) uint64 {
	id, ok := w.strings[s]
	if !ok {
		id = uint64(len(w.table))
		w.strings[s] = id
		w.table = append(w.table, s)
	}
	return id
}

// sample writes one sample; labels are encoded Label messages with their tags.
func (w *pprofWriter) sample(frames []image.Loc, labels []byte, values ...int64) {
	in := w.inner[:0]
	for _, l := range frames {
		if int(l) >= len(w.used) {
			w.used = append(w.used, make([]bool, max(w.p.Store.NumLocs(), int(l)+1)-len(w.used))...)
		}
		w.used[l] = true
		in = binary.AppendUvarint(in, uint64(l)+1)
	}
	b := appendBytes(w.body[:0], sampleLocation, in)
	in = in[:0]
	for _, v := range values {
		in = binary.AppendUvarint(in, uint64(v))
	}
	b = appendBytes(b, sampleValue, in)
	w.body, w.inner = append(b, labels...), in
	w.out.message(profileSample, w.body)
}

// whole rounds estimates so that their sum stays what it is: what one loses
// the next gains. Many stacks of less than half a call each would vanish.
func (w *pprofWriter) whole(v float64) int64 {
	v += w.carry
	n := math.Max(0, math.RoundToEven(v))
	w.carry = v - n
	return int64(n)
}

// finish writes what the samples refer to.
func (w *pprofWriter) finish() error {
	s := newSymbols(w)
	s.write()
	for _, name := range w.table {
		w.out.message(profileString, []byte(name))
	}
	if err := w.out.flush(); err != nil {
		return err
	}
	return w.gz.Close()
}

// writeStacksPprof writes a profile with sample types samples, the event, and
// calls: the estimated calls into the leaf in this context.
func writeStacksPprof(out io.Writer, p *Profile) error {
	name, unit := p.EventName, p.EventUnit
	if name == "" {
		name, unit = "events", "count"
	}
	preferred := "calls"
	if p.Method == "none" {
		preferred = name
	}
	w := newPprofWriter(out, p, []valueType{{"samples", "count"}, {name, unit}, {"calls", "count"}}, preferred)
	labels := labelWriter{w: w, known: map[graph.Label][]byte{}}
	for st, v := range p.Stacks.All() {
		w.sample(st.Frames, labels.of(st.Label), v.Samples, int64(math.Round(v.Event)), w.whole(v.Calls))
	}
	return w.finish()
}

// writeDCGPprof writes the call graph as stacks of two frames: the callee's
// entry, called from the call instruction.
func writeDCGPprof(out io.Writer, p *Profile) error {
	w := newPprofWriter(out, p, []valueType{{"samples", "count"}, {"calls", "count"}}, "calls")
	for e, v := range p.DCG.All() {
		frames := [2]image.Loc{p.Store.Loc(e.Callee), p.Store.Loc(e.Site)}
		w.sample(frames[:], nil, v.Samples, int64(math.Round(v.Calls)))
	}
	return w.finish()
}

// labelWriter encodes the labels of threads, once each.
type labelWriter struct {
	w     *pprofWriter
	known map[graph.Label][]byte
}

func (lw *labelWriter) of(l graph.Label) []byte {
	b, ok := lw.known[l]
	if ok {
		return b
	}
	add := func(key string, number int, v uint64) {
		if v != 0 {
			m := appendField(nil, labelKey, lw.w.str(key))
			b = appendBytes(b, sampleLabel, appendField(m, number, v))
		}
	}
	if lw.w.p.ThreadLabels {
		add("thread", labelString, lw.w.str(l.Comm))
	}
	add("pid", labelNumber, uint64(int64(l.PID)))
	add("tid", labelNumber, uint64(int64(l.TID)))
	lw.known[l] = b
	return b
}
