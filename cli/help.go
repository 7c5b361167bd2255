package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

const helpIntro = `perfcorrect - how often each call was made, from a sampled profile

Usage: perfcorrect COMMAND [FLAGS] [ARGUMENTS]

Commands:
`

func helpText() string {
	var b strings.Builder
	b.WriteString(helpIntro)
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-12s%s\n", c.name, c.summary)
	}
	fmt.Fprintf(&b, "  %-12s%s\n", "version", "print the version")
	b.WriteString("\nperfcorrect COMMAND --help tells more.\n")
	return b.String()
}

func printHelp(e *env, args []string) error {
	if len(args) == 0 {
		_, err := io.WriteString(e.Stdout, helpText())
		return err
	}
	c := findCommand(args[0])
	if c == nil || len(args) > 1 {
		return usagef("help: unknown command %q", strings.Join(args, " "))
	}
	_, err := io.WriteString(e.Stdout, c.help())
	return err
}

func (c *command) help() string {
	fs, _ := c.flagSet()
	fs.BoolP("quiet", "q", false, "say nothing but errors")
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: perfcorrect %s [FLAGS] %s\n\n%s\n\nFlags:\n", c.name, c.args, c.about)
	b.WriteString(fs.FlagUsagesWrapped(100))
	return b.String()
}

// choices is a flag with a fixed set of values.
type choices struct {
	value  *string
	values []string
}

// choice declares such a flag; the first value is the default.
func choice(fs *pflag.FlagSet, name, usage string, values ...string) *string {
	v := values[0]
	fs.Var(&choices{&v, values}, name, usage)
	return &v
}

func (c *choices) String() string { return *c.value }
func (c *choices) Type() string   { return strings.Join(c.values, "|") }

func (c *choices) Set(s string) error {
	for _, v := range c.values {
		if v == s {
			*c.value = s
			return nil
		}
	}
	return fmt.Errorf("not one of %s", strings.Join(c.values, ", "))
}
