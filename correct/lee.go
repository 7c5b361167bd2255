package correct

// newLee returns method lee: Lee's density weights for branch stacks.
//
// Assumes: what the program did between two ticks is what the calls just
// before the second show.
// Formula: the records of one stack are N samples of one tick and share its
// weight, so each of k calls gets calls(t_i)/k, calls(t_i) being counted since
// the last tick; 1/k without a counter. Latency, the other half of his weight,
// does not apply: the processor stops the records at the tick.
// Source: Lee 2015, sections 3.2 and 3.3.2 ("applies the same antibias weight
// to the N-1 subsequent samples").
// Unit: calls; without a counter, ticks.
// Wrong: calls before a long gap are in more stacks than others, and within an
// interval nothing corrects it; method lbr does.
func newLee(opt Options) (*lbr, error) { return newBranches(opt, "lee", weighStack) }
