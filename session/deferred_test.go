package session

import (
	"slices"
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/unwind"
)

const kernelText = 0xffffffff81000000

func deferredTick(time uint64, tid int32, cookie uint64) *perfdata.Sample {
	return at(time, 1, tid, kernelTick(kernelText, kernelText+16, perfdata.ContextUserDeferred, cookie))
}

func deferredChain(time uint64, tid int32, cookie uint64, ips ...uint64) *perfdata.CallchainDeferred {
	return at(time, 1, tid, &perfdata.CallchainDeferred{Cookie: cookie, Callchain: append([]uint64{perfdata.ContextUser}, ips...)})
}

func TestDeferredCallchains(t *testing.T) {
	f := newFeed(
		at(1, 1, 1, mmap(1, 0x1000, 0x9000, 0, "/a")),
		deferredTick(10, 1, 5),
		deferredTick(11, 2, 5), // same cookie, another thread
		at(12, 1, 3, tick(0x1003)),
		deferredTick(13, 1, 5), // shares the chain
		deferredChain(14, 1, 4, 0x1009),
		deferredChain(15, 1, 5, 0x1001, 0x1002),
		at(16, 1, 1, tick(0x1004)),
		deferredTick(17, 1, 6),
		at(18, 1, 1, tick(0x1005)), // chain 6 was lost
		at(19, 1, 2, exit(1, 2)),
		deferredTick(20, 1, 7),
	)
	store := image.NewStore(image.Options{})
	s := New(f, store)
	type out struct {
		time    uint64
		depth   int
		outcome unwind.Outcome
	}
	var got []out
	each(t, s, func(smp *Sample) {
		got = append(got, out{smp.Time, len(smp.Stack), smp.Outcome})
		if smp.Time == 13 {
			if a := store.Addr(smp.Stack[2]); a.Offset != 1 || a.Return {
				t.Errorf("the user ip is %+v", a)
			}
			if a := store.Addr(smp.Stack[3]); a.Offset != 2 || !a.Return || smp.Interval == nil || smp.Interval.Start != 10 {
				t.Errorf("its caller is %+v, the interval %+v", a, smp.Interval)
			}
		}
	})
	want := []out{
		{12, 1, unwind.Empty}, {10, 4, unwind.EndOfStack}, {13, 4, unwind.EndOfStack}, {16, 1, unwind.Empty},
		{17, 2, unwind.Deferred}, {18, 1, unwind.Empty}, {11, 2, unwind.Deferred}, {20, 2, unwind.Deferred},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%v, want\n%v", got, want)
	}
	if st := s.Stats(); st.DeferredSamples != 5 || st.DeferredMissing != 3 || st.Samples != 8 {
		t.Errorf("%+v", st)
	}
}

// TestDeferredIsBounded: a thread that never returns to user mode.
func TestDeferredIsBounded(t *testing.T) {
	f := newFeed()
	for i := range uint64(3 * maxDeferred) {
		r := deferredTick(i+1, 1, 1)
		r.Event = f.meta.Events[0]
		f.records = append(f.records, r)
	}
	s := New(f, image.NewStore(image.Options{}))
	var last uint64
	each(t, s, func(smp *Sample) {
		if smp.Time != last+1 {
			t.Fatalf("sample %d after %d", smp.Time, last)
		}
		last = smp.Time
		if n := len(s.deferred.samples); n > maxDeferred {
			t.Fatalf("%d samples wait", n)
		}
	})
	if last != 3*maxDeferred {
		t.Errorf("the last sample is %d", last)
	}
}

// TestStopEarly: a consumer that has enough is not called again.
func TestStopEarly(t *testing.T) {
	f := newFeed(deferredTick(1, 1, 1), deferredTick(2, 1, 1), at(3, 1, 1, tick(1)), at(4, 1, 1, tick(1)))
	n := 0
	for range New(f, image.NewStore(image.Options{})).Samples() {
		if n++; n == 1 {
			break
		}
	}
	if n != 1 {
		t.Errorf("called %d times", n)
	}
}
