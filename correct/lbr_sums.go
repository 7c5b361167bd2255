package correct

import (
	"math"
	"slices"
)

// edgeSums is what is known of each type of record: calls, and how far
// neighbouring cells of samples differ, of which errors are made.
//
// Ticks come at regular times, so a recording is a systematic sample, whose
// error is what varies between neighbours, not what changes slowly: the
// variance of a sum of cells is half the sum of squared differences between
// successive ones (Wolter, Introduction to Variance Estimation, 2007, section
// 8.2). A cell's residual is its calls less the share of the edge in both
// cells times all calls of the cell, because the calls of a stratum are known
// and only their shares are not.
type edgeSums struct {
	edges []edgeSum
	calls float64 // of all

	cell  float64   // calls of the open cell
	cells []float64 // calls of the cells of the block
}

// records returns how often a type of record was seen.
func (t *edgeSums) records(i int) int64 {
	if i >= len(t.edges) {
		return 0
	}
	return t.edges[i].records
}

type edgeSum struct {
	records int64 // seen
	calls   float64
	even    float64 // if there were only the even samples of each stratum,
	odd     float64 // or the odd ones
	newest  float64 // of estimated calls, those in the newest window of their stack
	guessed float64 // estimated calls
	vari    float64 // of calls
	cells   int32   // with it
	last    int32   // cell touched last, plus one; 0: none in this block
	now     float64 // calls in it
	before  float64 // calls in the one before
}

func (t *edgeSums) begin(types int) {
	if n := types - len(t.edges); n > 0 {
		t.edges = append(t.edges, make([]edgeSum, n)...)
	}
	t.cells, t.cell = t.cells[:0], 0
}

// add adds a record: exact calls, and estimated ones in all and in its half.
func (t *edgeSums) add(id uint32, exact, calls, half float64, even, newest bool) {
	e := &t.edges[id]
	e.guessed += calls
	if newest {
		e.newest += calls
	}
	e.records++
	e.calls += exact + calls
	t.calls += exact + calls
	if even {
		e.even += half
		e.odd += exact
		e.even += exact
	} else {
		e.odd += half + exact
		e.even += exact
	}
	cell := int32(len(t.cells)) + 1
	if e.last != cell {
		e.cells++
		t.advance(e, cell)
	}
	e.now += calls
}

// advance closes the cell an edge was touched in last and opens another.
func (t *edgeSums) advance(e *edgeSum, cell int32) {
	if e.last > 0 {
		i := int(e.last) - 1
		e.vari += t.difference(i, e.before, e.now)
		if cell > e.last+1 {
			e.vari += t.difference(i+1, e.now, 0)
			e.now = 0
		}
	}
	e.before, e.now, e.last = e.now, 0, cell
}

// difference is what cells i-1 and i add to the variance of an edge with a and
// b calls in them.
func (t *edgeSums) difference(i int, a, b float64) float64 {
	if i < 1 || i >= len(t.cells) {
		return 0
	}
	u, v := t.cells[i-1], t.cells[i]
	if u+v == 0 {
		return 0
	}
	r := (b*u - a*v) / (u + v)
	return 2 * r * r
}

func (t *edgeSums) endCell() {
	t.cells = append(t.cells, t.cell)
	t.cell = 0
}

func (t *edgeSums) endBlock() {
	end := int32(len(t.cells)) + 1
	for i := range t.edges {
		if e := &t.edges[i]; e.last > 0 {
			t.advance(e, end+1)
			e.last, e.before, e.now = 0, 0, 0
		}
	}
}

func (t *edgeSums) clone() edgeSums {
	c := *t
	c.edges, c.cells = slices.Clone(t.edges), nil
	return c
}

// merge adds o, whose types have the numbers ids here.
func (t *edgeSums) merge(o *edgeSums, ids []uint32) {
	for i := range o.edges {
		t.grow(ids[i])
		e, x := &t.edges[ids[i]], &o.edges[i]
		e.records += x.records
		e.calls += x.calls
		e.even += x.even
		e.odd += x.odd
		e.newest += x.newest
		e.guessed += x.guessed
		e.vari += x.vari
	}
	t.calls += o.calls
}

func (t *edgeSums) grow(id uint32) {
	if n := int(id) + 1 - len(t.edges); n > 0 {
		t.edges = append(t.edges, make([]edgeSum, n)...)
	}
}

// stderr is the standard error of an edge's calls. It has two parts: how they
// scatter, with one more cell like those there were, for an edge seen in few
// cells may have been missed in as many; and how far the newest window of the
// stacks and the older ones disagree, which weigh the same calls by other
// ticks: half of what is bias in either is bias in their sum. newest is the
// share that the newest windows have of all.
func (e *edgeSum) stderr(newest float64) float64 {
	v := e.vari * (1 + 1/max(float64(e.cells), 1))
	if newest > 0 && newest < 1 {
		d := (e.newest/newest - (e.guessed-e.newest)/(1-newest)) / 2
		v += d * d
	}
	m := modelError * e.calls
	return math.Sqrt(v + m*m)
}

// modelError is what the rest of the bias comes to, as a share of the calls: on
// the lab's tuning programs it makes 95 % intervals of edges seen ten times or
// more hold the truth in about 95 %. It also covers the calls before the first
// and after the last tick.
const modelError = 0.01

// newestShare is what the newest windows have of all estimated calls.
func (t *edgeSums) newestShare() float64 {
	var newest, all float64
	for i := range t.edges {
		newest += t.edges[i].newest
		all += t.edges[i].guessed
	}
	if all == 0 {
		return 0
	}
	return newest / all
}
