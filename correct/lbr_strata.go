package correct

// A stratum is consecutive samples of a thread whose calls are known together.
const (
	stratumSamples = 16 // at least, and
	stratumRecords = 256
	cellSamples    = 4 // of the cells that standard errors are made of
)

// calibrate scales the weights of the block's samples to the calls counted and
// adds their calls to the sums.
func (w *weigher) calibrate() {
	samples := w.block.samples
	w.sums.begin(w.rec.types.len())
	for start := 0; start < len(samples); {
		end := w.stratumEnd(samples, start)
		w.stratum(samples[start:end])
		start = end
	}
	w.sums.endBlock()
}

// stratumEnd returns where the stratum that begins at start ends. Without
// spans each stack has its own interval's calls to share.
func (w *weigher) stratumEnd(samples []stackSample, start int) int {
	end, records := start+1, int(samples[start].edges)
	if w.plain {
		return end
	}
	for end < len(samples) && samples[end].thread == samples[start].thread &&
		(end-start < stratumSamples || records < stratumRecords) {
		records += int(samples[end].edges)
		end++
	}
	return end
}

// factors are what the weights of a stratum are multiplied by: in all of it,
// and in its even and odd samples, if either had been all.
type factors struct{ all, even, odd float64 }

// stratum adds the calls of one stratum.
//
// If an interval had no more calls than its stack has records, the newest are
// these calls, each seen once, and older ones are of earlier intervals, which
// have counted them. (Of an interval with a few calls more, all could be taken
// for seen but those few. But what comes first after a tick is no fair sample
// of the rest: that cost 0.2 points on average.)
func (w *weigher) stratum(samples []stackSample) {
	w.t.strata++
	f := w.factors(samples)
	for i := range samples {
		s := &samples[i]
		known, rest := w.known(s)
		fs := f
		if rest == 0 {
			fs = factors{}
		}
		even := i%2 == 0
		if len(samples) == 1 { // every other stratum is one half
			even = w.t.strata%2 == 0
			fs.even, fs.odd = 2*fs.all, 2*fs.all
		}
		w.emit(s, known, fs, even)
		if i%cellSamples == cellSamples-1 || i == len(samples)-1 {
			w.sums.endCell()
		}
	}
}

func (w *weigher) factors(samples []stackSample) (f factors) {
	var weight, even, rest, clock, uncounted float64
	for i := range samples {
		s := &samples[i]
		known, r := w.known(s)
		if r < 0 {
			w.t.uncounted++
			uncounted += float64(s.clock)
		} else {
			w.t.counted++
			w.t.calls += float64(known) + r
			rest += r
			clock += float64(s.clock)
			if r == 0 {
				w.t.exact++
				continue
			}
		}
		weight += float64(s.weight)
		if i%2 == 0 {
			even += float64(s.weight)
		}
	}
	switch {
	case weight == 0:
		return f
	case clock == 0: // no counter: each sample stands for its period
		f.all = uncounted / float64(len(samples))
		if w.plain {
			f.all = 1
		}
		return factors{f.all, 2 * f.all, 2 * f.all}
	}
	rest *= (clock + uncounted) / clock
	f.all = rest / weight
	if even > 0 {
		f.even = rest / even
	}
	if odd := weight - even; odd > 0 {
		f.odd = rest / odd
	}
	return f
}

// known returns how many of the sample's newest calls are all there is to
// know, and how many calls of its interval are left; -1 if they were not
// counted.
func (w *weigher) known(s *stackSample) (known int, rest float64) {
	if s.calls < 0 {
		return 0, -1
	}
	if w.census && !w.plain && w.mode == onlyCalls {
		if n := int(s.calls + 0.5); n <= int(s.edges) {
			return n, 0
		}
	}
	return 0, float64(s.calls)
}

// emit adds a sample's calls.
func (w *weigher) emit(s *stackSample, known int, f factors, even bool) {
	w.weigh(s)
	for j, id := range w.block.ids[s.at : s.at+uint32(s.n)] {
		if !w.rec.isEdge(id) {
			w.sums.edges[id].records++
			continue
		}
		x := float64(w.x[j])
		exact := 0.0
		if known > 0 {
			known--
			exact = 1
			if known == 0 { // whether the oldest is in the interval is not sure
				w.sums.edges[id].vari++
			}
		}
		half := f.odd * x
		if even {
			half = f.even * x
		}
		w.sums.add(id, exact, f.all*x, half, even, j < w.ctx.window)
	}
	w.sums.cell += f.all * float64(s.weight)
}
