package accuracy

import (
	"cmp"
	"math"
	"slices"
)

// Weights maps edges (calls, contexts, branch directions) to how often they
// were taken. Only their proportions matter to the metrics.
type Weights[K comparable] map[K]float64

// total sums in ascending order of value, so that the result does not depend
// on the order in which Go walks the map.
func (w Weights[K]) total() float64 { return orderedSum(w.values()) }

func (w Weights[K]) values() []float64 {
	v := make([]float64, 0, len(w))
	for _, x := range w {
		v = append(v, x)
	}
	return v
}

func (w Weights[K]) hottest() float64 {
	h := 0.0
	for _, x := range w {
		h = max(h, x)
	}
	return h
}

func orderedSum(v []float64) float64 {
	slices.Sort(v)
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s
}

// Overlap is the degree of overlap (Zhuang 2006, section 3.1; Lee 2015,
// section 5.2): the sum over common edges of the smaller of their shares of
// the total weight, in percent. Two empty profiles overlap fully, an empty
// one and another not at all.
func Overlap[K comparable](a, b Weights[K]) float64 {
	ta, tb := a.total(), b.total()
	if ta == 0 || tb == 0 {
		if ta == tb {
			return 100
		}
		return 0
	}
	var common []float64
	for k, x := range a {
		if y, ok := b[k]; ok {
			common = append(common, min(x/ta, y/tb))
		}
	}
	return 100 * orderedSum(common)
}

// HotEdgeCoverage is the share of the hot edges of b, in percent of their
// number, that are hot in a as well (Zhuang 2006, Figure 2: coverage of a over
// b). An edge is hot in a profile if it weighs at least t times as much as the
// profile's hottest edge; 0 < t < 1.
func HotEdgeCoverage[K comparable](a, b Weights[K], t float64) float64 {
	ha, hb := t*a.hottest(), t*b.hottest()
	hot, covered := 0, 0
	for k, y := range b {
		if y < hb || y == 0 {
			continue
		}
		hot++
		if x := a[k]; x > 0 && x >= ha {
			covered++
		}
	}
	if hot == 0 {
		return 100
	}
	return 100 * float64(covered) / float64(hot)
}

// Correlation is Pearson's coefficient, in percent, between the counters of
// two profiles, over every counter that either has (a missing one counts 0:
// Chilingarova and Safonov 2006, section 5). It is 100 where both are the same
// even if it is undefined there because no counter differs from another.
func Correlation[K comparable](a, b Weights[K]) float64 {
	type pair struct{ x, y float64 }
	pairs := make([]pair, 0, max(len(a), len(b)))
	same := true
	for k, x := range a {
		pairs = append(pairs, pair{x, b[k]})
		same = same && x == b[k]
	}
	for k, y := range b {
		if _, ok := a[k]; !ok {
			pairs = append(pairs, pair{0, y})
			same = same && y == 0
		}
	}
	if same {
		return 100
	}
	slices.SortFunc(pairs, func(p, q pair) int {
		return cmp.Or(cmp.Compare(p.x, q.x), cmp.Compare(p.y, q.y))
	})
	var mx, my float64
	for _, p := range pairs {
		mx += p.x / float64(len(pairs))
		my += p.y / float64(len(pairs))
	}
	var xy, xx, yy float64
	for _, p := range pairs {
		xy += (p.x - mx) * (p.y - my)
		xx += (p.x - mx) * (p.x - mx)
		yy += (p.y - my) * (p.y - my)
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return 100 * xy / math.Sqrt(xx*yy)
}

// A Branch is what is known of one conditional branch: how often it was taken
// and how often it fell through.
type Branch struct{ Taken, NotTaken float64 }

func (b Branch) freq() float64 { return b.Taken + b.NotTaken }

// bias is the taken share. A branch the estimate never saw has none; one half
// is the guess that knows nothing.
func (b Branch) bias() float64 {
	if b.freq() == 0 {
		return 0.5
	}
	return b.Taken / b.freq()
}

// RelativeOverlap says how well biases are predicted (Bond and McKinley 2005,
// section 6.4): 1 - |bias(truth) - bias(got)|, weighted by how often each
// branch was truly executed, in percent.
func RelativeOverlap[K comparable](truth, got map[K]Branch) float64 {
	var right, all []float64
	for k, b := range truth {
		right = append(right, b.freq()*(1-math.Abs(b.bias()-got[k].bias())))
		all = append(all, b.freq())
	}
	t := orderedSum(all)
	if t == 0 {
		return 100
	}
	return 100 * orderedSum(right) / t
}

// AbsoluteOverlap is the degree of overlap of branch directions: every branch
// gives two edges, taken and fall-through (same section of the same paper).
func AbsoluteOverlap[K comparable](truth, got map[K]Branch) float64 {
	return Overlap(directions(truth), directions(got))
}

type direction[K comparable] struct {
	branch K
	taken  bool
}

func directions[K comparable](bs map[K]Branch) Weights[direction[K]] {
	w := make(Weights[direction[K]], 2*len(bs))
	for k, b := range bs {
		w[direction[K]{k, true}] = b.Taken
		w[direction[K]{k, false}] = b.NotTaken
	}
	return w
}

// A Path is an acyclic path: how often it ran and how many branches it has.
type Path struct {
	Freq     float64
	Branches int
}

// flow is the branch flow of a path (Bond and McKinley 2005, section 6.3).
func (p Path) flow() float64 { return p.Freq * float64(p.Branches) }

// HotPathShare is the share of the total flow above which a path is hot.
const HotPathShare = 0.00125

// WallMatching is Wall's weight-matching scheme with branch flow: of the flow
// on the truly hot paths (more than HotPathShare of all flow), how much lies
// on those of them that are also among the estimate's equally many hottest, in
// percent.
func WallMatching[K cmp.Ordered](truth, got map[K]Path) float64 {
	actual := hottestPaths(truth)
	limit := HotPathShare * totalFlow(truth)
	n := 0
	for n < len(actual) && truth[actual[n]].flow() > limit {
		n++
	}
	if n == 0 {
		return 100
	}
	estimated := map[K]bool{}
	for i, k := range hottestPaths(got) {
		if i == n {
			break
		}
		estimated[k] = true
	}
	hot, matched := 0.0, 0.0
	for _, k := range actual[:n] {
		hot += truth[k].flow()
		if estimated[k] {
			matched += truth[k].flow()
		}
	}
	return 100 * matched / hot
}

func totalFlow[K comparable](ps map[K]Path) float64 {
	v := make([]float64, 0, len(ps))
	for _, p := range ps {
		v = append(v, p.flow())
	}
	return orderedSum(v)
}

// hottestPaths returns the paths with any flow, hottest first, ties in order
// of their keys.
func hottestPaths[K cmp.Ordered](ps map[K]Path) []K {
	ks := make([]K, 0, len(ps))
	for k, p := range ps {
		if p.flow() > 0 {
			ks = append(ks, k)
		}
	}
	slices.SortFunc(ks, func(a, b K) int {
		return cmp.Or(cmp.Compare(ps[b].flow(), ps[a].flow()), cmp.Compare(a, b))
	})
	return ks
}
