package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/perfcorrect/perfcorrect/testdata/vpmu"
)

// runTotals are kept beside the counts of a run.
type runTotals struct {
	Instructions, Calls uint64
	Output              string // digest of what the program printed
}

// count runs the program in the emulator and leaves the exact counts in dir.
func (l *live) count(ctx context.Context, args []string, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out := sha256.New()
	res, err := vpmu.Run(ctx, vpmu.Config{
		Program: args, Dir: l.inputs(), Env: l.env, TruthDir: dir, NoCCT: true,
		// All processor features the emulator knows: programs that look for
		// BMI2 or AVX2 find them as they do natively.
		QEMUFlags: []string{"-cpu", "max"},
		WorkDir:   filepath.Join(l.dir, "vpmu"), Stdout: out, Stderr: os.Stderr,
	})
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return fmt.Errorf("emulated: exit status %d", res.ExitCode)
	}
	for _, f := range []string{"edges.jsonl", "cct.jsonl"} { // large, and not used
		if err := os.Remove(filepath.Join(dir, f)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	b, err := json.Marshal(runTotals{res.Total.Instructions, res.Total.Calls, hex.EncodeToString(out.Sum(nil))})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "run.json"), b, 0o644)
}

func (t *liveTruth) readTotals(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		return err
	}
	var r runTotals
	if err := json.Unmarshal(b, &r); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	t.Instructions, t.Calls, t.output = r.Instructions, r.Calls, r.Output
	return nil
}
