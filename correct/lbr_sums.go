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
	vari    float64 // of calls
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
func (t *edgeSums) add(id uint32, exact, calls, half float64, even bool) {
	e := &t.edges[id]
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
		e.vari += x.vari
	}
	t.calls += o.calls
}

func (t *edgeSums) grow(id uint32) {
	if n := int(id) + 1 - len(t.edges); n > 0 {
		t.edges = append(t.edges, make([]edgeSum, n)...)
	}
}

// stderr of an edge's calls. The variance is between cells; one cell has none
// to compare with, so a record has at least the error of one observation of
// its weight.
func (e *edgeSum) stderr() float64 { return math.Sqrt(e.vari) }
