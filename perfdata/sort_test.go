package perfdata

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// sortAll runs records, given as their times, through a sorter; a negative
// time is a FINISHED_ROUND. What comes out is time and number in the input.
func sortAll(t *testing.T, times []int64, limit int64) (out [][2]uint64, s *sorter) {
	t.Helper()
	pool := &chunkPool{}
	s = &sorter{pool: pool, limit: limit}
	s.emit = func(r *rawRec, data []byte) error {
		if r.time != binary.LittleEndian.Uint64(data) {
			t.Fatalf("record of time %d has the bytes of %d", r.time, binary.LittleEndian.Uint64(data))
		}
		out = append(out, [2]uint64{r.time, binary.LittleEndian.Uint64(data[8:])})
		return nil
	}
	c := pool.get(chunkSize)
	pos := 0
	for i, tm := range times {
		if tm < 0 {
			if err := s.round(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if pos+16 > len(c.buf) {
			c.open = false
			pool.put(c)
			c, pos = pool.get(chunkSize), 0
		}
		binary.LittleEndian.PutUint64(c.buf[pos:], uint64(tm))
		binary.LittleEndian.PutUint64(c.buf[pos+8:], uint64(i))
		if err := s.add(c, pos, 16, uint64(tm)); err != nil {
			t.Fatal(err)
		}
		pos += 16
	}
	if err := s.finish(); err != nil {
		t.Fatal(err)
	}
	return out, s
}

// expected is a stable sort of the times.
func expectedOrder(times []int64) [][2]uint64 {
	var out [][2]uint64
	for i, tm := range times {
		if tm >= 0 {
			out = append(out, [2]uint64{uint64(tm), uint64(i)})
		}
	}
	slices.SortStableFunc(out, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	return out
}

// The example of perf's own source, tools/perf/util/session.c: after each
// round everything up to the maximum of the round before may pass.
func TestRoundsOfPerf(t *testing.T) {
	pool := &chunkPool{}
	var passed []uint64
	s := &sorter{pool: pool, limit: 1 << 20}
	s.emit = func(r *rawRec, _ []byte) error { passed = append(passed, r.time); return nil }
	c := pool.get(chunkSize)
	for _, step := range []struct {
		times []uint64
		want  []uint64
	}{
		{[]uint64{1, 2, 3, 2, 3, 4}, nil},
		{[]uint64{4, 5, 5, 7}, []uint64{1, 2, 2, 3, 3, 4, 4}},
		{[]uint64{6, 8, 9}, []uint64{5, 5, 6, 7}},
		{nil, []uint64{8, 9}},
	} {
		passed = nil
		for _, tm := range step.times {
			if err := s.add(c, 0, 8, tm); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.round(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(passed, step.want) {
			t.Errorf("round %v passed %v, expected %v", step.times, passed, step.want)
		}
	}
	if s.outOfOrder != 0 || s.held != 0 || len(s.runs) != 0 {
		t.Errorf("out of order %d, held %d, %d runs", s.outOfOrder, s.held, len(s.runs))
	}
}

// buffers makes the times of n ring buffers, drained one after the other.
func buffers(rng *rand.Rand, n, rounds, each int, mark bool) []int64 {
	var out []int64
	base := int64(0)
	for range rounds {
		for range n {
			tm := base
			for range each {
				tm += rng.Int64N(5)
				out = append(out, tm)
			}
		}
		base += int64(each) // rounds overlap less than two deep
		if mark {
			out = append(out, -1)
		}
	}
	return out
}

func TestSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	random := make([]int64, 30000)
	falling := make([]int64, 30000)
	for i := range random {
		random[i] = rng.Int64N(1000)
		falling[i] = int64(len(falling) - i)
	}
	saw := make([]int64, 30000)
	for i := range saw {
		saw[i] = int64(i%2*1000000 + i/2*(1-i%2*2))
	}
	for name, times := range map[string][]int64{
		"nothing": nil, "one": {5}, "equal": make([]int64, 5000),
		"random": random, "falling": falling, "saw": saw,
		"8 buffers":               buffers(rng, 8, 20, 200, false),
		"8 buffers, one round":    append(buffers(rng, 8, 20, 200, false), -1),
		"8 buffers with rounds":   buffers(rng, 8, 50, 100, true),
		"200 buffers with rounds": buffers(rng, 200, 5, 20, true),
	} {
		for _, limit := range []int64{1 << 30, 100_000, 5_000} {
			got, s := sortAll(t, times, limit)
			want := expectedOrder(times)
			if name == "8 buffers with rounds" || name == "200 buffers with rounds" {
				// The buffers of this test overlap more than rounds allow:
				// nothing may be lost, and what came late is counted.
				late := int64(0)
				for i := 1; i < len(got); i++ {
					if got[i][0] < got[i-1][0] {
						late++
					}
				}
				if late > s.outOfOrder {
					t.Errorf("%s, limit %d: %d late, %d counted", name, limit, late, s.outOfOrder)
				}
				slices.SortFunc(got, func(a, b [2]uint64) int {
					return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
				})
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, limit %d: wrong order (%d records, expected %d)", name, limit, len(got), len(want))
			}
			if s.held != 0 {
				t.Errorf("%s: %d bytes still held", name, s.held)
			}
		}
	}
}

// Falling times must not cost a run a record.
func TestSortRunsAreBounded(t *testing.T) {
	pool := &chunkPool{}
	s := &sorter{pool: pool, limit: 1 << 30, emit: func(*rawRec, []byte) error { return nil }}
	c := pool.get(chunkSize)
	for i := range 50000 {
		if err := s.add(c, 0, 8, uint64(100000-i)); err != nil {
			t.Fatal(err)
		}
		if len(s.runs) > maxRuns {
			t.Fatalf("%d runs", len(s.runs))
		}
	}
}

// Without a temporary directory a large sort fails with an error that says so.
func TestSpillFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/absent")
	pool := &chunkPool{}
	s := &sorter{pool: pool, limit: 100, emit: func(*rawRec, []byte) error { return nil }}
	c := pool.get(chunkSize)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		err = s.add(c, 0, 8, uint64(i))
	}
	if !os.IsNotExist(err) && err == nil {
		t.Error("no error")
	}
}

// Records without a time keep their place behind the one they follow.
func TestRecordsWithoutTime(t *testing.T) {
	b := newBuilder(false)
	events := []builtEvent{{Attr{SampleType: FieldIP | FieldTID | FieldTime}, nil}} // no sample_id_all
	sample := func(ip, time uint64) []byte { return b.record(TypeSample, 0, b.u64(ip), b.pair(1, 1), b.u64(time)) }
	comm := func(name string) []byte { return b.record(TypeComm, 0, b.pair(1, 1), pad8(name)) }
	data := slices.Concat(comm("a"), comm("b"), sample(1, 50), comm("c"), sample(2, 60), sample(3, 40), comm("d"), sample(4, 55))
	_, recs := mustRead(t, b.file(136, events, nil, data))
	var got bytes.Buffer
	for _, r := range recs {
		switch r := r.(type) {
		case *Comm:
			got.WriteString(r.Comm)
		case *Sample:
			got.WriteByte('0' + byte(r.IP))
		}
	}
	if got.String() != "ab3d1c42" {
		t.Errorf("order %s", got.String())
	}
}

func BenchmarkSort(b *testing.B) {
	times := buffers(rand.New(rand.NewPCG(5, 6)), 4, 100, 1000, false)
	pool := &chunkPool{}
	for b.Loop() {
		s := &sorter{pool: pool, limit: 1 << 30, emit: func(*rawRec, []byte) error { return nil }}
		c := pool.get(chunkSize)
		for _, tm := range times {
			if err := s.add(c, 0, 16, uint64(tm)); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.finish(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(times))*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
