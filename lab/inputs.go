package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// The inputs of the programs are made here, from fixed seeds, so that every
// machine gives them the same work.

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2015)) }

// vocabulary is a list of made-up words.
func vocabulary(r *rand.Rand, n int) []string {
	syllables := strings.Fields("ka lo mi ren tas ul ve qui sto dra fen gul har ix jo nem op pra sil tor")
	words := make([]string, n)
	for i := range words {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteString(syllables[r.IntN(len(syllables))])
		}
		words[i] = b.String()
	}
	return words
}

// text is prose of n bytes or a little more: words by a Zipf-like law, so that
// compressors and searchers find about as much repetition as in a language.
func text(seed uint64, n int) []byte {
	r := source(seed)
	words := vocabulary(r, 4000)
	z := rand.NewZipf(r, 1.2, 2, uint64(len(words)-1))
	var b bytes.Buffer
	for col := 0; b.Len() < n; {
		w := words[z.Uint64()]
		b.WriteString(w)
		if col += len(w) + 1; col > 70 {
			b.WriteString(".\n")
			col = 0
		} else {
			b.WriteByte(' ')
		}
	}
	return b.Bytes()
}

func xml(seed uint64, records int) []byte {
	r := source(seed)
	words := vocabulary(r, 500)
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\"?>\n<library>\n")
	for i := range records {
		w := func() string { return words[r.IntN(len(words))] }
		fmt.Fprintf(&b, "  <book id=\"b%d\" lang=\"%s\"><title>%s %s &amp; %s</title><author born=\"%d\">%s</author>", i, w(), w(), w(), w(), 1900+r.IntN(100), w())
		for range r.IntN(5) {
			fmt.Fprintf(&b, "<chapter pages=\"%d\">%s</chapter>", r.IntN(300), w())
		}
		b.WriteString("</book>\n")
	}
	b.WriteString("</library>\n")
	return b.Bytes()
}

// picture is a PPM picture of smooth waves with noise.
func picture(seed uint64, w, h int) []byte {
	r := source(seed)
	var b bytes.Buffer
	fmt.Fprintf(&b, "P6\n%d %d\n255\n", w, h)
	for y := range h {
		for x := range w {
			for c := range 3 {
				v := 127 + 100*math.Sin(float64(x*(c+1))/37)*math.Cos(float64(y)/(23+float64(c)))
				b.WriteByte(byte(v + float64(r.IntN(27))))
			}
		}
	}
	return b.Bytes()
}

// sound is a WAV file of chords, 44.1 kHz, 16 bit, stereo.
func sound(seed uint64, seconds int) []byte {
	const rate = 44100
	r := source(seed)
	var b bytes.Buffer
	n := uint32(seconds * rate * 4)
	b.WriteString("RIFF")
	_ = binary.Write(&b, binary.LittleEndian, 36+n)
	b.WriteString("WAVEfmt ")
	_ = binary.Write(&b, binary.LittleEndian, []uint32{16, 2<<16 | 1, rate, rate * 4, 16<<16 | 4})
	b.WriteString("data")
	_ = binary.Write(&b, binary.LittleEndian, n)
	f := [3]float64{}
	for i := range seconds * rate {
		if i%(rate/4) == 0 {
			for k := range f {
				f[k] = 110 * math.Pow(2, float64(r.IntN(36))/12)
			}
		}
		t, v := float64(i)/rate, 0.0
		for _, x := range f {
			v += math.Sin(2 * math.Pi * x * t)
		}
		s := int16(v*8000) + int16(r.IntN(64))
		_ = binary.Write(&b, binary.LittleEndian, [2]int16{s, -s})
	}
	return b.Bytes()
}

// assembly is a program for nasm with macros, labels and jumps.
func assembly(seed uint64, functions int) []byte {
	r := source(seed)
	var b bytes.Buffer
	b.WriteString("bits 64\nsection .text\n%macro bump 2\n  add %1, %2\n  xor %1, 0x55\n%endmacro\n")
	regs := []string{"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9"}
	for i := range functions {
		fmt.Fprintf(&b, "f%d:\n", i)
		for k := range 20 {
			a, c := regs[r.IntN(8)], regs[r.IntN(8)]
			switch r.IntN(5) {
			case 0:
				fmt.Fprintf(&b, "  mov %s, [%s+%s*4+%d]\n", a, c, regs[r.IntN(6)], r.IntN(4096))
			case 1:
				fmt.Fprintf(&b, "  bump %s, %d\n", a, r.IntN(100))
			case 2:
				fmt.Fprintf(&b, ".l%d: cmp %s, %s\n  jne .l%d\n", k, a, c, k)
			case 3:
				fmt.Fprintf(&b, "  lea %s, [rel f%d]\n", a, r.IntN(functions))
			default:
				fmt.Fprintf(&b, "  imul %s, %s\n", a, c)
			}
		}
		b.WriteString("  ret\n")
	}
	return b.Bytes()
}

// tree writes files of prose below dir, for programs that walk folders.
func tree(dir string, seed uint64, files, size int) error {
	for i := range files {
		p := filepath.Join(dir, fmt.Sprintf("d%d", i%7), fmt.Sprintf("s%d", i%3), fmt.Sprintf("f%d.txt", i))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, text(seed+uint64(i), size), 0o644); err != nil {
			return err
		}
	}
	return nil
}
