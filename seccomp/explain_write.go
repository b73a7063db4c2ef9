package seccomp

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/berth-runtime/berth/internal/json"
)

// WriteText writes the explanation for people: a line for each range of numbers.
func (e *Explanation) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "default action: %s; other architectures: %s\n", e.Default, e.BadArch)
	fmt.Fprintf(&b, "%d instructions, flags: %s\n", e.Instructions, orNone(e.Flags))
	for _, a := range e.Ignored {
		fmt.Fprintf(&b, "%s is listed, but no program of it can run on such a machine\n", a)
	}
	for _, u := range e.Unknown {
		fmt.Fprintf(&b, "%s: no architecture has a system call %q\n", u.Pointer, u.Name)
	}
	for i := range e.Archs {
		a := &e.Archs[i]
		fmt.Fprintf(&b, "\n%s\n", a.Arch)
		for k := range a.Ranges {
			r := &a.Ranges[k]
			fmt.Fprintf(&b, "  %-13s %s\n", r.numbers(), r.outcome())
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Range) numbers() string {
	switch {
	case r.First == r.Last:
		return fmt.Sprint(r.First)
	case r.Last == math.MaxUint32:
		return fmt.Sprintf("%d-", r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

func (r *Range) outcome() string {
	if len(r.Rules) > 0 {
		var b strings.Builder
		b.WriteString(strings.Join(r.Names, ", ") + ", by its arguments:\n")
		for i := range r.Rules {
			fmt.Fprintf(&b, "%18s%-14s %s\n", "", r.Rules[i].Pointer, describeRule(&r.Rules[i]))
		}
		return b.String() + fmt.Sprintf("%18s%-14s %s", "", "else", r.Result)
	}
	switch n := len(r.Names); {
	case n == 0:
		return r.Result
	case n <= 4:
		return r.Result + ": " + strings.Join(r.Names, ", ")
	default:
		return fmt.Sprintf("%s: %d calls, %s to %s", r.Result, n, r.Names[0], r.Names[n-1])
	}
}

// WriteJSON writes the explanation for programs.
func (e *Explanation) WriteJSON(w io.Writer) error {
	j := json.NewWriter(nil, "  ")
	j.Object()
	j.Key("instructions").Uint(uint64(e.Instructions))
	j.Key("default").String(e.Default)
	j.Key("badArch").String(e.BadArch)
	j.Key("flags").Strings(e.Flags)
	j.Key("architectures").Array()
	for i := range e.Archs {
		a := &e.Archs[i]
		j.Object()
		j.Key("arch").String(string(a.Arch))
		j.Key("ranges").Array()
		for k := range a.Ranges {
			r := &a.Ranges[k]
			j.Object()
			j.Key("first").Uint(uint64(r.First))
			j.Key("last").Uint(uint64(r.Last))
			j.Key("names").Strings(r.Names)
			j.Key("result").String(r.Result)
			writeRules(j, r.Rules)
			j.End()
		}
		j.End()
		j.End()
	}
	j.End()
	j.Key("ignoredArchitectures").Array()
	for _, a := range e.Ignored {
		j.String(string(a))
	}
	j.End()
	j.Key("unknownNames").Array()
	for _, u := range e.Unknown {
		j.Object()
		j.Key("pointer").String(u.Pointer)
		j.Key("name").String(u.Name)
		j.End()
	}
	j.End()
	j.End()
	_, err := w.Write(append(j.Bytes(), '\n'))
	return err
}

func writeRules(j *json.Writer, rules []RuleExplanation) {
	if len(rules) == 0 {
		return
	}
	j.Key("rules").Array()
	for i := range rules {
		r := &rules[i]
		j.Object()
		j.Key("pointer").String(r.Pointer)
		j.Key("result").String(r.Result)
		j.Key("conditions").Strings(r.Conditions)
		if r.Void != "" {
			j.Key("void").String(r.Void)
		}
		j.End()
	}
	j.End()
}

// WriteText writes the explanation for people: the rules and the result on each architecture.
func (e *SyscallExplanation) WriteText(w io.Writer) error {
	var b strings.Builder
	b.WriteString(e.Name + "\n")
	for i := range e.Archs {
		a := &e.Archs[i]
		if !a.Exists && a.Via == nil {
			fmt.Fprintf(&b, "\n%s: has no such call\n", a.Arch)
			continue
		}
		if a.Exists {
			fmt.Fprintf(&b, "\n%s: number %d\n", a.Arch, a.Number)
			for k := range a.Rules {
				r := &a.Rules[k]
				fmt.Fprintf(&b, "  %-14s %s", r.Pointer, describeRule(r))
				if r.Void != "" {
					b.WriteString(", without effect: " + r.Void)
				}
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "  %-14s %s (%s)\n", a.otherwise(), a.Result, a.Reason)
		} else {
			fmt.Fprintf(&b, "\n%s\n", a.Arch)
		}
		if v := a.Via; v != nil {
			fmt.Fprintf(&b, "  by %s, number %d, with arg0 == %d: %s (%s)\n", v.Name, v.Number, v.Call, v.Result, v.Reason)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// otherwise introduces the result: what holds where no rule does, or what holds.
func (a *SyscallOnArch) otherwise() string {
	for i := range a.Rules {
		if a.Rules[i].Void == "" && len(a.Rules[i].Conditions) > 0 {
			return "else"
		}
	}
	return "result"
}

// WriteJSON writes the explanation for programs.
func (e *SyscallExplanation) WriteJSON(w io.Writer) error {
	j := json.NewWriter(nil, "  ")
	j.Object()
	j.Key("name").String(e.Name)
	j.Key("architectures").Array()
	for i := range e.Archs {
		a := &e.Archs[i]
		j.Object()
		j.Key("arch").String(string(a.Arch))
		if a.Exists {
			j.Key("number").Uint(uint64(a.Number))
			writeRules(j, a.Rules)
			j.Key("result").String(a.Result)
			j.Key("reason").String(a.Reason)
		}
		if v := a.Via; v != nil {
			j.Key("via").Object()
			j.Key("name").String(v.Name)
			j.Key("number").Uint(uint64(v.Number))
			j.Key("call").Uint(uint64(v.Call))
			j.Key("result").String(v.Result)
			j.Key("reason").String(v.Reason)
			j.End()
		}
		j.End()
	}
	j.End()
	j.End()
	_, err := w.Write(append(j.Bytes(), '\n'))
	return err
}

// WriteText writes the program for people, an instruction a line, with what it loads and returns in
// words.
func (f *Filter) WriteText(w io.Writer) error {
	var b strings.Builder
	for i, ins := range f.Program {
		fmt.Fprintf(&b, "%4d: %s\n", i, f.disassemble(i, ins))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes the program and how it is to be loaded for programs.
func (f *Filter) WriteJSON(w io.Writer) error {
	j := json.NewWriter(nil, "  ")
	j.Object()
	j.Key("flags").Uint(uint64(f.Flags))
	j.Key("notify").Bool(f.Notify)
	j.Key("architectures").Array()
	for _, a := range f.Archs {
		j.String(string(a))
	}
	j.End()
	j.Key("program").Array()
	for _, ins := range f.Program {
		j.Raw(fmt.Sprintf(`{"code": %d, "jt": %d, "jf": %d, "k": %d}`, ins.Code, ins.Jt, ins.Jf, ins.K))
	}
	j.End()
	j.End()
	_, err := w.Write(append(j.Bytes(), '\n'))
	return err
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
