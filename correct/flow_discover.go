package correct

import (
	"cmp"
	"slices"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/image/x86"
)

// flowFinder finds functions where neither symbols nor unwind tables know any:
// stripped programs built without tables, code written in assembly.
//
// What a direct call goes to is a function. Besides, one begins at an address
// divisible by 16 behind a return and padding.
type flowFinder struct {
	entries map[*image.Image][]uint64 // sorted offsets
	known   map[image.Addr]bool
	made    map[image.Addr]*image.Function
	todo    []image.Addr // entries whose calls have not been followed
}

func newFlowFinder() *flowFinder {
	return &flowFinder{entries: map[*image.Image][]uint64{}, known: map[image.Addr]bool{}, made: map[image.Addr]*image.Function{}}
}

const (
	farthest   = 1 << 16 // bytes between an entry and code taken to be of its function
	maxEntries = 1 << 20
)

// called notes the target of a direct call.
func (d *flowFinder) called(a image.Addr) {
	if a.Image.Kind != image.File || d.known[a] || len(d.known) >= maxEntries || a.Image.FunctionAt(a.Offset) != nil {
		return
	}
	d.known[a] = true
	d.insert(a)
	d.todo = append(d.todo, a)
}

func (d *flowFinder) insert(a image.Addr) {
	list := d.entries[a.Image]
	i, found := slices.BinarySearch(list, a.Offset)
	if !found {
		d.entries[a.Image] = slices.Insert(list, i, a.Offset)
	}
}

// follow finds what the functions found call.
func (d *flowFinder) follow() {
	for len(d.todo) > 0 {
		a := d.todo[len(d.todo)-1]
		d.todo = d.todo[:len(d.todo)-1]
		d.straight(a.Image, a.Offset, a.Offset+farthest, func(in *x86.Inst) bool {
			if in.Control == x86.Call {
				d.called(image.Addr{Image: a.Image, Offset: in.Target})
			}
			return in.PC == a.Offset || !d.known[image.Addr{Image: a.Image, Offset: in.PC}]
		})
	}
}

// straight decodes [from, to) until do returns false, a known function begins
// or bytes are no code. Offsets stand for addresses: code of one segment.
func (d *flowFinder) straight(im *image.Image, from, to uint64, do func(*x86.Inst) bool) {
	b := im.Text(from, int(to-from))
	for pc := from; pc-from < uint64(len(b)); {
		in, err := x86.Decode(b[pc-from:], pc)
		if err != nil || !do(&in) {
			return
		}
		pc = in.End()
		if pc&15 == 0 && im.FunctionAt(pc) != nil {
			return
		}
	}
}

// function returns the function that probably covers an offset, nil if none
// does.
func (d *flowFinder) function(im *image.Image, offset uint64) *image.Function {
	if im == nil || im.Kind != image.File {
		return nil
	}
	entry, ok := d.before(im, offset)
	called := ok && d.known[image.Addr{Image: im, Offset: entry}]
	if s, found := d.begins(im, max(entry, offset-min(offset, farthest/4)), offset, called); found && (!ok || s > entry) {
		entry, ok = s, true
		d.insert(image.Addr{Image: im, Offset: s})
	}
	if !ok {
		return nil
	}
	a := image.Addr{Image: im, Offset: entry}
	if f := d.made[a]; f != nil && f.End > offset {
		return f
	}
	f := d.made[a]
	if f == nil {
		f = &image.Function{Image: im, Entry: entry}
		d.made[a] = f
	}
	f.End = d.end(im, entry, offset)
	return f
}

// before returns the last entry found at or before offset, if it is near.
func (d *flowFinder) before(im *image.Image, offset uint64) (uint64, bool) {
	list := d.entries[im]
	i, exact := slices.BinarySearch(list, offset)
	if !exact {
		i--
	}
	if i < 0 || offset-list[i] > farthest {
		return 0, false
	}
	return list[i], true
}

// end is where the function at entry ends at the latest: where another begins.
func (d *flowFinder) end(im *image.Image, entry, offset uint64) uint64 {
	end := entry + farthest
	list := d.entries[im]
	if i, _ := slices.BinarySearchFunc(list, entry, func(a, b uint64) int { return cmp.Compare(a, b+1) }); i < len(list) {
		end = min(end, list[i])
	}
	for a := (offset | 15) + 1; a < end; a += 16 {
		if f := im.FunctionAt(a); f != nil && f.Entry <= a {
			return max(f.Entry, offset+1)
		}
	}
	return end
}

// begins looks for the beginning of the function around offset, from low on.
// Without padding it is only believed where no call is known to lead near.
func (d *flowFinder) begins(im *image.Image, low, offset uint64, called bool) (start uint64, found bool) {
	from := low
	for a := offset &^ 15; a > low; a -= 16 { // behind the last known function
		if f := im.FunctionAt(a); f != nil {
			from = min(f.End, offset)
			break
		}
	}
	returned, padded := true, true
	d.straight(im, from, offset+1, func(in *x86.Inst) bool {
		if isPadding(im, in) {
			padded = true
			return in.PC <= offset
		}
		if returned && (padded || !called) && in.PC&15 == 0 {
			start, found = in.PC, true
		}
		returned, padded = in.Control == x86.Return, false
		return in.PC <= offset
	})
	return start, found
}

func isPadding(im *image.Image, in *x86.Inst) bool {
	b := im.Text(in.PC, in.Len)
	for len(b) > 0 && (b[0] == 0x66 || b[0] == 0x2e) {
		b = b[1:]
	}
	return len(b) > 0 && (b[0] == 0x90 || b[0] == 0xcc || len(b) > 1 && (b[0] == 0x0f && b[1] == 0x1f || b[0] == 0 && b[1] == 0))
}
