package cfg

import (
	"math/rand/v2"
	"testing"
)

// same reports which blocks share a class, as a matrix.
func same(class []int) [][]bool {
	m := make([][]bool, len(class))
	for i := range m {
		m[i] = make([]bool, len(class))
		for j := range m[i] {
			m[i][j] = class[i] == class[j]
		}
	}
	return m
}

func TestClassesDiamond(t *testing.T) {
	// 0 -> {1, 2} -> 3 -> exit: 0 and 3 always run together, 1 and 2 alone.
	c := classes([][]int{{1, 2}, {3}, {3}, {4}}, 0)
	if c[0] != c[3] || c[1] == c[2] || c[0] == c[1] || c[0] == c[2] {
		t.Errorf("classes %v", c)
	}
}

func TestClassesLoop(t *testing.T) {
	// 0 -> 1 -> 2 -> {1, 3}, 3 -> exit: the body 1, 2 runs more often than 0, 3.
	c := classes([][]int{{1}, {2}, {1, 3}, {4}}, 0)
	if c[0] != c[3] || c[1] != c[2] || c[0] == c[1] {
		t.Errorf("classes %v", c)
	}
}

func TestClassesSelfLoopAndDead(t *testing.T) {
	// 0 -> 1 -> {1, 2} -> exit; 3 is never reached.
	c := classes([][]int{{1}, {1, 2}, {4}, {2}}, 0)
	if c[0] != c[2] || c[1] == c[0] || c[3] == c[0] || c[3] == c[1] {
		t.Errorf("classes %v", c)
	}
}

// TestClassesAgainstWalks checks on random graphs that blocks of one class are
// run equally often by every random walk from entry to exit, and that blocks
// of two classes are told apart by some walk.
func TestClassesAgainstWalks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 2 + r.IntN(8)
		succs := make([][]int, n)
		for b := range succs {
			for range 1 + r.IntN(2) {
				succs[b] = append(succs[b], 1+r.IntN(n)) // never back to the entry
			}
		}
		if !allReachExit(succs) {
			continue
		}
		class := same(classes(succs, 0))
		differ := make([][]bool, n)
		for i := range differ {
			differ[i] = make([]bool, n)
		}
		reached := make([]bool, n)
		for range 400 {
			count := make([]int, n)
			for b := 0; b < n; b = succs[b][r.IntN(len(succs[b]))] {
				count[b]++
				reached[b] = true
			}
			for i := range n {
				for j := range n {
					differ[i][j] = differ[i][j] || count[i] != count[j]
				}
			}
		}
		for i := range n {
			for j := range n {
				if reached[i] && reached[j] && class[i][j] == differ[i][j] {
					t.Fatalf("graph %v: blocks %d and %d: one class %v, told apart by walks %v", succs, i, j, class[i][j], differ[i][j])
				}
			}
		}
	}
}

func allReachExit(succs [][]int) bool {
	n := len(succs)
	ok := make([]bool, n+1)
	ok[n] = true
	for changed := true; changed; {
		changed = false
		for b, ss := range succs {
			for _, s := range ss {
				if ok[s] && !ok[b] {
					ok[b], changed = true, true
				}
			}
		}
	}
	for _, x := range ok {
		if !x {
			return false
		}
	}
	return true
}
