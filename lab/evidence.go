package main

import (
	"fmt"

	"github.com/perfcorrect/perfcorrect/correct"
	"github.com/perfcorrect/perfcorrect/testdata/vpmu"
)

// An evidence is a recording taken in every setting, and the methods that are
// for what it has.
type evidence struct {
	name    string // of its file
	change  func(*vpmu.Recording)
	methods []method
}

// evidences are all kinds of recordings, in the order of the tables' rows.
func evidences() []evidence {
	return []evidence{
		{"calls", func(r *vpmu.Recording) { r.Branch = "any_call" }, append(methods(), bursts()...)},
		{"any", func(r *vpmu.Recording) { r.Branch = "any" }, []method{
			{name: "lee, mode any", use: "lee"},
			{name: "lbr, mode any", use: "lbr"},
		}},
		{"near_call", func(r *vpmu.Recording) { r.Event, r.Members = "near_call", nil }, []method{
			{name: "near_call: none", use: "none"},
			{name: "near_call: calls", use: "calls"},
		}},
		{"near_call_lbr", func(r *vpmu.Recording) { r.Event, r.Members, r.Branch = "near_call", nil, "any_call" }, []method{
			{name: "near_call: calls, with branch stacks", use: "calls"},
		}},
	}
}

// bursts is counter-based sampling over the grid of Arnold and Grove's Table 2,
// as far as 32 records allow.
func bursts() (rows []method) {
	for _, samples := range []int{1, 2, 4, 8, 16, 32} {
		for _, stride := range []int{1, 2, 3, 7, 15, 31} {
			if (samples-1)*stride+1 > 32 {
				continue
			}
			rows = append(rows, method{
				name: fmt.Sprintf("cbs(%d,%d)", samples, stride), use: "cbs", brief: true,
				opt: func(o *correct.Options) { o.CBSSamples, o.CBSStride = samples, stride },
			})
		}
	}
	return rows
}
