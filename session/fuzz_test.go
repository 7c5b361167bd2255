package session

import (
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
)

// script reads a stream of records from bytes. Numbers are small or wild, so
// that records often speak of the same threads and addresses.
type script struct {
	b    []byte
	feed *feed
}

func (s *script) byte() byte {
	if len(s.b) == 0 {
		return 0
	}
	c := s.b[0]
	s.b = s.b[1:]
	return c
}

// number is 0..127 times unit, or one of the extremes.
func (s *script) number(unit uint64) uint64 {
	c := s.byte()
	if c < 128 {
		return uint64(c) * unit
	}
	return []uint64{^uint64(0), 1 << 63, 1 << 32, perfdata.ContextUser, perfdata.ContextKernel, perfdata.ContextUserDeferred, 1<<63 - 1, 1 << 47}[c%8]
}

func (s *script) id() int32 { return int32(int8(s.byte())) % 8 }

func (s *script) next() perfdata.Record {
	var r perfdata.Record
	switch s.byte() % 16 {
	case 0, 1:
		m := mmap(s.id(), s.number(0x1000), s.number(0x1000), s.number(0x100), []string{"/a", "/b", "//anon", "[vdso]", kernelName + "_text", ""}[s.byte()%6])
		m.Misc = perfdata.Misc(s.byte()) % 6
		if s.byte()%4 == 0 {
			m.Misc |= perfdata.MiscMmapData
		}
		r = m
	case 2:
		c := comm(s.id(), s.id(), "c")
		c.Misc = perfdata.Misc(s.byte()%2) * perfdata.MiscCommExec
		r = c
	case 3, 4:
		f := fork(s.id(), s.id(), s.id(), s.id())
		f.Misc = perfdata.Misc(s.byte()%2) * perfdata.MiscForkExec
		r = f
	case 5:
		r = exit(s.id(), s.id())
	case 6:
		r = &perfdata.Ksymbol{Addr: s.number(0x1000), Len: uint32(s.number(8)), Unregister: s.byte()%2 == 0, Name: "k"}
	case 7:
		w := switchIn(0, s.id())
		w.Misc = perfdata.Misc(s.byte()%4) << 13
		r = w
	case 8:
		r = throttle(s.byte()%2 == 0, s.number(1))
	case 9:
		r = lost(s.number(1))
	case 10:
		r = &perfdata.CallchainDeferred{Cookie: s.number(1), Callchain: []uint64{perfdata.ContextUser, s.number(0x1000), s.number(0x1000)}}
	default:
		r = s.sample()
	}
	c := r.Header()
	at(s.number(10), s.id(), s.id(), r)
	if s.byte()%8 == 0 {
		c.Has = 0
	}
	if s.byte()%2 == 0 {
		on(uint32(s.number(1)), r)
	}
	return r
}

func (s *script) sample() *perfdata.Sample {
	r := tick(s.number(0x800))
	r.Misc = perfdata.Misc(s.byte()) % 8
	if n := s.byte() % 8; int(n) < len(s.feed.meta.Events) {
		r.Event = s.feed.meta.Events[n]
	}
	r.ID = s.number(1)
	if s.byte()%2 == 0 {
		r.Has |= perfdata.FieldIdentifier
	}
	for range s.byte() % 8 {
		r.Has |= perfdata.FieldCallchain
		r.Callchain = append(r.Callchain, s.number(0x800))
	}
	for range s.byte() % 4 {
		r.Counters = append(r.Counters, perfdata.Counter{ID: s.number(1), Value: s.number(1), Lost: s.number(1)})
	}
	for range s.byte() % 4 {
		r.Branches = append(r.Branches, perfdata.Branch{From: s.number(0x800), To: s.number(0x800)})
	}
	r.TimeEnabled, r.TimeRunning = s.number(1), s.number(1)
	n := int(s.byte() % 80)
	r.Raw = s.b[:min(len(s.b), n)]
	return r
}

// FuzzSession feeds streams of records that make no sense together.
func FuzzSession(f *testing.F) {
	f.Add([]byte("\x00\x01\x10\x20\x00\x00\x02\x01\x05\x01\x01\x0f\x10\x02\x00"))
	f.Add([]byte("\x03\x01\x01\x02\x02\x00\x00\x01\x0b\x20\x02\x00\x65\x00\x03\x10\x85\x05"))
	seed := make([]byte, 2000)
	for i := range seed {
		seed[i] = byte(i * i >> 3)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		in := &script{b: b, feed: newGroup(perfdata.AttrFlags(len(b)%2) * perfdata.FlagInherit)}
		in.feed.schedEvent("sched:sched_switch")
		in.feed.schedEvent("sched:sched_waking")
		if len(b)%3 == 0 {
			in.feed.meta.Cmdline = []string{"perf", "record", "-a"}
		}
		want := 0
		for len(in.b) > 0 {
			r := in.next()
			if smp, ok := r.(*perfdata.Sample); ok && smp.Event != nil {
				want++
			}
			in.feed.records = append(in.feed.records, r)
		}
		s := New(in.feed, image.NewStore(image.Options{}))
		got := 0
		each(t, s, func(smp *Sample) {
			got++
			checkSample(t, s, smp)
		})
		if got != want {
			t.Errorf("%d samples of %d", got, want)
		}
		checkSpaces(t, s)
	})
}

func checkSample(t *testing.T, s *Session, smp *Sample) {
	t.Helper()
	if smp.Thread == nil || smp.Event == nil || len(smp.Branches) != len(smp.Raw.Branches) {
		t.Fatalf("sample %+v", smp)
	}
	for _, l := range smp.Stack {
		if int(l) >= s.store.NumLocs() {
			t.Fatalf("location %d of %d", l, s.store.NumLocs())
		}
	}
	if v := smp.Interval; v != nil && len(v.Counts) > len(smp.Raw.Counters) {
		t.Fatalf("interval %+v", v)
	}
}

func checkSpaces(t *testing.T, s *Session) {
	t.Helper()
	spaces := []*space{&s.kernel.over}
	live := 0
	for pid, p := range s.threads.processes {
		spaces = append(spaces, p.space)
		live += p.space.copied
		n := 0
		for _, th := range s.threads.byTID {
			if th.process == p {
				n++
			}
		}
		if p.pid != pid || n == 0 || n > p.threads {
			t.Fatalf("process %d has %d threads and says %+v", pid, n, p)
		}
	}
	if live > s.live {
		t.Fatalf("%d copied mappings, counted %d", live, s.live)
	}
	for _, sp := range spaces {
		for i, m := range sp.maps {
			if m.start >= m.end || i > 0 && sp.maps[i-1].end > m.start {
				t.Fatalf("mappings overlap: %+v", sp.maps)
			}
		}
	}
}
