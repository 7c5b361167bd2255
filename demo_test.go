package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// TestDemo runs what "make demo" runs. Of Figure 1 the raw profile must show
// the bias and the corrected one must not; Figure 3 has none to show.
func TestDemo(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "perfcorrect")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.Command("scripts/demo")
	cmd.Env = append(cmd.Environ(), "PERFCORRECT="+program, "DEMO_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("scripts/demo: %v\n%s", err, out)
	}
	overlap := regexp.MustCompile(`overlap with the truth +([0-9.]+) % +([0-9.]+) %`)
	found := overlap.FindAllSubmatch(out, -1)
	if len(found) != 2 {
		t.Fatalf("want the overlap of two figures:\n%s", out)
	}
	percent := func(b []byte) float64 {
		v, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if raw := percent(found[0][1]); raw < 75 || raw > 90 {
		t.Errorf("Figure 1, raw: overlap %.1f %%, want about 83:\n%s", raw, out)
	}
	if corrected := percent(found[0][2]); corrected < 97 {
		t.Errorf("Figure 1, corrected: overlap %.1f %%, want 97 or more:\n%s", corrected, out)
	}
	for i, v := range found[1][1:] {
		if percent(v) < 90 { // 7 standard errors of 2,000 samples below 98 %
			t.Errorf("Figure 3, column %d: overlap %s %%, want 90 or more:\n%s", i, v, out)
		}
	}
}
