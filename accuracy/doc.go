// Package accuracy compares two profiles of one run: how much of what truly
// happened does an estimate show? Truth comes from the virtual PMU of the
// accuracy lab or from callgrind, the estimate from package formats.
//
// The metrics are those of the papers perfcorrect builds on, one function
// each, so that figures can be set beside theirs:
//
//   - Overlap: degree of overlap of two weighted edge sets (Arnold and Grove
//     2005, section 6; Zhuang 2006, section 3.1), for call graphs at call-site
//     and at function level and for calling-context trees;
//   - HotEdgeCoverage (Zhuang 2006, section 3.2, Figure 2);
//   - WallMatching for paths, with branch flow (Bond and McKinley 2005, 6.3);
//   - RelativeOverlap and AbsoluteOverlap for branches (same paper, 6.4);
//   - Correlation of execution counters (Chilingarova and Safonov 2006,
//     section 5).
//
// All of them are percentages, and 100 for a profile compared with itself.
package accuracy
