package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfcorrect/perfcorrect/accuracy"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/testdata/vpmu"
)

// live makes the live table: programs run natively on this processor and are
// sampled by its kernel; only the truth, exact counts of the same program on
// the same input, comes from the emulator.
type live struct {
	dir     string
	rates   []int // Hz
	repeats int
	methods []method
	sources debianSources
	log     io.Writer

	env      []string // of the programs, natively and emulated
	recorder string   // our own, built
	result   liveResult
}

// liveResult is what goes into the tables and the JSON file.
type liveResult struct {
	Processor  string            `json:"processor"`
	Kernel     string            `json:"kernel"`
	Truths     []liveTruth       `json:"truths"`
	Recordings []liveRecording   `json:"recordings"`
	Scores     []liveScore       `json:"scores"`
	LeftOut    map[string]string `json:"methods_left_out"` // method: why
}

// liveTruth is the exact count of one program.
type liveTruth struct {
	Program      string `json:"program"`
	Built        bool   `json:"built"`
	Instructions uint64 `json:"instructions"`
	Calls        uint64 `json:"calls"`
	Edges        int    `json:"edges"`
	// Repeat is the overlap of the counts of two runs, percent: 100 if the
	// program does the same work each time.
	Repeat float64 `json:"repeat_overlap"`
	output string  // digest of what the program printed
}

// liveCommand is lab -live with its flags: the folder and the file have other
// defaults than those of the other tables.
func liveCommand(ctx context.Context, only string) error {
	dir, name := "build/live", "docs/accuracy-live"
	flag.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "dir":
			dir = f.Value.String()
		case "o":
			name = f.Value.String()
		}
	})
	if only != "" {
		name = ""
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return runLive(ctx, dir, only, name)
}

// runLive makes the whole table, or that of one program, and writes it to
// NAME.md and NAME.json; "" prints it.
func runLive(ctx context.Context, dir, only, name string) error {
	l := &live{
		dir: dir, rates: []int{5000, 20000}, repeats: 3, methods: methods(), log: os.Stderr,
		sources: debianSources{dir: dir, log: os.Stderr},
	}
	if err := writeLiveInputs(l.inputs()); err != nil {
		return err
	}
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return err
	}
	l.env = append(slices.Clone(vpmu.DefaultEnv), mask(string(cpuinfo)), "GODEBUG=asyncpreemptoff=1")
	l.result.describe(string(cpuinfo))
	l.recorder = filepath.Join(dir, "perfcorrect")
	if err := runIn(ctx, ".", []string{"go", "build", "-o", l.recorder, "."}); err != nil {
		return err
	}
	for _, p := range append(builtPrograms(), shippedPrograms()...) {
		if only != "" && only != p.Name {
			continue
		}
		if err := l.program(ctx, &p); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	if name == "" {
		return l.markdown(os.Stdout)
	}
	return l.write(name)
}

func (l *live) inputs() string { return filepath.Join(l.dir, "inputs") }

// describe notes what the table was made on.
func (r *liveResult) describe(cpuinfo string) {
	for line := range strings.Lines(cpuinfo) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			r.Processor = strings.TrimSpace(v)
			break
		}
	}
	b, _ := os.ReadFile("/proc/sys/kernel/osrelease")               // for the reader only
	r.Kernel, _, _ = strings.Cut(strings.TrimSpace(string(b)), "-") // the version, not who built it
}

// program builds, counts, records and scores one program.
func (l *live) program(ctx context.Context, p *liveProgram) error {
	bin, err := l.make(ctx, p)
	if err != nil {
		return err
	}
	args := append([]string{bin}, p.args[1:]...)
	var reader accuracy.Reader
	t, truth, err := l.truth(ctx, p, args, &reader)
	if err != nil {
		return err
	}
	fmt.Fprintf(l.log, "%s: %d calls, %d edges, two runs overlap %.3f %%\n", p.Name, t.Calls, t.Edges, t.Repeat)
	l.result.Truths = append(l.result.Truths, *t)
	known := &liveRun{args: args, output: t.output, truth: truth, reader: &reader, store: image.NewStore(image.Options{})}
	for _, k := range kinds() {
		if k.frames && !p.Built() {
			continue
		}
		for _, hz := range l.rates {
			for i := range l.repeats {
				r := liveRecording{Program: p.Name, Built: p.Built(), Hz: hz, Repeat: i + 1}
				if err := l.record(ctx, r, k, known); err != nil {
					return fmt.Errorf("%d Hz: %w", hz, err)
				}
			}
		}
	}
	return nil
}

// truth counts a program twice, by the emulator. Counts are kept for the next
// time as long as the program and its inputs are the same.
func (l *live) truth(ctx context.Context, p *liveProgram, args []string, reader *accuracy.Reader) (*liveTruth, *accuracy.Profile, error) {
	t := &liveTruth{Program: p.Name, Built: p.Built()}
	key, err := l.key(args)
	if err != nil {
		return nil, nil, err
	}
	var ps [2]*accuracy.Profile
	for i := range ps {
		dir := filepath.Join(l.dir, "truth", key+fmt.Sprint("-", i))
		if err := l.count(ctx, args, dir); err != nil {
			return nil, nil, err
		}
		if ps[i], err = reader.ReadFile(filepath.Join(dir, "dcg.jsonl")); err != nil {
			return nil, nil, err
		}
		if err := t.readTotals(dir); err != nil {
			return nil, nil, err
		}
	}
	t.Edges = len(ps[0].Calls)
	t.Repeat = accuracy.Overlap(ps[0].Calls, ps[1].Calls)
	if t.Repeat < 99.5 {
		return nil, nil, fmt.Errorf("two runs overlap by %.2f %% only: the program is not deterministic", t.Repeat)
	}
	return t, ps[0], nil
}

// key changes with the program's file, arguments, environment and inputs.
func (l *live) key(args []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", args, l.env)
	files := []string{args[0]}
	for _, a := range args[1:] {
		files = append(files, filepath.Join(l.inputs(), strings.TrimPrefix(a, ".read ")))
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // not a file
		}
		h.Write(b)
	}
	return filepath.Base(args[0]) + "-" + hex.EncodeToString(h.Sum(nil)[:6]), nil
}
