package correct

import "math"

// learn finds how much the samples of equally frequent code scatter, by the
// method of moments: the variance of log(samples/instructions) over the runs of
// one class, less what counting samples adds.
func (m *flowModel) learn() {
	var sum, free float64
	for _, f := range m.c.list {
		if f.g == nil || !f.trusted || f.sampled < 4 {
			continue
		}
		s, d := m.scatter(f)
		sum += s
		free += d
	}
	const strength = 6 // runs the prior is worth
	prior := m.opt.sigma * m.opt.sigma
	v := (sum + strength*prior) / (free + strength)
	m.s.sigma = math.Sqrt(min(max(v, 0.01), 2.25))
}

// scatter returns the sum of squares about the means of classes beyond
// counting noise, and its degrees of freedom.
func (m *flowModel) scatter(f *flowFunc) (sum, free float64) {
	type class struct{ n, size, k float64 }
	all := make([]class, f.g.Classes)
	for i, r := range f.g.Runs {
		if c := &all[f.g.Blocks[r.Block].Class]; !r.Repeats {
			c.n += m.e.runs[int(f.firstRun)+i]
			c.size += float64(r.Insts)
			c.k++
		}
	}
	const enough = 6 // samples expected in a run: fewer say more of counting than of cost
	type logs struct{ y, yy, noise, k float64 }
	seen := make([]logs, f.g.Classes)
	for i, r := range f.g.Runs {
		k := f.g.Blocks[r.Block].Class
		c := &all[k]
		mean := c.n / c.size * float64(r.Insts)
		if c.k < 2 || r.Repeats || mean < enough {
			continue
		}
		y := math.Log((m.e.runs[int(f.firstRun)+i] + 0.5) / (mean + 0.5))
		l := &seen[k]
		l.y += y
		l.yy += y * y
		l.noise += 1 / (mean + 0.5)
		l.k++
	}
	for _, l := range seen {
		if l.k < 2 {
			continue
		}
		sum += l.yy - l.y*l.y/l.k - l.noise*(1-1/l.k)
		free += l.k - 1
	}
	return sum, free
}
