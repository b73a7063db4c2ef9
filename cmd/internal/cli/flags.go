package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/typo"
)

// A Flag is one option of a command.
type Flag struct {
	Name    string
	Letters string // other spellings: single letters, each of its own
	Value   string // what its value is called in help; "" for a switch
	Help    string
	// Default is told in help where it is not empty.
	Default string
	// Hidden flags are accepted for callers of old, and not told.
	Hidden bool
	// Also are the words by which other programs have it: a hint names it.
	Also []string

	set func(value string) error
}

// Flags are the options of a command, in the order of their definition.
type Flags struct {
	List []*Flag
	// Absent says why there is no option of a name that people may look for, "" if it does not
	// know; or nil.
	Absent func(name string) string
}

func (f *Flags) add(flag *Flag) *Flag {
	f.List = append(f.List, flag)
	return flag
}

// Bool defines a switch.
func (f *Flags) Bool(to *bool, name, letters, help string) *Flag {
	return f.add(&Flag{Name: name, Letters: letters, Help: help, set: func(v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", v)
		}
		*to = b
		return nil
	}})
}

// String defines an option with a value.
func (f *Flags) String(to *string, name, letters, value, help string) *Flag {
	return f.add(&Flag{Name: name, Letters: letters, Value: value, Help: help, Default: *to, set: func(v string) error {
		*to = v
		return nil
	}})
}

// Strings defines an option that may be given several times.
func (f *Flags) Strings(to *[]string, name, letters, value, help string) *Flag {
	return f.add(&Flag{Name: name, Letters: letters, Value: value, Help: help, set: func(v string) error {
		*to = append(*to, v)
		return nil
	}})
}

// Int defines an option whose value is a whole number.
func (f *Flags) Int(to *int, name, letters, value, help string) *Flag {
	return f.add(&Flag{Name: name, Letters: letters, Value: value, Help: help, set: func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", v)
		}
		*to = n
		return nil
	}})
}

// Func defines an option whose value is given to a function.
func (f *Flags) Func(name, letters, value, help string, set func(string) error) *Flag {
	return f.add(&Flag{Name: name, Letters: letters, Value: value, Help: help, set: set})
}

// Has reports whether there is an option of this name, or letter.
func (f *Flags) Has(name string) bool { return f.find(name) != nil }

func (f *Flags) find(name string) *Flag {
	for _, flag := range f.List {
		if flag.Name == name || len(name) == 1 && strings.Contains(flag.Letters, name) {
			return flag
		}
	}
	return nil
}

// parse applies the options among args and returns the other arguments. Options
// may be spelt with one dash or two, and with their value behind = or as the next
// argument. After "--", or after the first argument where that ends them,
// nothing is an option any more. With an error it returns what is behind the option at fault.
func (f *Flags) parse(args []string, firstEnds bool) ([]string, error) {
	var rest []string
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			return append(rest, args...), nil
		case len(arg) < 2 || arg[0] != '-':
			rest = append(rest, arg)
			if firstEnds {
				return append(rest, args...), nil
			}
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		flag := f.find(name)
		if flag == nil {
			if letters, ok := f.bundle(arg); ok {
				args = append(letters, args...)
				continue
			}
			return args, &UnknownFlag{Spelling: arg, name: name, hint: f.hint(name)}
		}
		if !hasValue && flag.Value == "" {
			value = "true"
		} else if !hasValue {
			if len(args) == 0 {
				return args, fmt.Errorf("option %s needs a value: %s", arg, flag.Value)
			}
			value, args = args[0], args[1:]
		}
		if err := flag.set(value); err != nil {
			return args, fmt.Errorf("option --%s: %w", flag.Name, err)
		}
	}
	return rest, nil
}

// bundle takes letters written together apart, as getopt(3) does: -nvr NAME is -n -v -r NAME. All
// but the last are switches. A word of letters that is close to an option's name is a typing
// mistake.
func (f *Flags) bundle(arg string) (letters []string, ok bool) {
	if len(arg) < 3 || arg[1] == '-' || len(arg) > 5 && f.meant(arg[1:]) != "" {
		return nil, false
	}
	for i, letter := range arg[1:] {
		flag := f.find(string(letter))
		if flag == nil || flag.Value != "" && i < len(arg)-2 {
			return nil, false
		}
		letters = append(letters, "-"+string(letter))
	}
	return letters, true
}

// UnknownFlag is the error for an option that a command does not have.
type UnknownFlag struct{ Spelling, name, hint string }

func (e *UnknownFlag) Error() string { return "unknown option " + e.Spelling + e.hint }

// didYouMean is the end of an error about an unknown word.
func didYouMean(meant string) string {
	if meant == "" {
		return ""
	}
	return ", did you mean " + meant + "?"
}

// hint is the end of an error about an option that there is not.
func (f *Flags) hint(name string) string {
	if f.Absent != nil {
		if why := f.Absent(name); why != "" {
			return ": " + why
		}
	}
	if meant := f.meant(name); meant != "" {
		return didYouMean("--" + meant)
	}
	return ""
}

// meant is the option that was meant by a name: the one that other programs call so, one whose name
// begins so, or else the one that is spelt most like it. A letter or two are like too many.
func (f *Flags) meant(name string) string {
	var names []string
	begins := ""
	for _, flag := range f.List {
		switch {
		case flag.Hidden:
			continue
		case slices.Contains(flag.Also, name):
			return flag.Name
		case len(name) > 2 && strings.HasPrefix(flag.Name, name) && (begins == "" || len(flag.Name) < len(begins)):
			begins = flag.Name
		}
		names = append(names, flag.Name)
	}
	if begins != "" || len(name) < 3 {
		return begins
	}
	return typo.Meant(name, names)
}
