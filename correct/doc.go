// Package correct turns samples, which say where time went, into estimated
// calls.
//
//  1. New gives the Estimator of a method. Samples are Added as they come; it
//     keeps one entry for each distinct stack, so its memory does not grow
//     with the number of samples.
//  2. Estimators of the same method that saw different shards or recordings
//     are Merged.
//  3. Result gives weighted stacks, the dynamic call graph, and what must be
//     said about them: which samples were left out and why, warnings, one line
//     that sums up.
//
// Each method is a file: none.go, density.go. What counts calls is recognised
// in callevent.go, and which event's samples make the profile in select.go.
package correct
