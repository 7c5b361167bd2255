package vpmu

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// lanesMax bounds the number of clocks the plugin can keep; it is compiled
// for the smallest multiple of four that a run needs.
const lanesMax = 32

// stamp is one time on every lane's wall clock, in cycles of that lane.
type stamp [lanesMax]uint64

// The events of the stream, as plugin/*.c writes them.
type (
	threadEvent struct {
		index, parent uint32
		at            stamp
	}
	exitEvent struct {
		totals ThreadTotals
		at     stamp
	}
	commEvent struct {
		index uint32
		at    stamp
		comm  string
	}
	switchEvent struct {
		index uint32
		at    stamp
		what  uint8 // 0 in, 1 out, 2 out though runnable
	}
	mapEvent struct {
		index            uint32
		at               stamp
		addr, len, pgoff uint64
		prot, flags      uint32
		maj, min         uint32
		ino              uint64
		path             string
	}
	endEvent struct{ totals ThreadTotals }
)

// branchEvent is a perf_branch_entry.
type branchEvent struct{ from, to, flags uint64 }

// sampleEvent is one sample of one sampler; it is reused for the next.
type sampleEvent struct {
	sampler          uint8
	index            uint32
	time             uint64 // wall clock of the sampler's time lane, cycles
	ip, period       uint64
	cycles, calls    uint64
	insns, branches  uint64
	leader           uint64
	enabled, running uint64
	context          uint32 // node of the calling-context tree
	chain            []uint64
	stack            []branchEvent
	hasRegs          bool
	regs             [20]uint64
	dump             []byte
}

// ThreadTotals is what a thread ran in all.
type ThreadTotals struct {
	Index                         uint32
	Cycles                        [lanesMax]uint64 // by lane
	Instructions, Calls, Branches uint64
}

// truthData is the truth as the plugin counted it; places are indexes.
type truthData struct {
	images []string
	places []place
	edges  []edgeCount
	conds  []condCount
	cct    []treeNode
	paths  []treeNode
	odd    [oddN]uint64
	regs   bool // the emulator's registers could be read
}

type place struct {
	image  uint32
	offset uint64
}
type edgeCount struct {
	site, callee uint32
	calls        uint64
}
type condCount struct {
	place, target, fall uint32
	taken, notTaken     uint64
}
type treeNode struct {
	parent, site, callee uint32
	count                uint64
}

// decoder reads the stream. The first error stays.
type decoder struct {
	r     *bufio.Reader
	lanes int
	off   int64
	err   error
	buf   [8]byte
}

func newDecoder(r io.Reader, lanes int) *decoder {
	return &decoder{r: bufio.NewReaderSize(r, 1<<20), lanes: lanes}
}

func (d *decoder) bytes(b []byte) {
	if d.err != nil {
		return
	}
	n, err := io.ReadFull(d.r, b)
	if err != nil {
		d.err = fmt.Errorf("event stream, offset %d: %w (the program was killed, or the emulator failed)", d.off, err)
	}
	d.off += int64(n)
}

func (d *decoder) u8() uint8 {
	d.bytes(d.buf[:1])
	return d.buf[0]
}

func (d *decoder) u32() uint32 {
	d.bytes(d.buf[:4])
	return binary.LittleEndian.Uint32(d.buf[:4])
}

func (d *decoder) u64() uint64 {
	d.bytes(d.buf[:8])
	return binary.LittleEndian.Uint64(d.buf[:8])
}

// count reads a number of elements; the plugin is ours, so only nonsense is
// refused.
func (d *decoder) count() int {
	n := d.u32()
	if d.err == nil && n > 1<<28 {
		d.err = fmt.Errorf("event stream, offset %d: count %d", d.off, n)
	}
	if d.err != nil {
		return 0
	}
	return int(n)
}

func (d *decoder) str() string {
	b := make([]byte, d.count())
	d.bytes(b)
	return string(b)
}

func (d *decoder) stamp() (s stamp) {
	for i := range d.lanes {
		s[i] = d.u64()
	}
	return s
}

func (d *decoder) totals(index uint32) ThreadTotals {
	return ThreadTotals{Index: index, Cycles: d.stamp(), Instructions: d.u64(), Calls: d.u64(), Branches: d.u64()}
}

func (d *decoder) tree() []treeNode {
	nodes := make([]treeNode, d.count())
	for i := 1; i < len(nodes); i++ {
		nodes[i] = treeNode{d.u32(), d.u32(), d.u32(), d.u64()}
	}
	return nodes
}

// sink receives the events in order; nil functions are skipped.
type sink struct {
	event  func(any) error // *Event types above, by value
	sample func(*sampleEvent) error
	truth  *truthData
}

// run decodes the whole stream.
func (d *decoder) run(k sink) error {
	var s sampleEvent
	for d.err == nil {
		var e any
		switch kind := d.u8(); kind {
		case 'S':
			d.sample(&s)
			if d.err == nil && k.sample != nil {
				if err := k.sample(&s); err != nil {
					return err
				}
			}
			continue
		case 'T':
			e = threadEvent{index: d.u32(), at: d.stamp(), parent: d.u32()}
		case 'X':
			index := d.u32()
			at := d.stamp()
			e = exitEvent{at: at, totals: d.totals(index)}
		case 'C':
			e = commEvent{index: d.u32(), at: d.stamp(), comm: d.str()}
		case 'W':
			e = switchEvent{index: d.u32(), at: d.stamp(), what: d.u8()}
		case 'M':
			e = mapEvent{
				index: d.u32(), at: d.stamp(), addr: d.u64(), len: d.u64(), pgoff: d.u64(), prot: d.u32(),
				flags: d.u32(), maj: d.u32(), min: d.u32(), ino: d.u64(), path: d.str(),
			}
		case 'Z':
			e = endEvent{d.totals(d.u32())}
		case '.':
			return d.err
		default:
			if d.err == nil {
				d.truth(kind, k.truth)
			}
			continue
		}
		if d.err == nil && k.event != nil {
			if err := k.event(e); err != nil {
				return err
			}
		}
	}
	return d.err
}

func (d *decoder) sample(s *sampleEvent) {
	s.sampler, s.index, s.time, s.ip, s.period = d.u8(), d.u32(), d.u64(), d.u64(), d.u64()
	s.cycles, s.calls, s.insns, s.branches, s.leader = d.u64(), d.u64(), d.u64(), d.u64(), d.u64()
	s.enabled, s.running, s.context = d.u64(), d.u64(), d.u32()
	s.chain, s.stack, s.dump = s.chain[:0], s.stack[:0], s.dump[:0]
	for range d.count() {
		s.chain = append(s.chain, d.u64())
	}
	for range d.count() {
		s.stack = append(s.stack, branchEvent{d.u64(), d.u64(), d.u64()})
	}
	if s.hasRegs = d.u8() != 0; s.hasRegs {
		for i := range s.regs {
			s.regs[i] = d.u64()
		}
		n := d.count()
		s.dump = append(s.dump, make([]byte, n)...)
		d.bytes(s.dump)
	}
}

func (d *decoder) truth(kind uint8, t *truthData) {
	if t == nil {
		t = new(truthData)
	}
	switch kind {
	case 'R':
		t.regs = d.u8() != 0
	case 'I':
		for range d.count() {
			t.images = append(t.images, d.str())
		}
	case 'P':
		t.places = make([]place, d.count())
		for i := 1; i < len(t.places); i++ {
			t.places[i] = place{d.u32(), d.u64()}
		}
	case 'E':
		for range d.count() {
			t.edges = append(t.edges, edgeCount{d.u32(), d.u32(), d.u64()})
		}
	case 'B':
		for range d.count() {
			t.conds = append(t.conds, condCount{d.u32(), d.u32(), d.u32(), d.u64(), d.u64()})
		}
	case 'N':
		t.cct = d.tree()
	case 'L':
		t.paths = d.tree()
	case 'O':
		for i := range d.count() {
			if v := d.u64(); i < len(t.odd) {
				t.odd[i] = v
			}
		}
	default:
		d.err = fmt.Errorf("event stream, offset %d: unknown event %q", d.off-1, kind)
	}
}
