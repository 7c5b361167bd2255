package graph

import (
	"hash/maphash"
	"iter"
	"maps"
	"math/bits"
	"slices"

	"github.com/perfcorrect/perfcorrect/image"
)

// Stack is one distinct call stack of a Stacks.
type Stack struct {
	Label  Label
	Frames []image.Loc // leaf first; belongs to the Stacks, must not be changed
}

// Stacks is a set of distinct stacks with their values. One entry costs 48
// bytes and 4 bytes a frame (frames, values and a share of the hash table),
// nothing of it a pointer the garbage collector would follow. The zero value
// is not usable: see NewStacks. Not safe for concurrent use.
//
// The order of All and of the indices is that of first mention.
type Stacks struct {
	arena   arena
	entries chunks[entry]
	labels  []Label
	labelID map[Label]uint32
	last    Label // of the previous Add, and its number:
	lastID  uint32

	// slots is an open-addressing table with linear probing, at most 3/4
	// full: hash<<32 | index+1, 0 is free. nil if it has yet to be built.
	slots []uint64
}

type entry struct {
	pos   uint32 // of the first frame in the arena
	n     uint32 // frames
	hash  uint32
	label uint32
	v     Values
}

const firstSlots = 1 << 10

// NewStacks returns an empty Stacks.
func NewStacks() *Stacks { return &Stacks{labelID: map[Label]uint32{}} }

// Len returns the number of distinct stacks.
func (s *Stacks) Len() int { return s.entries.n }

// Add adds v to the stack of these frames, leaf first, and returns the stack's
// index: a dense number from 0 on, so that a caller can keep more about each
// stack in a slice. frames is copied. A known stack costs no allocation.
func (s *Stacks) Add(l Label, frames []image.Loc, v Values) int {
	if l != s.last || s.lastID == 0 {
		s.last, s.lastID = l, s.label(l)+1
	}
	return s.add(s.lastID-1, hashFrames(frames), frames, v)
}

func (s *Stacks) label(l Label) uint32 {
	if id, ok := s.labelID[l]; ok {
		return id
	}
	id := uint32(len(s.labels))
	s.labels = append(s.labels, l)
	s.labelID[l] = id
	return id
}

func (s *Stacks) add(label, hash uint32, frames []image.Loc, v Values) int {
	if 4*s.entries.n >= 3*len(s.slots) {
		s.rehash()
	}
	h := slotHash(hash, label)
	mask := uint64(len(s.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		x := s.slots[i]
		if x == 0 {
			s.slots[i] = h&^0xffffffff | uint64(s.entries.n+1)
			return s.insert(label, hash, frames, v)
		}
		if (x^h)>>32 != 0 {
			continue
		}
		k := int(uint32(x)) - 1
		e := s.entries.at(k)
		if e.label == label && e.hash == hash && slices.Equal(s.arena.get(e.pos, e.n), frames) {
			e.v.add(v)
			return k
		}
	}
}

func (s *Stacks) insert(label, hash uint32, frames []image.Loc, v Values) int {
	pos := s.arena.put(frames)
	return s.entries.add(entry{pos: pos, n: uint32(len(frames)), hash: hash, label: label, v: v})
}

func (s *Stacks) rehash() {
	n := firstSlots
	for 2*s.entries.n >= n {
		n *= 2
	}
	s.slots = make([]uint64, n)
	mask := uint64(n - 1)
	for k := range s.entries.n {
		e := s.entries.at(k)
		h := slotHash(e.hash, e.label)
		i := h & mask
		for s.slots[i] != 0 {
			i = (i + 1) & mask
		}
		s.slots[i] = h&^0xffffffff | uint64(k+1)
	}
}

// Merge adds all stacks of o, which stays as it is.
func (s *Stacks) Merge(o *Stacks) {
	ids := make([]uint32, len(o.labels))
	for i, l := range o.labels {
		ids[i] = s.label(l)
	}
	// A count known beforehand, for s may be o.
	for k, n := 0, o.entries.n; k < n; k++ {
		e := *o.entries.at(k)
		s.add(ids[e.label], e.hash, o.arena.get(e.pos, e.n), e.v)
	}
}

// At returns stack number i, 0 <= i < Len(), and its values.
func (s *Stacks) At(i int) (Stack, Values) {
	e := s.entries.at(i)
	return Stack{s.labels[e.label], s.arena.get(e.pos, e.n)}, e.v
}

// AddAt adds v to stack number i.
func (s *Stacks) AddAt(i int, v Values) { s.entries.at(i).v.add(v) }

// All yields the stacks in the order of their index.
func (s *Stacks) All() iter.Seq2[Stack, Values] {
	return func(yield func(Stack, Values) bool) {
		for i := range s.entries.n {
			if !yield(s.At(i)) {
				return
			}
		}
	}
}

// Total returns the sums of all values.
func (s *Stacks) Total() Values {
	var t Values
	for i := range s.entries.n {
		t.add(s.entries.at(i).v)
	}
	return t
}

// Map returns Stacks with the same stacks and values made of the old ones by
// f, which is given the index of the stack. Frames are shared, so it costs 40
// bytes a stack; s stays as it is, and either may be added to.
func (s *Stacks) Map(f func(i int, v Values) Values) *Stacks {
	m := &Stacks{arena: s.arena.fork(), labels: slices.Clip(s.labels), labelID: maps.Clone(s.labelID)}
	for i := range s.entries.n {
		e := *s.entries.at(i)
		e.v = f(i, e.v)
		m.entries.add(e)
	}
	return m
}

// seed makes the hash of each run another one, so that no recording can be
// made whose stacks all collide. The order of All does not depend on it.
var seed = maphash.Bytes(maphash.MakeSeed(), nil) | 1

// hashFrames mixes two frames at a time by a 64x64->128 bit multiplication
// (the step of wyhash).
func hashFrames(frames []image.Loc) uint32 {
	const p0, p1 = 0xa0761d6478bd642f, 0xe7037ed1a0b428db
	h := seed ^ uint64(len(frames))*p0
	for len(frames) >= 2 {
		hi, lo := bits.Mul64(h^uint64(frames[0])^uint64(frames[1])<<32, p1^seed)
		h = hi ^ lo
		frames = frames[2:]
	}
	if len(frames) == 1 {
		h ^= uint64(frames[0])
	}
	hi, lo := bits.Mul64(h^p0, p1)
	h = hi ^ lo
	return uint32(h ^ h>>32)
}

// slotHash spreads a stack's hash, which does not know the label (labels have
// other numbers in another Stacks), over 64 bits: the low ones choose the
// slot, the high ones are compared.
func slotHash(hash, label uint32) uint64 {
	h := (uint64(hash) | uint64(label)<<32) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>29
}
