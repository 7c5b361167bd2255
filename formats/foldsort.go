package formats

import (
	"slices"
	"strings"
	"sync"
)

// words is a list of uint32 in chunks, so that it grows without being copied.
// What is allocated together lies in one chunk.
type words struct {
	chunks [][]uint32
	used   int // of the last chunk
}

const chunkBits = 20 // 4 MiB; a line has at most 2^16 frames and few names a frame

func (w *words) alloc(n int) (pos uint32, b []uint32) {
	if len(w.chunks) == 0 || w.used+n > 1<<chunkBits {
		w.chunks = append(w.chunks, make([]uint32, max(n, 1<<chunkBits)))
		w.used = 0
	}
	c := len(w.chunks) - 1
	pos = uint32(c)<<chunkBits | uint32(w.used)
	b = w.chunks[c][w.used : w.used+n]
	w.used += n
	return pos, b
}

// line returns the number and the names of the line at pos.
func (w *words) line(pos uint32) (id uint32, names []uint32) {
	b := w.chunks[pos>>chunkBits][pos&(1<<chunkBits-1):]
	return b[0], b[2 : 2+b[1]]
}

// name returns name d of the line at pos, which has as many.
func (w *words) name(pos, d uint32) uint32 {
	return w.chunks[pos>>chunkBits][pos&(1<<chunkBits-1)+2+d]
}

// rank replaces the number of every name in every line by its rank among all
// texts a name can stand for in a line: itself and a semicolon if others
// follow, itself and the end if it is the last. No such text begins another,
// so lines compare as the sequences of their ranks do. It returns the texts by
// rank.
func (l *foldedLines) rank() (text []string) {
	n := len(l.frames.names)
	const end = "\x00" // sorts before every character
	texts := make([]string, 0, 2*n)
	for _, s := range l.frames.names {
		texts = append(texts, s+";", s+end)
	}
	order := make([]uint32, 2*n)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return strings.Compare(texts[a], texts[b]) })
	rankOf := make([]uint32, 2*n)
	text = make([]string, 2*n)
	for r, i := range order {
		rankOf[i], text[r] = uint32(r), texts[i]
	}
	for _, pos := range l.at {
		_, names := l.words.line(pos)
		last := len(names) - 1
		for k := range last {
			names[k] = rankOf[2*names[k]]
		}
		names[last] = rankOf[2*names[last]+1]
	}
	return text
}

// parallelSort is how many lines are worth a goroutine of their own.
const parallelSort = 1 << 15

// sortLines sorts positions by the ranks of their lines: three-way radix
// quicksort (Bentley and Sedgewick 1997), which looks at each rank of a common
// beginning once for each line and not once for each comparison.
func sortLines(w *words, at []uint32) {
	var wg sync.WaitGroup
	s := lineSorter{w, &wg}
	s.sort(at, 0)
	wg.Wait()
}

type lineSorter struct {
	w  *words
	wg *sync.WaitGroup
}

func (s lineSorter) sort(at []uint32, d uint32) {
	for len(at) > 12 {
		lo, hi := s.partition(at, d)
		s.spawn(at[:lo], d)
		s.spawn(at[hi:], d)
		at = at[lo:hi]
		if _, names := s.w.line(at[0]); int(d)+1 == len(names) {
			return // all end here: they are equal
		}
		d++
	}
	slices.SortFunc(at, func(a, b uint32) int { return s.compare(a, b, d) })
}

// spawn sorts a part, in a goroutine if it is large.
func (s lineSorter) spawn(at []uint32, d uint32) {
	if len(at) < parallelSort {
		s.sort(at, d)
		return
	}
	s.wg.Go(func() { s.sort(at, d) })
}

// partition arranges the lines by their rank d: [0,lo) below a pivot, [lo,hi)
// equal to it, [hi,n) above.
func (s lineSorter) partition(at []uint32, d uint32) (lo, hi int) {
	n := len(at)
	a, b, c := s.w.name(at[0], d), s.w.name(at[n/2], d), s.w.name(at[n-1], d)
	pivot := max(min(a, b), min(max(a, b), c))
	lo, hi = 0, n
	for i := 0; i < hi; {
		switch k := s.w.name(at[i], d); {
		case k < pivot:
			at[lo], at[i] = at[i], at[lo]
			lo++
			i++
		case k > pivot:
			hi--
			at[hi], at[i] = at[i], at[hi]
		default:
			i++
		}
	}
	return lo, hi
}

func (s lineSorter) compare(a, b, d uint32) int {
	_, x := s.w.line(a)
	_, y := s.w.line(b)
	return slices.Compare(x[d:], y[d:])
}
