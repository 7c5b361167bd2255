// Goroutines that allocate, sort and call each other's closures: Go code with
// its own frames, the runtime on the thread's stack, and assembly.
package main

import (
	"fmt"
	"sort"
	"strings"
	"sync"
)

type tree struct {
	left, right *tree
	key         string
}

func (t *tree) insert(key string) *tree {
	if t == nil {
		return &tree{key: key}
	}
	if key < t.key {
		t.left = t.left.insert(key)
	} else {
		t.right = t.right.insert(key)
	}
	return t
}

func (t *tree) walk(f func(string)) {
	if t != nil {
		t.left.walk(f)
		f(t.key)
		t.right.walk(f)
	}
}

func work(seed int) int {
	var t *tree
	for i := range 20000 {
		t = t.insert(fmt.Sprint((i * seed) % 10007))
	}
	var keys []string
	t.walk(func(k string) { keys = append(keys, strings.Repeat(k, 3)) })
	sort.Slice(keys, func(i, j int) bool { return keys[i] > keys[j] })
	return len(keys)
}

func main() {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { work(7919 + i) })
	}
	wg.Wait()
}
