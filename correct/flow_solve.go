package correct

import (
	"math"
	"math/rand/v2"
)

// flowSystem is a model of how often things happened: variables, all positive,
// and what is known of them. It is solved for the most likely values.
//
// Variables are kept as logarithms, for counts span nine orders of magnitude
// and are uncertain by factors. Known are:
//
//   - observations: n samples fell on code of size s that runs as often as the
//     variable says; n is Poisson with mean exp(x) s k, the cost k is lognormal
//     with log-sd sigma (runs);
//   - balances: one variable is the sum of others (balance);
//   - shares: of the samples that entries of a function cause, so many were
//     caused by this one (share).
type flowSystem struct {
	x     []float64 // log of the variable
	dev   []float64 // of the latest round
	runs  []flowRun
	bal   []flowBalance
	terms []flowTerm // of all balances
	share []flowShare

	g, h  []float64 // gradient and weight of runs, by variable
	info  []float64 // weight of all that is known of a variable, but balances
	diag  []float64
	sigma float64 // log-sd of the cost of runs
	cg    *conjugate
}

type flowRun struct {
	v    int32
	n, s float64
}

type flowBalance struct {
	sum        int32
	first, end int32 // of terms
	rho, r     float64
}

type flowTerm struct {
	v int32
	a float64 // share of the sum in the latest round
}

// flowShare: n of the samples that entering whole caused belong to part.
type flowShare struct {
	part, whole int32
	n, of       float64
	spread      float64 // log-sd of samples per entry
	m, t        float64
}

func (s *flowSystem) add(x float64) int32 {
	s.x = append(s.x, math.Log(x))
	return int32(len(s.x) - 1)
}

func (s *flowSystem) observe(v int32, n, size float64) {
	if size > 0 {
		s.runs = append(s.runs, flowRun{v, n, size})
	}
}

func (s *flowSystem) balance(sum int32, parts []int32) {
	b := flowBalance{sum: sum, first: int32(len(s.terms))}
	for _, p := range parts {
		s.terms = append(s.terms, flowTerm{v: p})
	}
	b.end = int32(len(s.terms))
	s.bal = append(s.bal, b)
}

// cost returns the most likely mean of a run and the weight of what it says:
// log k maximises n log(mu) - mu - log(k)^2/(2 sigma^2).
func cost(n, mu0, sigma float64) (mu, h float64) {
	if sigma <= 0 {
		return mu0, mu0
	}
	v := sigma * sigma
	k := 0.0 // Newton's method goes down to the root from any point above it
	if n > mu0 {
		k = min(v*(n-mu0), math.Log(n/mu0))
	}
	for range 16 {
		mu = mu0 * math.Exp(k)
		f := n - mu - k/v
		d := f / (mu + 1/v)
		k += d
		if math.Abs(d) < 1e-4 {
			break
		}
	}
	mu = mu0 * math.Exp(k)
	return mu, mu / (1 + v*mu)
}

// linearize prepares a round: everything known as weights of deviations from
// the present values.
func (s *flowSystem) linearize() {
	for i := range s.g {
		s.g[i], s.h[i] = 0, 1e-3
	}
	for _, r := range s.runs {
		mu, h := cost(r.n, math.Exp(s.x[r.v])*r.s, s.sigma)
		s.g[r.v] += r.n - mu
		s.h[r.v] += h
	}
	copy(s.info, s.h)
	for i := range s.share {
		p := &s.share[i]
		m := p.of * math.Exp(s.x[p.part]-s.x[p.whole])
		mu, h := cost(p.n, m, p.spread)
		p.m = h + 1e-9
		p.t = (p.n - mu) / p.m
		s.info[p.part] += p.m
		s.info[p.whole] += p.m
	}
	for i := range s.bal {
		b := &s.bal[i]
		sum, most := 0.0, s.info[b.sum]
		for k := b.first; k < b.end; k++ {
			t := &s.terms[k]
			t.a = math.Exp(s.x[t.v])
			sum += t.a
			most = max(most, s.info[t.v])
		}
		for k := b.first; k < b.end; k++ {
			s.terms[k].a /= sum
		}
		b.r = s.x[b.sum] - math.Log(sum)
		b.rho = 0.01 + 10*most
	}
}

// apply computes out = A d, the weights of the linearised model.
func (s *flowSystem) apply(d, out []float64) {
	for i := range d {
		out[i] = s.h[i] * d[i]
	}
	for i := range s.bal {
		b := &s.bal[i]
		e := d[b.sum]
		ts := s.terms[b.first:b.end]
		for k := range ts {
			e -= ts[k].a * d[ts[k].v]
		}
		e *= b.rho
		out[b.sum] += e
		for k := range ts {
			out[ts[k].v] -= ts[k].a * e
		}
	}
	for i := range s.share {
		p := &s.share[i]
		e := p.m * (d[p.part] - d[p.whole])
		out[p.part] += e
		out[p.whole] -= e
	}
}

// rhs and diag of the linearised model.
func (s *flowSystem) rhs(b, diag []float64) {
	for i := range b {
		b[i] = s.g[i]
		diag[i] = s.h[i]
	}
	for i := range s.bal {
		q := &s.bal[i]
		b[q.sum] -= q.rho * q.r
		diag[q.sum] += q.rho
		for _, t := range s.terms[q.first:q.end] {
			b[t.v] += t.a * q.rho * q.r
			diag[t.v] += t.a * t.a * q.rho
		}
	}
	for i := range s.share {
		p := &s.share[i]
		b[p.part] += p.m * p.t
		b[p.whole] -= p.m * p.t
		diag[p.part] += p.m
		diag[p.whole] += p.m
	}
}

// solve runs Gauss-Newton rounds, each solved by conjugate gradients.
func (s *flowSystem) solve(rounds, steps int) {
	n := len(s.x)
	s.g, s.h, s.dev, s.info = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	s.cg = newConjugate(n)
	b, diag := make([]float64, n), make([]float64, n)
	for range rounds {
		s.linearize()
		s.rhs(b, diag)
		s.cg.solve(s.apply, b, diag, s.dev, steps, 1e-8)
		most := 0.0
		for i, d := range s.dev {
			if d = max(min(d, farStep), -farStep); s.info[i] > 0.5 {
				most = max(most, math.Abs(d))
			}
			s.x[i] = max(s.x[i]+d, lowest)
		}
		if most < 0.005 {
			break
		}
	}
	s.linearize()
	s.diag = diag
	s.rhs(b, s.diag)
}

const (
	farStep = 1.2 // a step's length in logarithms at most, for the model is linear only near
	lowest  = -30 // of a logarithm: never executed
)

// draw returns samples of the posterior distribution about the solution, as
// deviations of logarithms: the minimum of the linearised model is found for
// observations, balances and shares that are each displaced by as much as they
// scatter.
func (s *flowSystem) draw(n int) [][]float32 {
	random := rand.New(rand.NewPCG(1, 2)) // the same in every run
	b, z := make([]float64, len(s.x)), make([]float64, len(s.x))
	var draws [][]float32
	for range n {
		for i := range b {
			b[i] = math.Sqrt(s.h[i]) * random.NormFloat64()
		}
		for i := range s.bal {
			q := &s.bal[i]
			e := math.Sqrt(q.rho) * random.NormFloat64()
			b[q.sum] += e
			for _, t := range s.terms[q.first:q.end] {
				b[t.v] -= t.a * e
			}
		}
		for i := range s.share {
			p := &s.share[i]
			e := math.Sqrt(p.m) * random.NormFloat64()
			b[p.part] += e
			b[p.whole] -= e
		}
		s.cg.solve(s.apply, b, s.diag, z, 100, 1e-5)
		d := make([]float32, len(z))
		for i := range z {
			d[i] = float32(z[i])
		}
		draws = append(draws, d)
	}
	return draws
}

// conjugate has the vectors of the method of conjugate gradients with a
// diagonal preconditioner (Golub and Van Loan, algorithm 11.5.1).
type conjugate struct{ r, z, p, q []float64 }

func newConjugate(n int) *conjugate {
	return &conjugate{make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)}
}

// solve sets x to an approximate solution of A x = b.
func (c *conjugate) solve(apply func(d, out []float64), b, diag, x []float64, steps int, precision float64) {
	r, z, p, q := c.r, c.z, c.p, c.q
	clear(x)
	copy(r, b)
	rz := 0.0
	for i := range r {
		z[i] = r[i] / diag[i]
		rz += r[i] * z[i]
	}
	copy(p, z)
	start := rz
	for range steps {
		apply(p, q)
		pq := 0.0
		for i := range p {
			pq += p[i] * q[i]
		}
		if !(pq > 0) {
			return
		}
		a, next := rz/pq, 0.0
		for i := range p {
			x[i] += a * p[i]
			r[i] -= a * q[i]
			z[i] = r[i] / diag[i]
			next += r[i] * z[i]
		}
		if next < precision*start {
			return
		}
		beta := next / rz
		rz = next
		for i := range p {
			p[i] = z[i] + beta*p[i]
		}
	}
}
