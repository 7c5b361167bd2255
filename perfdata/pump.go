package perfdata

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// The pump is the first half of reading: it cuts the input into raw records,
// decompresses and sorts them, and sends them on in batches. It runs in a
// goroutine of its own, beside the one that decodes.
type pump struct {
	path    string
	big     bool
	streams []*stream
	table   *eventTable
	pool    *chunkPool
	sorter  *sorter
	done    atomic.Int64 // bytes of input consumed

	out    chan *batch
	back   chan *batch // empty batches, to be filled again
	stop   chan struct{}
	batch  *batch
	prev   uint64 // time of the last record that had one
	framed framedCounts
	hurt   *Damage
	// hurtAtEnd is damage at the end of the input that is known beforehand.
	hurtAtEnd *Damage
}

// framedCounts counts the records that never leave the pump.
type framedCounts map[RecordType]int64

// A stream is one file or pipe to be read.
type stream struct {
	path   string
	framer *framer
	base   int64 // bytes of the streams before it
}

// batch is a series of raw records in time order.
type batch struct {
	buf  []byte
	recs []batchRec
	err  error // after the records

	// Counts up to here.
	framed     framedCounts
	outOfOrder int64
	damage     *Damage
}

type batchRec struct {
	offset int64
	pos, n uint32
}

const (
	batchSize  = 256 << 10
	batchCount = 6 // in flight
)

var errStopped = errors.New("reading was stopped")

func newPump(path string, big bool) *pump {
	p := &pump{
		path: path, big: big, table: newEventTable(big), pool: &chunkPool{},
		out: make(chan *batch, batchCount), back: make(chan *batch, batchCount), stop: make(chan struct{}),
		framed: make(framedCounts),
	}
	p.sorter = &sorter{pool: p.pool, emit: p.emit, limit: sortMemory}
	return p
}

// sortMemory bounds what the sorter holds in memory, bytes.
const sortMemory = 64 << 20

func (p *pump) open(path string, src io.Reader, base, end int64) *stream {
	s := &stream{path: path, framer: newFramer(src, p.pool, base, end, p.big)}
	p.streams = append(p.streams, s)
	return s
}

// run pumps everything and closes out.
func (p *pump) run() {
	defer close(p.out)
	defer p.sorter.close()
	err := p.all()
	if errors.Is(err, errStopped) {
		return
	}
	if err == nil {
		err = p.sorter.finish()
	} else if e := p.sorter.finish(); errors.Is(e, errStopped) {
		return
	}
	if p.hurt == nil {
		p.hurt = p.hurtAtEnd
	} else if p.hurtAtEnd != nil {
		p.hurt.What += "; " + p.hurtAtEnd.What
	}
	p.ready()
	p.batch.err = err
	p.send()
}

func (p *pump) all() error {
	for _, s := range p.streams {
		p.path = s.path
		p.prev = 0
		if err := p.records(s.framer, s); err != nil {
			return err
		}
	}
	return nil
}

// records passes the records of f to the sorter until f ends. s is the stream
// f reads, nil for the decompressed one.
func (p *pump) records(f *framer, s *stream) error {
	for {
		h, raw, ok, err := p.nextRaw(f, s)
		if !ok || err != nil {
			return err
		}
		if h.typ == TypeCompressed || h.typ == TypeCompressed2 {
			if s == nil {
				return p.broken(f, "COMPRESSED record inside compressed data")
			}
			return p.inflate(f, h, raw)
		}
		if err := p.record(f, h, raw); err != nil {
			return err
		}
	}
}

func (p *pump) broken(f *framer, what string) error {
	p.damage(f.offset(), what, f.unread())
	return nil
}

func (p *pump) outerNext(f *framer) (rawHeader, []byte, bool, error) {
	return p.nextRaw(f, p.stream(f))
}

func (p *pump) stream(f *framer) *stream {
	for _, s := range p.streams {
		if s.framer == f {
			return s
		}
	}
	return nil
}

// nextRaw returns the next record of f, or false at its end, noting damage.
func (p *pump) nextRaw(f *framer, s *stream) (rawHeader, []byte, bool, error) {
	h, raw, what := f.next()
	if s != nil {
		p.done.Store(s.base + f.offset())
	}
	if raw != nil {
		return h, raw, true, nil
	}
	if f.err != nil && !errors.Is(f.err, io.EOF) && s != nil {
		return h, nil, false, fmt.Errorf("%s: offset %d: %w", s.path, f.cur.base+int64(f.lim), f.err)
	}
	if what != "" && s != nil {
		p.damage(f.offset(), what, f.unread())
	} else if what != "" && (f.err == nil || errors.Is(f.err, io.EOF)) {
		p.damage(f.offset(), what+" (in the decompressed stream)", -1)
	}
	return h, nil, false, nil
}

// damage notes the first place where the input is not what it should be.
func (p *pump) damage(offset int64, what string, unread int64) {
	if p.hurt == nil {
		p.hurt = &Damage{Path: p.path, Offset: offset, What: what, Unread: unread}
	}
}

// record consumes the record raw of f.
func (p *pump) record(f *framer, h rawHeader, raw []byte) error {
	if h.typ == TypeFinishedRound {
		p.framed[h.typ]++
		f.take(h.size)
		return p.sorter.round()
	}
	if h.typ == TypeHeaderAttr {
		if a, ids, ok := decodeHeaderAttr(raw, p.big); ok {
			p.table.add(&Event{Attr: a, IDs: ids})
		}
	}
	t, ok := p.table.timeOf(raw, h.typ)
	if ok {
		p.prev = t
	}
	n := h.size
	if h.typ == TypeHeaderTracingData {
		n = f.tracing(h, raw)
	}
	if have := f.lim - f.pos; n > have {
		p.damage(f.offset(), fmt.Sprintf("tracing data needs %d bytes, %d are there", n, have), 0)
		n = have
	}
	if err := p.sorter.add(f.cur, f.pos, n, p.prev); err != nil {
		return err
	}
	f.take(n)
	// Behind an AUXTRACE record follows trace data, which nobody here reads.
	// Records of another size are not AUXTRACE: a perf of 2012 used the
	// number for something else.
	if h.typ == TypeAuxtrace && h.size == auxtraceSize {
		p.pass(f, load64(f.cur.buf[f.pos-n+headerSize:], p.big))
	}
	return nil
}

const auxtraceSize = 48

// pass goes over n bytes of trace data.
func (p *pump) pass(f *framer, n uint64) {
	at := f.offset()
	if got := f.skip(int64(min(n, 1<<62))); uint64(got) < n {
		p.damage(at, fmt.Sprintf("AUXTRACE data needs %d bytes, %d are there", n, got), 0)
	}
}

// ready makes sure there is a batch to fill.
func (p *pump) ready() {
	if p.batch != nil {
		return
	}
	select {
	case p.batch = <-p.back:
		*p.batch = batch{buf: p.batch.buf[:0], recs: p.batch.recs[:0]}
	default:
		p.batch = &batch{buf: make([]byte, 0, batchSize/16)}
	}
}

// emit adds a sorted record to the batch.
func (p *pump) emit(r *rawRec, data []byte) error {
	p.ready()
	b := p.batch
	b.recs = append(b.recs, batchRec{r.chunk.base + int64(r.pos), uint32(len(b.buf)), r.n})
	b.buf = append(b.buf, data...)
	if len(b.buf) >= batchSize {
		return p.send()
	}
	return nil
}

func (p *pump) send() error {
	b := p.batch
	p.batch = nil
	b.framed = make(framedCounts, len(p.framed))
	for t, n := range p.framed {
		b.framed[t] = n
	}
	b.outOfOrder = p.sorter.outOfOrder
	if p.hurt != nil {
		d := *p.hurt // the pump may still add to its own
		b.damage = &d
	}
	select {
	case p.out <- b:
		return nil
	case <-p.stop:
		return errStopped
	}
}
