package correct

import (
	"math"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/image/x86"
)

// flowSkid finds by how many instructions samples lag behind what they were
// taken for. The cost of code changes from one run of instructions to the next,
// so with a constant lag of d instructions the samples of a run change between
// its instructions d-1 and d, and hardly elsewhere.
//
// Then the first d instructions of a function get the samples of its caller's
// last ones before the call. For the callees of one indirect call those are
// the same instructions, and their samples tell how the call is divided,
// whatever anything costs.
type flowSkid struct {
	c     *flowCode
	leafs map[image.Loc]float64
	lag   int // instructions; 0: none, or not constant
}

// most is the longest lag looked for: beyond it too few runs are long enough.
const mostLag = 12

func newFlowSkid(c *flowCode) *flowSkid {
	return &flowSkid{c: c, leafs: map[image.Loc]float64{}}
}

// learn finds the lag. The change at boundary j is measured as the mean square
// of log(n_j/n_j-1) beyond what counting makes of it.
func (k *flowSkid) learn() {
	type place struct {
		f   *flowFunc
		run int32
	}
	at := map[place]*[mostLag + 1]float64{}
	for l, w := range k.leafs {
		x := k.c.loc(l)
		if x.run < 0 {
			continue
		}
		pos := k.position(l, &x)
		if pos < 0 || pos > mostLag {
			continue
		}
		p := place{x.f, x.run}
		if at[p] == nil {
			at[p] = new([mostLag + 1]float64)
		}
		at[p][pos] += w
	}
	var change, weight [mostLag + 1]float64
	for p, n := range at {
		insts := p.f.g.Runs[p.run].Insts
		for j := 1; j <= mostLag && j < insts; j++ {
			a, b := n[j-1], n[j]
			if a+b < 6 {
				continue
			}
			scale := 4 / ((a + b) * (a + b)) // of a squared difference to a squared logarithm
			w := min(a+b, 50)
			change[j] += w * ((a-b)*(a-b) - (a + b)) * scale
			weight[j] += w
		}
	}
	k.lag = lagOf(change, weight)
}

// lagOf returns the boundary at which samples change far more than at others.
func lagOf(change, weight [mostLag + 1]float64) int {
	best, most, others, n := 0, 0.0, 0.0, 0.0
	for j := 1; j <= mostLag; j++ {
		if weight[j] < 150 {
			continue
		}
		v := change[j] / weight[j]
		others += max(v, 0)
		n++
		if v > most {
			best, most = j, v
		}
	}
	if n < 4 || most < 0.05 || most < 4*(others-most)/(n-1) {
		return 0
	}
	return best
}

// position is the number of an instruction in its run, -1 if it cannot be told.
func (k *flowSkid) position(l image.Loc, x *flowLoc) int {
	run := &x.f.g.Runs[x.run]
	im := x.f.fn.Image
	off, ok := im.FileOffset(run.Start)
	if !ok {
		return -1
	}
	goal := k.c.store.Addr(l).Offset
	code := im.Text(off, int(run.End-run.Start))
	for n, at := 0, off; at-off < uint64(len(code)) && n <= mostLag; n++ {
		if at == goal {
			return n
		}
		in, err := x86.Decode(code[at-off:], at)
		if err != nil {
			return -1
		}
		at = in.End()
	}
	return -1
}

// head returns what a sample at l counts as one of the last instructions
// before the call of x's function, 0 if it is not one of its first. A function
// shorter than the lag shows only part of these.
func (k *flowSkid) head(l image.Loc, x *flowLoc) float64 {
	if k.lag == 0 || x.f == nil || x.run < 0 || x.f.g.Runs[x.run].Start != x.f.g.Entry || !x.f.certain[x.run] {
		return 0
	}
	if p := k.position(l, x); p >= 0 && p < k.lag {
		return float64(k.lag) / math.Min(float64(k.lag), float64(x.f.g.Runs[x.run].Insts))
	}
	return 0
}
