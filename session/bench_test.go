package session

import (
	"encoding/binary"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
)

// loop is a Source that gives the same records again and again.
type loop struct {
	feed
	n int
}

func (l *loop) Records() iter.Seq2[perfdata.Record, error] {
	return func(yield func(perfdata.Record, error) bool) {
		for i, j := 0, 0; i < l.n; i++ {
			if !yield(l.records[j], nil) {
				return
			}
			if j++; j == len(l.records) {
				j = 0
			}
		}
	}
}

// stacks makes samples of one process with chains of ten frames from 4000
// addresses in 40 libraries; a few are much more frequent than most.
func stacks(group bool) *loop {
	l := &loop{}
	if group {
		l.feed = *newGroup(0)
	} else {
		l.feed = *newFeed()
	}
	l.meta.ByteOrder = binary.LittleEndian
	rnd := rand.New(rand.NewPCG(1, 2))
	e := l.meta.Events[0]
	for i := range 4096 {
		var chain []uint64
		for range 9 {
			n := uint64(rnd.ExpFloat64() * 400)
			chain = append(chain, 0x7f0000000000+n%40*0x100000+n%4000*16)
		}
		r := at(uint64(i), 1, 1, tick(chain[0]-64, chain...))
		r.Event, r.ID = e, 101
		if group {
			r.Has |= perfdata.FieldIdentifier | perfdata.FieldRead
			r.Counters = []perfdata.Counter{{ID: 101, Value: uint64(i) * 1000}, {ID: 102, Value: uint64(i) * 10}}
		}
		l.records = append(l.records, r)
	}
	return l
}

func benchmark(b *testing.B, l *loop) {
	store := image.NewStore(image.Options{})
	s := New(l, store)
	for i := range uint64(40) {
		s.mmap(mmap(1, 0x7f0000000000+i*0x100000, 0x100000, 0, "/lib"+string(rune('a'+i))))
	}
	l.n = b.N
	frames := 0
	b.ReportAllocs()
	b.ResetTimer()
	for smp, err := range s.Samples() {
		if err != nil {
			b.Fatal(err)
		}
		frames += len(smp.Stack)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
}

// BenchmarkSamples is the work of a session for a sample of ten frames.
func BenchmarkSamples(b *testing.B) { benchmark(b, stacks(false)) }

// BenchmarkGroupReads adds a group of two counters.
func BenchmarkGroupReads(b *testing.B) { benchmark(b, stacks(true)) }

// BenchmarkShortProcesses is fork, exec, eight mappings and exit.
func BenchmarkShortProcesses(b *testing.B) {
	s := New(newFeed(), image.NewStore(image.Options{}))
	for i := range uint64(60) {
		s.mmap(mmap(1, 0x7f0000000000+i*0x100000, 0x100000, 0, "/lib"))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		pid := int32(i%30000 + 2)
		s.fork(at(uint64(i), 1, 1, fork(1, 1, pid, pid)))
		s.comm(at(uint64(i), pid, pid, execComm(pid, "true")))
		for j := range uint64(8) {
			s.mmap(at(uint64(i), pid, pid, mmap(pid, 0x7f0000000000+j*0x1000, 0x1000, 0, "/lib")))
		}
		s.exit(at(uint64(i), pid, pid, exit(pid, pid)))
	}
}
