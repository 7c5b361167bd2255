package cli

import (
	"fmt"
	"io"
	"strings"
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
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: perfcorrect %s [FLAGS] %s\n\n%s\n\nFlags:\n", c.name, c.args, c.about)
	b.WriteString(fs.helpText())
	return b.String()
}
