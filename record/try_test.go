package record

import (
	"context"
	"os"
	"strings"
	"testing"
)

func TestTry(t *testing.T) {
	if os.Getenv("TRY") == "" {
		t.Skip()
	}
	args := strings.Fields(os.Getenv("TRY"))
	o := Options{Target: Target{Command: args}, Events: os.Getenv("TRYE")}
	if c := os.Getenv("TRYC"); c != "" {
		o.CountCalls = []string{c}
	}
	cfg, err := Prepare(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(cfg.Plan.Line, cfg.Caps)
	cfg.Output.Name = "/tmp/record/try.data"
	cfg.Cmdline = []string{"perfcorrect", "record", "--"}
	res, err := Run(context.Background(), cfg)
	t.Log(res, err)
}
