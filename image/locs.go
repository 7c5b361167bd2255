package image

// locTable maps (image, offset, kind of address) to dense numbers. Session
// interns every frame of every sample, so this is an open-addressing table
// with linear probing, never more than half full; an entry keeps 32 bits of
// the hash beside the number, so that a probe reads the key only when it is
// almost certainly the one.
type locTable struct {
	keys  []locKey // by Loc
	slots []uint64 // hash<<32 | Loc+1; 0 is free
	shift uint8    // 64 - log2(len(slots))
}

type locKey struct {
	offset uint64
	ref    uint32 // image number<<1 | 1 if a return address
}

const firstSlots = 1 << 12

func hashLoc(offset uint64, ref uint32) uint64 {
	// Fibonacci hashing of both words; the fold lets high bits of offsets
	// (kernel and JIT addresses) reach every bit of the product.
	h := (offset ^ offset>>32) * 0x9E3779B97F4A7C15
	h ^= uint64(ref) * 0xC2B2AE3D27D4EB4F
	h ^= h >> 29
	return h * 0xBF58476D1CE4E5B9
}

func (t *locTable) intern(offset uint64, ref uint32) Loc {
	if 2*len(t.keys) >= len(t.slots) {
		t.rehash()
	}
	h := hashLoc(offset, ref)
	mask := uint64(len(t.slots) - 1)
	// The slot comes from the top bits; the tag from the low ones, which are
	// independent of the slot as long as there are less than 2^32 slots.
	tag := h << 32
	for i := h >> t.shift; ; i++ {
		e := t.slots[i&mask]
		if e == 0 {
			l := Loc(len(t.keys))
			t.keys = append(t.keys, locKey{offset, ref})
			t.slots[i&mask] = tag | uint64(l+1)
			return l
		}
		if e&^0xffffffff == tag {
			l := uint32(e) - 1
			if k := t.keys[l]; k.offset == offset && k.ref == ref {
				return Loc(l)
			}
		}
	}
}

func (t *locTable) rehash() {
	n := max(firstSlots, 2*len(t.slots))
	t.slots = make([]uint64, n)
	t.shift = 64
	for m := n; m > 1; m >>= 1 {
		t.shift--
	}
	mask := uint64(n - 1)
	for l, k := range t.keys {
		h := hashLoc(k.offset, k.ref)
		i := h >> t.shift
		for t.slots[i&mask] != 0 {
			i++
		}
		t.slots[i&mask] = h<<32 | uint64(l+1)
	}
}
