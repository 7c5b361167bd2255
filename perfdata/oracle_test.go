package perfdata

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

type span struct{ begin, end uint64 }

// fallThroughs counts the straight runs of code between branch records: from
// where a branch went to where the next newer one left. Only runs within
// [lo, hi) count.
func fallThroughs(recs []Record, in func(addr uint64) bool) map[span]int {
	out := make(map[span]int)
	for _, s := range samplesOf(recs) {
		for i := 1; i < len(s.Branches); i++ {
			r := span{s.Branches[i].To, s.Branches[i-1].From}
			if in(r.begin) && in(r.end) && r.begin <= r.end {
				out[r]++
			}
		}
	}
	return out
}

// The numbers are those asserted by autofdo's own test of this recording.
func checkAutofdo(t *testing.T, _ *Reader, recs []Record) {
	// The program: the last mapping at the base, that of the exec.
	var prog *Mmap
	for _, r := range recs {
		if m, ok := r.(*Mmap); ok && m.Addr == 0x400000 {
			prog = m
		}
	}
	if prog == nil || prog.Filename == "/usr/bin/perf" {
		t.Fatalf("program %+v", prog)
	}
	in := func(a uint64) bool { return a >= prog.Addr && a < prog.Addr+prog.Len }
	ips := make(map[uint64]int)
	for _, s := range samplesOf(recs) {
		if len(s.Branches) != 16 {
			t.Fatalf("%d branches", len(s.Branches))
		}
		if s.PID == prog.MapPID {
			ips[s.IP-prog.Addr]++
		}
	}
	if ips[0xfe0] != 55 || ips[0x1005] != 18 {
		t.Errorf("ip 0xfe0 %d times, 0x1005 %d times; expected 55 and 18", ips[0xfe0], ips[0x1005])
	}
	ranges := fallThroughs(recs, in)
	count, size := 0, uint64(0)
	for r, n := range ranges {
		count += n
		size += uint64(n) * (r.end - r.begin + 1)
	}
	if len(ranges) != 357 || ranges[span{prog.Addr + 0x4e80, prog.Addr + 0x4e8e}] != 1134 {
		t.Errorf("%d ranges, 0x4e80-0x4e8e %d times; expected 357 and 1134", len(ranges), ranges[span{prog.Addr + 0x4e80, prog.Addr + 0x4e8e}])
	}
	// autofdo drops a few more pairs than plain pairing.
	if math.Abs(float64(count)/134622-1) > 0.001 || math.Abs(float64(size)/5383657-1) > 0.002 {
		t.Errorf("sums %d and %d, expected about 134622 and 5383657", count, size)
	}
}

func checkPropeller(t *testing.T, _ *Reader, recs []Record) {
	var maps []*Mmap
	for _, r := range recs {
		if m, ok := r.(*Mmap); ok && len(m.Filename) > 8 && m.Filename[len(m.Filename)-8:] == ".bin.gen" {
			maps = append(maps, m)
		}
	}
	in := func(a uint64) bool {
		for _, m := range maps {
			if a >= m.Addr && a < m.Addr+m.Len {
				return true
			}
		}
		return false
	}
	edges := make(map[span]int)
	inside, all := 0, 0
	for _, s := range samplesOf(recs) {
		for _, b := range s.Branches {
			all++
			if in(b.From) && in(b.To) {
				edges[span{b.From, b.To}]++
				inside++
			}
		}
	}
	if len(maps) == 0 || len(edges) != 9 || inside != 119419 || all != 119424 {
		t.Errorf("%d edges, %d of %d branches in %d maps; expected 9, 119419 of 119424", len(edges), inside, all, len(maps))
	}
}

func checkPerfKernel(t *testing.T, r *Reader, recs []Record) {
	var kernel *Mmap
	for _, rec := range recs {
		if m, ok := rec.(*Mmap); ok && m.Filename == "[kernel.kallsyms]_stext" {
			kernel = m
		}
	}
	if kernel == nil {
		t.Fatal("no kernel map")
	}
	total, n := 0, 0
	for _, s := range samplesOf(recs) {
		total += len(s.Branches)
		for i := 1; i < len(s.Branches); i++ {
			if b := s.Branches[i].To; b >= kernel.Addr && b < kernel.Addr+kernel.Len {
				n++
			}
		}
	}
	if total != 1445 || n != 1421 {
		t.Errorf("%d entries, %d ranges in the kernel; expected 1445 and 1421", total, n)
	}
	for _, b := range r.Meta().BuildIDs {
		if fmt.Sprintf("%x", b.ID) == "d4eba24dde8ec63cbdf519e6b4008c4ecdcf1f49" {
			return
		}
	}
	t.Errorf("the kernel's build ID is not among %d", len(r.Meta().BuildIDs))
}

// checkGroupReads sums, over the ids of each member, the last counter value.
// Within an id the values never fall.
func checkGroupReads(t *testing.T, r *Reader, recs []Record) {
	last := make(map[uint64]uint64)
	evs := r.Meta().Events
	if evs[1].Leader != evs[0] || len(evs[0].Group) != 2 {
		t.Fatalf("group %v", evs[0].Group)
	}
	for _, s := range samplesOf(recs) {
		if len(s.Counters) != 2 {
			t.Fatalf("%d counters", len(s.Counters))
		}
		for _, c := range s.Counters {
			if c.Value < last[c.ID] || c.Lost != 0 {
				t.Errorf("id %d counts %d after %d, lost %d", c.ID, c.Value, last[c.ID], c.Lost)
			}
			last[c.ID] = c.Value
		}
	}
	for i, want := range []uint64{7221496, 6379415} {
		sum := uint64(0)
		for _, id := range evs[i].IDs {
			sum += last[id]
		}
		if len(evs[i].IDs) != 48 || sum != want {
			t.Errorf("%s: sum %d over %d ids, expected %d over 48", evs[i].Name, sum, len(evs[i].IDs), want)
		}
	}
}

// checkStacks counts distinct callchains without context markers, and their
// frames behind the leaf that lie in a mapping: what perf_data_converter's own
// tests assert of its output.
func checkStacks(stacks, callers int) func(*testing.T, *Reader, []Record) {
	return func(t *testing.T, _ *Reader, recs []Record) {
		var maps []*Mmap
		for _, r := range recs {
			if m, ok := r.(*Mmap); ok {
				maps = append(maps, m)
			}
		}
		mapped := func(ip uint64) bool {
			return slices.ContainsFunc(maps, func(m *Mmap) bool { return ip-m.Addr < m.Len })
		}
		seen := make(map[string]int)
		for _, s := range samplesOf(recs) {
			chain := slices.DeleteFunc(s.Callchain, func(ip uint64) bool { return ip >= ContextMax })
			n := 0
			for _, ip := range chain[1:] {
				if mapped(ip) {
					n++
				}
			}
			seen[fmt.Sprint(chain)] = n
		}
		sum := 0
		for _, n := range seen {
			sum += n
		}
		if len(seen) != stacks || sum != callers {
			t.Errorf("%d stacks with %d callers, expected %d and %d", len(seen), sum, stacks, callers)
		}
	}
}

// checkCallStackLBR wants stacks of 0 to depth calls, with flags or without.
func checkCallStackLBR(depth int, flags bool) func(*testing.T, *Reader, []Record) {
	return func(t *testing.T, r *Reader, recs []Record) {
		got, set := 0, false
		for _, s := range samplesOf(recs) {
			got = max(got, len(s.Branches))
			for _, b := range s.Branches {
				set = set || b.Flags != 0
			}
		}
		if r.Meta().Events[0].BranchSampleType&BranchCallStack == 0 || got != depth || set != flags {
			t.Errorf("deepest stack %d, flags %v, expected %d, %v", got, set, depth, flags)
		}
	}
}
