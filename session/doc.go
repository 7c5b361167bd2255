// Package session turns the records of a recording into samples: who ran,
// what code the addresses of its stack were in at that time, and what
// happened since the previous tick of the same event.
//
//  1. address spaces (space.go, mapping.go, kernel.go): MMAP, MMAP2, KSYMBOL,
//     FORK and exec say which image an address belonged to, at the time of
//     the sample;
//  2. threads (thread.go): COMM, FORK and EXIT;
//  3. frames to locations (locate.go): the hot path, one cache lookup a frame;
//  4. intervals (interval.go): differences of the counters read with the
//     samples, per event instance; what was lost or throttled in between;
//  5. scheduling (sched.go, tracepoint.go): how long the thread waited for a
//     CPU, and how long it was blocked;
//  6. callchains whose user part comes later (deferred.go).
//
// Records must come in time order. Samples go out in the same order, except
// that one waiting for its deferred callchain does not hold up other threads.
//
// A tick is a sample; the interval of a tick reaches back to the previous tick
// of the same event instance (thread or CPU). Call counts of intervals are
// what Lee, "Adaptive Correction of Sampling Bias in Dynamic Call Graphs"
// (ACM TACO 12(4), 2015), section 3.1, calls calls(t_i), and the waiting time
// before the thread ran is a candidate for latency(t_i).
package session
