package main

import (
	"fmt"
	"os/exec"
)

// compile returns a step that runs a compiler in the folder of inputs.
func compile(args ...string) func(dir string) error {
	return func(dir string) error {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", args, err, out)
		}
		return nil
	}
}
