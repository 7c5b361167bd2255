package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
)

func completionCommand() *command {
	return &command{
		name:    "completion",
		args:    "bash|zsh|fish",
		summary: "print shell completion code",
		about: `Prints code that completes perfcorrect's commands and flags. For bash,
add to ~/.bashrc: source <(perfcorrect completion bash)`,
		flags: func(fs *flagSet) runFunc { return runCompletion },
	}
}

func runCompletion(ctx context.Context, e *env, args []string) error {
	if len(args) != 1 {
		return usagef("want one shell: bash, zsh or fish")
	}
	writers := map[string]func(io.Writer, []completable){
		"bash": completeBash, "zsh": completeZsh, "fish": completeFish,
	}
	write := writers[args[0]]
	if write == nil {
		return usagef("unknown shell %q: want bash, zsh or fish", args[0])
	}
	return e.writeOutput(ctx, "-", func(w io.Writer) error {
		write(w, completables())
		return nil
	})
}

// completable is what a shell needs to know of one command.
type completable struct {
	name, summary string
	words         []string // arguments, if they are from a fixed set
	flags         []*flagSpec
}

func completables() []completable {
	var all []completable
	for _, c := range commands() {
		fs, _ := c.flagSet()
		k := completable{name: c.name, summary: c.summary}
		if !strings.ContainsAny(c.args, "[ ") {
			k.words = strings.Split(c.args, "|")
		}
		k.flags = fs.flags
		all = append(all, k)
	}
	return all
}

// completeBash needs nothing of the bash-completion package.
func completeBash(w io.Writer, commands []completable) {
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	fmt.Fprintf(w, `_perfcorrect() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "%s help version" -- "$cur"))
		return
	fi
	case ${COMP_WORDS[1]}$prev in
`, strings.Join(names, " "))
	for _, c := range commands {
		for _, f := range c.flags {
			if v := f.values; v != nil {
				fmt.Fprintf(w, "\t%s--%s) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", c.name, f.name, strings.Join(v, " "))
			}
		}
	}
	fmt.Fprint(w, "\tesac\n\tif [[ $cur == -* ]]; then\n\t\tcase ${COMP_WORDS[1]} in\n")
	for _, c := range commands {
		var flags []string
		for _, f := range c.flags {
			flags = append(flags, "--"+f.name)
		}
		fmt.Fprintf(w, "\t\t%s) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n", c.name, strings.Join(flags, " "))
	}
	fmt.Fprint(w, "\t\tesac\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]} in\n")
	for _, c := range commands {
		if c.words != nil {
			fmt.Fprintf(w, "\t%s) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n", c.name, strings.Join(c.words, " "))
		}
	}
	fmt.Fprint(w, "\t*) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n\tesac\n}\ncomplete -o filenames -F _perfcorrect perfcorrect\n")
}

func completeZsh(w io.Writer, commands []completable) {
	fmt.Fprint(w, "#compdef perfcorrect\n_perfcorrect() {\n\tif ((CURRENT == 2)); then\n\t\tlocal -a commands=(\n")
	for _, c := range commands {
		fmt.Fprintf(w, "\t\t\t'%s:%s'\n", c.name, zshText(c.summary))
	}
	fmt.Fprint(w, "\t\t)\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tlocal command=$words[2]\n\tshift words\n\t((CURRENT--))\n\tcase $command in\n")
	for _, c := range commands {
		fmt.Fprintf(w, "\t%s)\n\t\t_arguments -S", c.name)
		for _, f := range c.flags {
			spec := "--" + f.name
			if f.takesValue() {
				spec += "="
			}
			spec += "[" + zshText(f.plainUsage()) + "]"
			if v := f.values; v != nil {
				spec += ":" + f.name + ":(" + strings.Join(v, " ") + ")"
			} else if f.takesValue() {
				spec += ":" + f.name + ":_files"
			}
			fmt.Fprintf(w, " \\\n\t\t\t'%s'", spec)
		}
		rest := "_files"
		if c.words != nil {
			rest = "(" + strings.Join(c.words, " ") + ")"
		}
		fmt.Fprintf(w, " \\\n\t\t\t'*:argument:%s'\n\t\t;;\n", rest)
	}
	// As an autoloaded file the function body runs itself; sourced, it is
	// only registered.
	fmt.Fprint(w, "\tesac\n}\nif [[ $funcstack[1] == _perfcorrect ]]; then _perfcorrect \"$@\"; else compdef _perfcorrect perfcorrect; fi\n")
}

// zshText takes out what has a meaning inside '...[...]...' of _arguments.
func zshText(s string) string {
	return strings.NewReplacer("'", "", "[", "(", "]", ")", ":", " -").Replace(s)
}

func completeFish(w io.Writer, commands []completable) {
	for _, c := range commands {
		fmt.Fprintf(w, "complete -c perfcorrect -n __fish_use_subcommand -a %s -d %s\n", c.name, fishText(c.summary))
	}
	for _, c := range commands {
		on := fmt.Sprintf("complete -c perfcorrect -n '__fish_seen_subcommand_from %s'", c.name)
		for _, f := range c.flags {
			fmt.Fprintf(w, "%s -l %s", on, f.name)
			if f.short != "" {
				fmt.Fprintf(w, " -s %s", f.short)
			}
			if v := f.values; v != nil {
				fmt.Fprintf(w, " -x -a %s", fishText(strings.Join(v, " ")))
			} else if f.takesValue() {
				fmt.Fprint(w, " -r")
			}
			fmt.Fprintf(w, " -d %s\n", fishText(f.plainUsage()))
		}
		if c.words != nil {
			fmt.Fprintf(w, "%s -f -a %s\n", on, fishText(strings.Join(c.words, " ")))
		}
	}
}

func fishText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
