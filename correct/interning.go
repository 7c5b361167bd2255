package correct

// pairs numbers distinct pairs of 32-bit numbers from 0 on: branch records by
// their two ends, contexts by parent and record. An open-addressing table with
// linear probing, at most half full, as in image's table of locations.
type pairs struct {
	keys  []uint64
	slots []uint32 // index+1; 0 is free
}

const firstPairs = 1 << 10

// id returns the number of (a, b) and whether it is a new one.
func (p *pairs) id(a, b uint32) (uint32, bool) {
	if 2*len(p.keys) >= len(p.slots) {
		p.rehash()
	}
	key := uint64(a)<<32 | uint64(b)
	mask := uint64(len(p.slots) - 1)
	i := hashPair(key) & mask
	for ; p.slots[i] != 0; i = (i + 1) & mask {
		if n := p.slots[i] - 1; p.keys[n] == key {
			return n, false
		}
	}
	p.keys = append(p.keys, key)
	p.slots[i] = uint32(len(p.keys))
	return uint32(len(p.keys) - 1), true
}

// find returns the number of (a, b) if it has one.
func (p *pairs) find(a, b uint32) (uint32, bool) {
	if len(p.slots) == 0 {
		return 0, false
	}
	key := uint64(a)<<32 | uint64(b)
	mask := uint64(len(p.slots) - 1)
	for i := hashPair(key) & mask; p.slots[i] != 0; i = (i + 1) & mask {
		if n := p.slots[i] - 1; p.keys[n] == key {
			return n, true
		}
	}
	return 0, false
}

// at is the inverse of id.
func (p *pairs) at(n uint32) (a, b uint32) {
	return uint32(p.keys[n] >> 32), uint32(p.keys[n])
}

func (p *pairs) len() int { return len(p.keys) }

func (p *pairs) rehash() {
	p.slots = make([]uint32, max(firstPairs, 2*len(p.slots)))
	mask := uint64(len(p.slots) - 1)
	for n, key := range p.keys {
		i := hashPair(key) & mask
		for p.slots[i] != 0 {
			i = (i + 1) & mask
		}
		p.slots[i] = uint32(n + 1)
	}
}

func hashPair(k uint64) uint64 {
	k ^= k >> 32
	k *= 0x9e3779b97f4a7c15
	k ^= k >> 29
	k *= 0xbf58476d1ce4e5b9
	return k ^ k>>32
}
