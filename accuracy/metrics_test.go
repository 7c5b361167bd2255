package accuracy

import (
	"math"
	"testing"
)

func near(t *testing.T, name string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s = %v, want %v", name, got, want)
	}
}

// Two graphs with totals 10 and 20: shares A .6/.5, B .3/.1, C .1/0, D 0/.4.
var (
	graph1 = Weights[string]{"A": 6, "B": 3, "C": 1}
	graph2 = Weights[string]{"A": 10, "B": 2, "D": 8}
)

func TestOverlap(t *testing.T) {
	near(t, "overlap", Overlap(graph1, graph2), 100*(0.5+0.1))
	near(t, "the other way", Overlap(graph2, graph1), 60)
	near(t, "self", Overlap(graph1, graph1), 100)
	near(t, "scaled self", Overlap(graph1, Weights[string]{"A": 60, "B": 30, "C": 10}), 100)
	near(t, "disjoint", Overlap(graph1, Weights[string]{"Z": 1}), 0)
	near(t, "empty", Overlap(graph1, Weights[string]{}), 0)
	near(t, "both empty", Overlap(Weights[string]{}, Weights[string]{}), 100)
}

func TestHotEdgeCoverage(t *testing.T) {
	// T = 0.25: hot in graph1 (>= 1.5): A, B; hot in graph2 (>= 2.5): A, D.
	near(t, "1 over 2", HotEdgeCoverage(graph1, graph2, 0.25), 50)
	near(t, "2 over 1", HotEdgeCoverage(graph2, graph1, 0.25), 50)
	// T = 0.05: hot in graph1 (>= 0.3): A, B, C; in graph2 (>= 0.5): A, B, D.
	near(t, "low T", HotEdgeCoverage(graph1, graph2, 0.05), 200.0/3)
	// T = 0.95: only the hottest edge of each, the same one.
	near(t, "high T", HotEdgeCoverage(graph1, graph2, 0.95), 100)
	near(t, "self", HotEdgeCoverage(graph1, graph1, 0.5), 100)
	near(t, "nothing estimated", HotEdgeCoverage(Weights[string]{}, graph2, 0.5), 0)
}

func TestCorrelation(t *testing.T) {
	// x = (1, 2, 3), y = (1, 3, 2): covariance 1, variances 2 and 2.
	a := Weights[string]{"p": 1, "q": 2, "r": 3}
	near(t, "half", Correlation(a, Weights[string]{"p": 1, "q": 3, "r": 2}), 50)
	near(t, "linear", Correlation(a, Weights[string]{"p": 10, "q": 20, "r": 30}), 100)
	near(t, "inverse", Correlation(a, Weights[string]{"p": 3, "q": 2, "r": 1}), -100)
	// A counter that one side lacks is 0: x = (1, 0), y = (0, 1).
	near(t, "missing", Correlation(Weights[string]{"p": 1}, Weights[string]{"q": 1}), -100)
	near(t, "constant self", Correlation(Weights[string]{"p": 4, "q": 4}, Weights[string]{"p": 4, "q": 4}), 100)
}

func TestBranchOverlap(t *testing.T) {
	truth := map[string]Branch{"x": {90, 10}, "y": {30, 70}, "z": {5, 0}}
	got := map[string]Branch{"x": {4, 1}, "y": {1, 1}}
	// x: 1-|.9-.8| = .9 of 100; y: 1-|.3-.5| = .8 of 100; z unseen, 1-|1-.5| = .5 of 5.
	near(t, "relative", RelativeOverlap(truth, got), 100*(90+80+2.5)/205)
	// Shares of 205: x 90, 10; y 30, 70. Shares of 7: x 4, 1; y 1, 1.
	near(t, "absolute", AbsoluteOverlap(truth, got),
		100*(90.0/205+10.0/205+1.0/7+1.0/7))
	near(t, "relative self", RelativeOverlap(truth, truth), 100)
	near(t, "absolute self", AbsoluteOverlap(truth, truth), 100)
}

func TestWallMatching(t *testing.T) {
	// Flows 600, 300, 100, 1 of 1001: d is below 0.125 % (1.25).
	truth := map[string]Path{"a": {300, 2}, "b": {100, 3}, "c": {100, 1}, "d": {1, 1}}
	// Three truly hot paths; the estimate's three hottest are a, d, b.
	got := map[string]Path{"a": {9, 2}, "b": {1, 3}, "c": {1, 1}, "d": {7, 1}}
	near(t, "wall", WallMatching(truth, got), 100*900.0/1000)
	near(t, "self", WallMatching(truth, truth), 100)
	near(t, "nothing", WallMatching(truth, map[string]Path{}), 0)
}
