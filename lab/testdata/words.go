// A Go program: words are counted, sorted, encoded and looked up through
// interfaces, closures and maps. One thread of work; GOMAXPROCS and the
// collector are set so that its run is the same every time.
package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
)

type store interface {
	put(key string, n int)
	get(key string) int
}

type hashed map[uint32]int

func hash(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}

func (m hashed) put(key string, n int) { m[hash(key)] += n }
func (m hashed) get(key string) int    { return m[hash(key)] }

type node struct {
	left, right *node
	key         string
	n           int
}

type treeStore struct{ root *node }

func (t *treeStore) find(key string) *node {
	p := &t.root
	for *p != nil {
		switch c := strings.Compare(key, (*p).key); {
		case c < 0:
			p = &(*p).left
		case c > 0:
			p = &(*p).right
		default:
			return *p
		}
	}
	*p = &node{key: key}
	return *p
}

func (t *treeStore) put(key string, n int) { t.find(key).n += n }
func (t *treeStore) get(key string) int    { return t.find(key).n }

func main() {
	debug.SetGCPercent(-1)
	rounds := 12
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	x := uint32(2463534242)
	next := func() uint32 { x ^= x << 13; x ^= x >> 17; x ^= x << 5; return x }
	var total int
	for r := range rounds {
		words := make([]string, 4000)
		for i := range words {
			words[i] = "w" + strconv.Itoa(int(next()%1500))
		}
		for _, s := range []store{hashed{}, &treeStore{}} {
			for i, w := range words {
				s.put(w, i&3)
			}
			for _, w := range words[:1000] {
				total += s.get(strings.ToUpper(w)) + s.get(w)
			}
		}
		sort.Strings(words)
		b, err := json.Marshal(map[string]any{"round": r, "words": words[:300]})
		if err != nil {
			panic(err)
		}
		var back struct{ Words []string }
		if err := json.Unmarshal(b, &back); err != nil {
			panic(err)
		}
		total += len(back.Words)
	}
	fmt.Println(total)
}
