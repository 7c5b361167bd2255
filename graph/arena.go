package graph

import (
	"slices"

	"github.com/perfcorrect/perfcorrect/image"
)

// chunks is a list that grows without moving what it holds: appending to one
// slice of 100 MB would need both the old and the new array for a moment.
type chunks[T any] struct {
	parts [][]T
	n     int
}

const chunkBits = 12 // elements a chunk: 160 KiB of stack entries

func (c *chunks[T]) at(i int) *T { return &c.parts[i>>chunkBits][i&(1<<chunkBits-1)] }

func (c *chunks[T]) add(v T) int {
	i := c.n
	if i>>chunkBits == len(c.parts) {
		c.parts = append(c.parts, make([]T, 1<<chunkBits))
	}
	*c.at(i) = v
	c.n++
	return i
}

// arena keeps frames one stack behind the other, in parts none of which a
// stack crosses; the few words that leaves unused are the price of handing
// out stacks as slices. A position is the part's number and the offset in it.
// 16 bits of parts are 16 GiB of frames.
type arena struct{ parts [][]image.Loc }

const (
	partBits = 16 // 256 KiB; a longer stack has a part of its own
	partSize = 1 << partBits
)

// put copies frames into the arena and returns their position.
func (a *arena) put(frames []image.Loc) uint32 {
	last := len(a.parts) - 1
	if last < 0 || len(frames) > cap(a.parts[last])-len(a.parts[last]) || len(a.parts[last]) >= partSize {
		a.parts = append(a.parts, make([]image.Loc, 0, max(partSize, len(frames))))
		last++
	}
	pos := uint32(last)<<partBits | uint32(len(a.parts[last]))
	a.parts[last] = append(a.parts[last], frames...)
	return pos
}

// get returns the n frames at pos.
func (a *arena) get(pos, n uint32) []image.Loc {
	part := a.parts[pos>>partBits]
	pos &= partSize - 1
	return part[pos : pos+n : pos+n]
}

// fork returns an arena that holds the same frames and goes on by itself: the
// last part has no room left for it, so that what either adds is its own.
func (a *arena) fork() arena {
	parts := slices.Clone(a.parts)
	if n := len(parts); n > 0 {
		parts[n-1] = slices.Clip(parts[n-1])
	}
	return arena{parts}
}
