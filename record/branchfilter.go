package record

import (
	"fmt"
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// branchFilters are the words of perf record -j (tools/perf/util/parse-branch-options.c).
var branchFilters = map[string]perfdata.BranchSample{
	"u": perfdata.BranchUser, "k": perfdata.BranchKernel, "hv": perfdata.BranchHV,
	"any": perfdata.BranchAny, "any_call": perfdata.BranchAnyCall, "any_ret": perfdata.BranchAnyReturn,
	"ind_call": perfdata.BranchIndCall, "ind_jmp": perfdata.BranchIndJump, "call": perfdata.BranchCall,
	"abort_tx": perfdata.BranchAbortTX, "in_tx": perfdata.BranchInTX, "no_tx": perfdata.BranchNoTX,
	"cond": perfdata.BranchCond, "stack": perfdata.BranchCallStack, "save_type": perfdata.BranchTypeSave,
	"hw_index": perfdata.BranchHWIndex, "priv": perfdata.BranchPrivSave, "counter": perfdata.BranchCounters,
}

const branchModes = perfdata.BranchUser | perfdata.BranchKernel | perfdata.BranchHV

// ParseBranchFilter reads the argument of -j. Without a mode the event's own
// modes apply: the kernel takes them over when none is set.
func ParseBranchFilter(text string) (perfdata.BranchSample, error) {
	var mask perfdata.BranchSample
	for word := range strings.SplitSeq(text, ",") {
		bit, ok := branchFilters[word]
		if !ok {
			return 0, fmt.Errorf("unknown branch filter %q: known are %s", word, strings.Join(sortedKeys(branchFilters), ", "))
		}
		mask |= bit
	}
	if mask&^(branchModes|perfdata.BranchTypeSave|perfdata.BranchHWIndex|perfdata.BranchPrivSave) == 0 {
		mask |= perfdata.BranchAny
	}
	return mask, nil
}
