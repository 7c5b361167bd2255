package correct

import (
	"errors"
	"fmt"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// branchMode is what the branch stack of an event was told to keep.
type branchMode uint8

const (
	noBranches  branchMode = iota
	onlyCalls              // any_call: every record a call, but for entries into the kernel
	someCalls              // ind_call or call: every record a call, but not every call a record
	onlyReturns            // any_ret: every record a return
	allBranches            // any: calls among others
	noCalls                // cond, ind_jmp...
	callStack              // call_stack: the calls that have not returned yet
)

var branchModes = [...]string{
	noBranches: "no branch stack", onlyCalls: "any_call", someCalls: "calls of one kind only", onlyReturns: "any_ret",
	allBranches: "any", noCalls: "no calls", callStack: "call_stack",
}

// modeOf reads branch_sample_type. Kinds that were asked for together add up,
// except that call_stack has the hardware drop a call's record when it returns
// (Intel SDM volume 3, 18.11: "LBR call stack"), whatever else was asked for.
func modeOf(e *perfdata.Event) branchMode {
	if e == nil || e.SampleType&perfdata.FieldBranchStack == 0 {
		return noBranches
	}
	t := e.BranchSampleType
	has := func(bits perfdata.BranchSample) bool { return t&bits != 0 }
	jumps := has(perfdata.BranchCond | perfdata.BranchIndJump)
	switch {
	case has(perfdata.BranchCallStack):
		return callStack
	case has(perfdata.BranchAny):
		return allBranches
	case has(perfdata.BranchAnyCall) && (jumps || has(perfdata.BranchAnyReturn)):
		return allBranches
	case has(perfdata.BranchAnyCall):
		return onlyCalls
	case has(perfdata.BranchAnyReturn) && !jumps:
		return onlyReturns
	case has(perfdata.BranchAnyReturn), has(perfdata.BranchCall|perfdata.BranchIndCall) && jumps:
		return allBranches
	case has(perfdata.BranchCall | perfdata.BranchIndCall):
		return someCalls
	}
	return noCalls
}

var (
	errNoBranches = errors.New("the recording has no branch stacks; perf record -j any_call,u takes them where the processor has them")
	errCallStack  = errors.New("its branch stacks are call stacks (--call-graph lbr), which show the calls that have not returned and no others; perf record -j any_call,u takes a sample of calls")
	errNoCalls    = errors.New("its branch stacks have no calls; perf record -j any_call,u keeps those")
)

// branchEvent finds the event whose branch stacks show calls: the one asked
// for, else the first. It is nil without error if nothing is known of the
// events.
func branchEvent(opt Options) (*perfdata.Event, error) {
	if opt.Meta == nil || len(opt.Meta.Events) == 0 {
		return nil, nil
	}
	err := errNoBranches
	for _, e := range opt.Meta.Events {
		if opt.Event != "" && e.Name != opt.Event && bareName(e.Name) != opt.Event {
			continue
		}
		switch modeOf(e) {
		case onlyCalls, someCalls, onlyReturns, allBranches:
			return e, nil
		case callStack:
			err = errCallStack
		case noCalls:
			err = errNoCalls
		}
	}
	if opt.Event != "" && errors.Is(err, errNoBranches) {
		return nil, fmt.Errorf("samples of %s have no branch stacks", opt.Event)
	}
	return nil, err
}
