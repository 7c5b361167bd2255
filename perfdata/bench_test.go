package perfdata

import (
	"bytes"
	"testing"
)

// BenchmarkRecords reads a recording of the shape the speed target speaks of:
// samples of about 140 bytes with a callchain of ten, on two CPUs, with rounds.
func BenchmarkRecords(b *testing.B) {
	bl := newBuilder(false)
	chain := []uint64{ContextUser, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	var data []byte
	const samples = 400_000
	for i := 0; i < samples; i += 200 {
		for cpu := range 2 {
			for j := range 100 {
				data = append(data, bl.simpleSample(uint64(1+cpu), uint64(i), uint64(1000+(i+j)*10+cpu*3), chain...)...)
			}
		}
		data = append(data, bl.record(TypeFinishedRound, 0)...)
	}
	for name, raw := range map[string][]byte{
		"file":   bl.file(136, simpleEvents, nil, data),
		"zstd":   bl.file(136, simpleEvents, nil, bl.compress(b, TypeCompressed, data, 50_000)),
		"sorted": bl.file(136, simpleEvents, nil, bytes.ReplaceAll(data, bl.record(TypeFinishedRound, 0), nil)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				r, err := NewReader(bytes.NewReader(raw), "bench")
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for _, err := range r.Records() {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != samples {
					b.Fatal(n, r.Stats())
				}
			}
			b.ReportMetric(float64(samples)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
