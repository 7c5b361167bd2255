package correct

import (
	"slices"

	"github.com/perfcorrect/perfcorrect/session"
)

const (
	blockSamples = 1 << 16
	blockRecords = 1 << 21
)

// stackSample is a sample of a block.
type stackSample struct {
	at      uint32 // first record in the block, the newest
	n       uint16
	thread  uint32 // of the block
	stack   uint32 // in Stacks
	context uint32 // of what is newest
	calls   float32
	clock   float32
	w       float32 // mean x of its records
	weight  float32 // sum of x of its calls
	edges   uint16  // calls among its records
}

// block is the samples the weights are learnt from and given to at a time.
type block struct {
	samples []stackSample
	ids     []uint32  // types of records, newest first in each sample
	gaps    []float32 // cycles before each, after the next older one
	threads map[*session.Thread]uint32
}

// maxStack bounds the records taken of one sample. No processor has more than
// 64; the kernel's buffer is 8 bits of count on Intel.
const maxStack = 1 << 12

func (b *block) add(th *session.Thread, k stackSample, ids []uint32, gaps []float32) {
	if len(ids) > maxStack {
		ids, gaps = ids[:maxStack], gaps[:maxStack]
	}
	if b.threads == nil {
		b.threads = map[*session.Thread]uint32{}
	}
	t, ok := b.threads[th]
	if !ok {
		t = uint32(len(b.threads))
		b.threads[th] = t
	}
	k.thread, k.at, k.n = t, uint32(len(b.ids)), uint16(len(ids))
	b.samples = append(b.samples, k)
	b.ids = append(b.ids, ids...)
	b.gaps = append(b.gaps, gaps...)
}

func (b *block) full() bool {
	return len(b.samples) >= blockSamples || len(b.ids) >= blockRecords
}

func (b *block) clear() {
	b.samples, b.ids, b.gaps = b.samples[:0], b.ids[:0], b.gaps[:0]
	clear(b.threads)
}

// view is a block whose samples may be changed; records are shared.
func (b *block) view() block {
	return block{samples: slices.Clone(b.samples), ids: b.ids, gaps: b.gaps, threads: b.threads}
}

// byThread brings the samples of each thread together, in their order.
func (b *block) byThread() {
	if len(b.threads) > 1 {
		slices.SortStableFunc(b.samples, func(x, y stackSample) int { return int(x.thread) - int(y.thread) })
	}
}
