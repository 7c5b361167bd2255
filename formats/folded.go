package formats

import (
	"bufio"
	"io"
	"math"
	"strconv"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

// writeFolded writes one line for each distinct stack of names,
//
//	comm;outermost;...;leaf value
//
// as stackcollapse-perf.pl --all (github.com/brendangregg/FlameGraph) makes
// them of perf script's output, sorted as it sorts. The value is the estimate
// of calls into the leaf, for method none the number of samples.
func writeFolded(w io.Writer, p *Profile) error {
	l := newFoldedLines(p.Store, p.Inline)
	for st := range p.Stacks.All() {
		l.add(st)
	}
	return l.write(w, func(i uint32) float64 {
		_, v := p.Stacks.At(int(i))
		if p.Method == "none" {
			return float64(v.Samples)
		}
		return v.Calls
	})
}

// foldedLines are the lines of a folded file before equal ones are summed:
// each a sequence of name numbers, 4 bytes a frame, which is all that a stack
// costs beside what it costs in Stacks.
type foldedLines struct {
	frames frameNames
	words  words
	at     []uint32 // where each line is in words: its number, its length, its names
	next   []uint32
}

func newFoldedLines(s *image.Store, inline bool) *foldedLines {
	return &foldedLines{frames: newFrameNames(s, inline)}
}

// add adds the line of a stack. Lines are numbered in the order they come.
func (l *foldedLines) add(st graph.Stack) {
	comm, java := l.frames.comm(st.Label)
	names := append(l.next[:0], comm)
	for i := len(st.Frames) - 1; i >= 0; i-- {
		names = l.frames.append(names, st.Frames[i], java)
	}
	l.next = names
	l.addNames(names)
}

func (l *foldedLines) addNames(names []uint32) {
	pos, b := l.words.alloc(2 + len(names))
	b[0], b[1] = uint32(len(l.at)), uint32(len(names))
	copy(b[2:], names)
	l.at = append(l.at, pos)
}

// write writes the lines in the byte order of their text; lines of the same
// text are one, with the sum of their values.
func (l *foldedLines) write(w io.Writer, value func(line uint32) float64) error {
	text := l.rank()
	sortLines(&l.words, l.at)
	out := bufio.NewWriterSize(w, 1<<16)
	var line, number []byte
	for i := 0; i < len(l.at); {
		id, names := l.words.line(l.at[i])
		sum := value(id)
		for i++; i < len(l.at); i++ {
			id, more := l.words.line(l.at[i])
			if !equal(names, more) {
				break
			}
			sum += value(id)
		}
		line = line[:0]
		for _, r := range names {
			line = append(line, text[r]...)
		}
		number = append(appendValue(number[:0], sum), '\n')
		line[len(line)-1] = ' ' // was the mark of the end
		out.Write(line)
		if _, err := out.Write(number); err != nil {
			return err
		}
	}
	return out.Flush()
}

// equal compares sequences from their ends, where most of them differ.
func equal(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := len(a) - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// appendValue writes a value without exponent, which flamegraph.pl would not
// read; one that is not whole with at most 8 digits that mean something.
func appendValue(b []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'f', -1, 32)
}
