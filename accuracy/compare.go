package accuracy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A Metric is one figure of a comparison, in percent.
type Metric struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// A Comparison is what Compare found.
type Comparison struct {
	Metrics   []Metric   `json:"metrics"`
	Costliest []LostEdge `json:"costliest_edges,omitempty"`
}

// A LostEdge is a call edge whose share differs: Cost is the difference of the
// shares, in percentage points. The costs of all edges add up to twice what
// the overlap lacks to 100.
type LostEdge struct {
	Caller string  `json:"caller"`
	Site   string  `json:"site"`
	Callee string  `json:"callee"`
	Truth  float64 `json:"truth_percent"`
	Got    float64 `json:"got_percent"`
	Cost   float64 `json:"cost"`
}

// thresholds of hot-edge coverage (Zhuang 2006, Figure 10).
func thresholds() []float64 {
	var ts []float64
	for i := 1; i <= 19; i++ {
		ts = append(ts, float64(i)*0.05)
	}
	return ts
}

// Compare scores got against truth on every kind of evidence both have, and
// lists the call edges that cost most of the overlap, at most edges of them.
func Compare(truth, got *Profile, edges int) (*Comparison, error) {
	c := &Comparison{}
	if truth.Calls != nil && got.Calls != nil {
		c.add("dcg_overlap", Overlap(truth.Calls, got.Calls))
		coverage(c, "dcg", truth.Calls, got.Calls)
		c.Costliest = costliest(truth, got, edges)
	}
	if tf, gf := functionLevel(truth, got); tf != nil && gf != nil {
		c.add("dcg_function_overlap", Overlap(tf, gf))
		c.add("entry_correlation", Correlation(entries(tf), entries(gf)))
	}
	if truth.Contexts != nil && got.Contexts != nil {
		c.add("cct_overlap", Overlap(truth.Contexts, got.Contexts))
		coverage(c, "cct", truth.Contexts, got.Contexts)
	}
	if truth.FuncContexts != nil && got.FuncContexts != nil {
		c.add("cct_function_overlap", Overlap(truth.FuncContexts, got.FuncContexts))
	}
	if truth.Branches != nil && got.Branches != nil {
		c.add("branch_relative_overlap", RelativeOverlap(truth.Branches, got.Branches))
		c.add("branch_absolute_overlap", AbsoluteOverlap(truth.Branches, got.Branches))
	}
	if truth.Paths != nil && got.Paths != nil {
		c.add("path_wall_matching", WallMatching(truth.Paths, got.Paths))
	}
	if len(c.Metrics) == 0 {
		return nil, fmt.Errorf("%s and %s have nothing in common to compare: one has %s, the other %s",
			truth.Name, got.Name, truth.parts(), got.parts())
	}
	return c, nil
}

func (c *Comparison) add(name string, v float64) {
	c.Metrics = append(c.Metrics, Metric{name, v})
}

// coverage adds hot-edge coverage in both directions: how many truly hot edges
// the estimate has (recall), and how many of those it calls hot are (precision).
func coverage[K comparable](c *Comparison, kind string, truth, got Weights[K]) {
	for _, t := range thresholds() {
		c.add(fmt.Sprintf("%s_hot_truth_in_got_%.2f", kind, t), HotEdgeCoverage(got, truth, t))
	}
	for _, t := range thresholds() {
		c.add(fmt.Sprintf("%s_hot_got_in_truth_%.2f", kind, t), HotEdgeCoverage(truth, got, t))
	}
}

func (p *Profile) parts() string {
	switch {
	case p.Calls != nil:
		return "a call graph"
	case p.Contexts != nil:
		return "a calling-context tree"
	case p.FuncContexts != nil:
		return "stacks"
	case p.Branches != nil:
		return "branches"
	case p.Paths != nil:
		return "paths"
	}
	return "nothing"
}

func costliest(truth, got *Profile, n int) []LostEdge {
	type item struct {
		c    Call
		t, g float64
	}
	tt, tg := max(truth.Calls.total(), math.SmallestNonzeroFloat64), max(got.Calls.total(), math.SmallestNonzeroFloat64)
	var items []item
	for k, v := range truth.Calls {
		items = append(items, item{k, 100 * v / tt, 100 * got.Calls[k] / tg})
	}
	for k, v := range got.Calls {
		if _, ok := truth.Calls[k]; !ok {
			items = append(items, item{k, 0, 100 * v / tg})
		}
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(math.Abs(b.t-b.g), math.Abs(a.t-a.g)), a.c.compare(b.c))
	})
	var out []LostEdge
	for _, it := range items[:min(n, len(items))] {
		if it.t == it.g {
			break
		}
		out = append(out, lostEdge(truth, got, it.c, it.t, it.g))
	}
	return out
}

func lostEdge(truth, got *Profile, c Call, t, g float64) LostEdge {
	caller, callee := truth.Names(c)
	if caller == "" && callee == "" {
		caller, callee = got.Names(c)
	}
	return LostEdge{
		Caller: newFunc("", caller, c.SiteOffset).Name,
		Site:   fmt.Sprintf("%s+%#x", c.SiteModule, c.SiteOffset),
		Callee: newFunc("", callee, c.CalleeOffset).Name,
		Truth:  t, Got: g, Cost: math.Abs(t - g),
	}
}

func (c Call) compare(d Call) int {
	return cmp.Or(cmp.Compare(c.SiteModule, d.SiteModule), cmp.Compare(c.SiteOffset, d.SiteOffset),
		cmp.Compare(c.CalleeModule, d.CalleeModule), cmp.Compare(c.CalleeOffset, d.CalleeOffset))
}
