package correct

import "math"

// uncertainty fills in what is known of a result's errors without the truth.
//
// Expected overlap: the estimates of the even and the odd samples of each
// stratum, E and O, are independent and have twice the variance of the whole,
// so their difference has twice the standard deviation of the whole's error,
// and half the distance of E and O is what the whole's distance from the truth
// is expected to be: 1 - (1 - overlap(E, O))/2. Calls that neither half has
// seen are as many as either has seen and the other not, at most.
//
// Effective samples: independent observations of calls that would have the
// same error, sum p(1-p) / sum var(p).
func (t *edgeSums) uncertainty(r *Result) {
	var even, odd, common, spread, vari float64
	for i := range t.edges {
		even += t.edges[i].even
		odd += t.edges[i].odd
	}
	if even == 0 || odd == 0 || t.calls == 0 {
		return
	}
	for i := range t.edges {
		e := &t.edges[i]
		common += min(e.even/even, e.odd/odd)
		p := e.calls / t.calls
		spread += p * (1 - p)
		vari += e.vari / (t.calls * t.calls)
	}
	r.Overlap = 100 * (1 - (1-common)/2)
	if vari > 0 {
		r.EffectiveSamples = spread / vari
	} else {
		r.EffectiveSamples = math.Inf(1)
	}
}
