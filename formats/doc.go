// Package formats writes profiles as the files other tools open.
//
// A Writer belongs to a graph (stacks, dcg) and a format (pprof, folded,
// jsonl); Lookup finds it. Writers stream: beside the profile they hold what
// is distinct in it (names, functions, nodes of the tree of names), never the
// whole output.
package formats
