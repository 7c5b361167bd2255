package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"
)

// flagSet declares the flags of one command and brings the words of its
// command line into the one form that urfave/cli v2 takes without surprises:
// --name=value, then the arguments. What perf users type besides is put right
// here: flags behind the arguments, -F99, -ag.
type flagSet struct {
	flags []*flagSpec // in the order help shows them
	// argsEndFlags: everything from the first word that is no flag on is an
	// argument, as in record, where it belongs to the program.
	argsEndFlags bool
}

// flagSpec is one flag.
type flagSpec struct {
	name, short string
	usage       string // with the name of the value in backquotes
	def         string // "" if it goes without saying
	boolean     bool
	optional    string   // the value if none is given with "="; "" if one must be
	values      []string // the values there are, if they are from a fixed set
	set         func(string) error
	text        func() string
	given       bool
}

// Set and String make a flagSpec a flag.Value.
func (f *flagSpec) Set(s string) error {
	f.given = true
	return f.set(s)
}

func (f *flagSpec) String() string {
	if f.text == nil {
		return ""
	}
	return f.text()
}

// IsBoolFlag says that the flag may stand alone.
func (f *flagSpec) IsBoolFlag() bool { return f.boolean || f.optional != "" }

func (f *flagSpec) takesValue() bool { return !f.IsBoolFlag() }

// placeholder is the name of the value in help, and the usage without the
// backquotes that mark it.
func (f *flagSpec) placeholder() (name, usage string) {
	if f.values != nil {
		return strings.Join(f.values, "|"), f.usage
	}
	if before, rest, ok := strings.Cut(f.usage, "`"); ok {
		if name, after, ok := strings.Cut(rest, "`"); ok {
			return name, before + name + after
		}
	}
	if f.boolean {
		return "", f.usage
	}
	return "VALUE", f.usage
}

func (f *flagSpec) plainUsage() string {
	_, usage := f.placeholder()
	return usage
}

func (s *flagSet) add(f *flagSpec) { s.flags = append(s.flags, f) }

func (s *flagSet) stringVar(p *string, name, short, def, usage string) {
	*p = def
	s.add(&flagSpec{name: name, short: short, usage: usage, def: def,
		set: func(v string) error { *p = v; return nil }, text: func() string { return *p }})
}

func (s *flagSet) boolVar(p *bool, name, short, usage string) {
	s.add(&flagSpec{name: name, short: short, usage: usage, boolean: true,
		set: func(v string) (err error) { *p, err = strconv.ParseBool(v); return err }, text: func() string { return strconv.FormatBool(*p) }})
}

// parsed declares a flag whose value parse reads; def is not shown if it is
// the zero value.
func parsed[T comparable](s *flagSet, p *T, name, short string, def T, usage string, parse func(string) (T, error)) {
	*p = def
	f := &flagSpec{name: name, short: short, usage: usage, text: func() string { return fmt.Sprint(*p) }}
	var zero T
	if def != zero {
		f.def = fmt.Sprint(def)
	}
	f.set = func(v string) error {
		x, err := parse(v)
		if err != nil {
			return err
		}
		*p = x
		return nil
	}
	s.add(f)
}

func (s *flagSet) intVar(p *int, name, short string, def int, usage string) {
	parsed(s, p, name, short, def, usage, strconv.Atoi)
}

func (s *flagSet) uint64Var(p *uint64, name, short string, def uint64, usage string) {
	parsed(s, p, name, short, def, usage, func(v string) (uint64, error) { return strconv.ParseUint(v, 10, 64) })
}

func (s *flagSet) float64Var(p *float64, name, short string, def float64, usage string) {
	parsed(s, p, name, short, def, usage, func(v string) (float64, error) { return strconv.ParseFloat(v, 64) })
}

func (s *flagSet) durationVar(p *time.Duration, name, short string, def time.Duration, usage string) {
	parsed(s, p, name, short, def, usage, time.ParseDuration)
}

// listVar declares a flag that may be repeated; each value may be several with
// commas between if split is set.
func (s *flagSet) listVar(p *[]string, name, short, usage string, split bool) {
	s.add(&flagSpec{name: name, short: short, usage: usage, text: func() string { return strings.Join(*p, ",") },
		set: func(v string) error {
			if !split {
				*p = append(*p, v)
				return nil
			}
			*p = append(*p, strings.Split(v, ",")...)
			return nil
		}})
}

// intListVar declares a flag of numbers with commas between.
func (s *flagSet) intListVar(p *[]int, name, short, usage string) {
	s.add(&flagSpec{name: name, short: short, usage: usage, text: func() string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(*p), " ", ","), "[]") },
		set: func(v string) error {
			for _, w := range strings.Split(v, ",") {
				n, err := strconv.Atoi(w)
				if err != nil {
					return err
				}
				*p = append(*p, n)
			}
			return nil
		}})
}

// choice declares a flag with a fixed set of values, the first of which is the
// default.
func choice(s *flagSet, name, usage string, values ...string) *string {
	v := values[0]
	s.add(&flagSpec{name: name, usage: usage, def: v, values: values, text: func() string { return v },
		set: func(x string) error {
			if !slices.Contains(values, x) {
				return fmt.Errorf("not one of %s", strings.Join(values, ", "))
			}
			v = x
			return nil
		}})
	return &v
}

// lookup returns the flag of a long name, nil if there is none.
func (s *flagSet) lookup(name string) *flagSpec {
	for _, f := range s.flags {
		if f.name == name {
			return f
		}
	}
	return nil
}

func (s *flagSet) shorthand(c string) *flagSpec {
	for _, f := range s.flags {
		if f.short == c {
			return f
		}
	}
	return nil
}

// given reports whether the command line has the flag.
func (s *flagSet) given(name string) bool {
	f := s.lookup(name)
	return f != nil && f.given
}

// quiet reports whether a normalized command line asks for silence, which is
// kept from the first error on.
func (s *flagSet) quiet(words []string) bool {
	end := slices.Index(words, "--")
	i := -1
	for k, w := range words[:end] {
		if strings.HasPrefix(w, "--quiet=") {
			i = k
		}
	}
	return i >= 0 && words[i] != "--quiet=false"
}

// urfave returns the flags for urfave/cli. Short names are not among them: it
// would set a flag once for each of its names, and lists would be doubled.
func (s *flagSet) urfave() []ucli.Flag {
	var all []ucli.Flag
	for _, f := range s.flags {
		all = append(all, &ucli.GenericFlag{Name: f.name, Usage: f.usage, Value: f})
	}
	return all
}

var errHelp = errors.New("help was asked for")

// normalize returns the command line as --name[=value] ... -- arguments.
func (s *flagSet) normalize(args []string) ([]string, error) {
	var flags, rest []string
	for len(args) > 0 {
		w := args[0]
		args = args[1:]
		switch {
		case w == "--":
			rest = append(rest, args...)
			args = nil
		case w == "-" || !strings.HasPrefix(w, "-"):
			rest = append(rest, w)
			if s.argsEndFlags {
				rest = append(rest, args...)
				args = nil
			}
		default:
			words, used, err := s.word(w, args)
			if err != nil {
				return nil, err
			}
			flags = append(flags, words...)
			args = args[used:]
		}
	}
	return append(append(flags, "--"), rest...), nil
}

// word normalizes one word of flags; used is how many of the words behind it
// are its value.
func (s *flagSet) word(w string, next []string) (words []string, used int, err error) {
	if name, long := strings.CutPrefix(w, "--"); long {
		name, value, has := strings.Cut(name, "=")
		if name == "help" {
			return nil, 0, errHelp
		}
		f := s.lookup(name)
		if f == nil {
			return nil, 0, fmt.Errorf("unknown flag: --%s", name)
		}
		return s.one(f, "--"+name, value, has, next)
	}
	for i, c := range w[1:] {
		name, rest := string(c), w[1+i+len(string(c)):]
		f := s.shorthand(name)
		if f == nil {
			if name == "h" {
				return nil, 0, errHelp
			}
			return nil, 0, fmt.Errorf("unknown flag: -%s in %s", name, w)
		}
		if f.takesValue() || strings.HasPrefix(rest, "=") {
			value, _ := strings.CutPrefix(rest, "=")
			one, used, err := s.one(f, "-"+name, value, rest != "", next)
			return append(words, one...), used, err
		}
		one, _, err := s.one(f, "-"+name, "", false, nil)
		if err != nil {
			return nil, 0, err
		}
		words = append(words, one...)
	}
	return words, 0, nil
}

func (s *flagSet) one(f *flagSpec, as, value string, has bool, next []string) ([]string, int, error) {
	used := 0
	switch {
	case has:
	case f.boolean:
		value = "true"
	case f.optional != "":
		value = f.optional
	case len(next) == 0:
		return nil, 0, fmt.Errorf("flag needs a value: %s", as)
	default:
		value, used = next[0], 1
	}
	return []string{"--" + f.name + "=" + value}, used, nil
}

// helpText lists the flags in columns, wrapped at 100 characters.
func (s *flagSet) helpText() string {
	width := 0
	var left []string
	for _, f := range s.flags {
		l := "      --" + f.name
		if f.short != "" {
			l = "  -" + f.short + ", --" + f.name
		}
		if name, _ := f.placeholder(); name != "" {
			if f.optional != "" {
				l += "[=" + name + "]"
			} else {
				l += " " + name
			}
		}
		left = append(left, l)
		width = max(width, min(len(l), 36))
	}
	var b strings.Builder
	for i, f := range s.flags {
		_, usage := f.placeholder()
		if f.def != "" {
			usage += " (default " + f.def + ")"
		}
		column := width + 3
		fmt.Fprintf(&b, "%-*s", column, left[i])
		if len(left[i]) >= column {
			fmt.Fprintf(&b, "\n%*s", column, "")
		}
		b.WriteString(wrap(usage, 100-column, strings.Repeat(" ", column)) + "\n")
	}
	return b.String()
}

// wrap breaks text into lines of at most width characters; indent begins all
// but the first.
func wrap(text string, width int, indent string) string {
	var b strings.Builder
	at := 0
	for i, w := range strings.Fields(text) {
		switch {
		case i == 0:
		case at+1+len(w) > width:
			b.WriteString("\n" + indent)
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(w)
		at += len(w)
	}
	return b.String()
}
