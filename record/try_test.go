package record

import (
	"context"
	"os"
	"testing"
	"strings"
)

func TestTry(t *testing.T) {
	args := strings.Fields(os.Getenv("TRY"))
	cfg, err := Prepare(Options{Target: Target{Command: args}, Events: os.Getenv("TRYE")})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(cfg.Plan.Line, cfg.Caps)
	cfg.Output.Name = "/tmp/record/try.data"
	cfg.Cmdline = []string{"perfcorrect", "record", "--"}
	res, err := Run(context.Background(), cfg)
	t.Log(res, err)
}
