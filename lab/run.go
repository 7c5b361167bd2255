package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perfcorrect/perfcorrect/accuracy"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/testdata/vpmu"
)

// A setting is a column of the tables: how a recording was taken.
type setting struct {
	Samples int     `json:"samples"`
	Sigma   float64 `json:"sigma"`
	Skid    int     `json:"skid"`
}

func (s setting) String() string {
	return fmt.Sprintf("%d samples, sigma %g, skid %d", s.Samples, s.Sigma, s.Skid)
}

// grid is every setting of the full table.
func grid() []setting {
	var list []setting
	for _, n := range []int{2000, 20000} {
		for _, sigma := range []float64{0, 0.7} {
			for _, skid := range []int{0, 3} {
				list = append(list, setting{n, sigma, skid})
			}
		}
	}
	return list
}

// A score is one figure of the tables.
type score struct {
	Program string             `json:"program"`
	Tuning  bool               `json:"tuning"`
	Method  string             `json:"method"`
	Setting setting            `json:"setting"`
	Seed    uint64             `json:"seed"`
	Metrics map[string]float64 `json:"metrics"`
}

// lab runs programs and scores their recordings.
type lab struct {
	dir      string
	settings []setting
	seeds    []uint64
	methods  []method // rows: those of all evidences
	evidence []evidence
	log      io.Writer
}

// run runs one program once for each seed, takes all recordings of the seed in
// that run, and scores them. What it wrote is removed.
func (l *lab) run(ctx context.Context, p program) ([]score, error) {
	inputs := filepath.Join(l.dir, "inputs")
	args := slices.Clone(p.args)
	if p.build != nil {
		if err := p.build(inputs); err != nil {
			return nil, err
		}
		args[0] = filepath.Join(inputs, args[0])
	}
	var all []score
	for _, seed := range l.seeds {
		s, err := l.runSeed(ctx, p, args, inputs, seed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, s...)
	}
	return all, nil
}

func (l *lab) runSeed(ctx context.Context, p program, args []string, inputs string, seed uint64) ([]score, error) {
	out := filepath.Join(l.dir, "runs", strings.ReplaceAll(p.name, " ", "-"))
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	defer os.RemoveAll(out)
	c := vpmu.Config{
		Program: args, Dir: inputs, TruthDir: filepath.Join(out, "truth"), WorkDir: filepath.Join(l.dir, "vpmu"),
		NoCCT: true, Stdout: io.Discard, Stderr: os.Stderr,
	}
	var all []score
	for _, s := range l.settings {
		for _, e := range l.evidence {
			r := recording(s, seed, out)
			e.change(&r)
			r.Output += "." + e.name
			c.Recordings = append(c.Recordings, r)
			all = append(all, score{Program: p.name, Tuning: p.tuning, Setting: s, Seed: seed})
		}
	}
	start := time.Now()
	res, err := vpmu.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	if res.ExitCode != 0 {
		return nil, fmt.Errorf("exit status %d", res.ExitCode)
	}
	scores, err := l.scoreAll(c, all)
	fmt.Fprintf(l.log, "%s, seed %d: %d instructions, %d calls; ran %.1f s, %.1f s in all\n",
		p.name, seed, res.Total.Instructions, res.Total.Calls, res.Elapsed.Seconds(), time.Since(start).Seconds())
	return scores, err
}

// recording is a setting before an evidence adds its own.
func recording(s setting, seed uint64, dir string) vpmu.Recording {
	r := vpmu.DefaultRecording()
	r.Output = filepath.Join(dir, fmt.Sprintf("%d-%g-%d-%d.data", s.Samples, s.Sigma, s.Skid, seed))
	r.Samples, r.Sigma, r.Skid = s.Samples, s.Sigma, s.Skid
	r.Seed, r.CostSeed = seed, seed
	return r
}

// scoreAll compares what every method makes of every recording with the truth.
func (l *lab) scoreAll(c vpmu.Config, settings []score) ([]score, error) {
	var reader accuracy.Reader
	truth, err := reader.ReadFile(filepath.Join(c.TruthDir, "dcg.jsonl"))
	if err != nil {
		return nil, err
	}
	store := image.NewStore(image.Options{}) // the same files for all recordings
	var scores []score
	for i, s := range settings {
		methods := l.evidence[i%len(l.evidence)].methods
		est, err := estimate(c.Recordings[i].Output, methods, store)
		if err != nil {
			return nil, err
		}
		for k, m := range methods {
			got, err := est.profile(k, &reader)
			if err != nil {
				return nil, err
			}
			cmp, err := accuracy.Compare(truth, got, 0)
			if err != nil {
				return nil, err
			}
			s.Method, s.Metrics = m.name, map[string]float64{}
			for _, x := range cmp.Metrics {
				if isTabled(x.Name) {
					s.Metrics[x.Name] = x.Value
				}
			}
			scores = append(scores, s)
		}
		if err := os.Remove(c.Recordings[i].Output); err != nil {
			return nil, err
		}
	}
	return scores, nil
}
