package image

import (
	"fmt"
	"strconv"
)

// Problem is why (some) names of an image are not known. The library keeps
// problems; a command prints them.
type Problem struct {
	Image *Image
	Kind  ProblemKind
	Path  string // the file concerned
	What  string // what was found
	Hint  string // what the user can do about it, "" if nothing
	Locs  int    // locations interned in the image
}

// ProblemKind is a class of Problem.
type ProblemKind uint8

const (
	Missing    ProblemKind = iota // no file
	Mismatch                      // a file, but with another build ID: not used
	Damaged                       // a file that cannot be read, wholly or in part
	Restricted                    // the kernel hides its addresses
)

func (p Problem) String() string {
	s := fmt.Sprintf("%s: %s", p.Path, p.What)
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	return s
}

// Problems returns what went wrong with the images asked for so far, each
// with the number of locations interned in its image.
func (s *Store) Problems() []Problem {
	counts := make([]int, len(s.images))
	for _, k := range s.locs.keys {
		counts[k.ref>>1]++
	}
	var all []Problem
	for _, im := range s.images {
		for _, p := range im.problems {
			p.Locs = counts[im.id]
			all = append(all, p)
		}
	}
	return all
}

// Problem returns the first problem of the image, or nil.
func (im *Image) Problem() *Problem {
	if len(im.problems) == 0 {
		return nil
	}
	return &im.problems[0]
}

func itoa(n int) string { return strconv.Itoa(n) }
