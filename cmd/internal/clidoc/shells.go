package clidoc

import (
	"fmt"
	"strings"

	"github.com/berth-runtime/berth/cmd/internal/cli"
)

// Shells are those that Completion knows.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Completion is the script by which a shell completes the commands.
func Completion(root *Node, shell string) ([]byte, error) {
	switch shell {
	case "bash":
		return []byte(bash(root)), nil
	case "zsh":
		return []byte(zsh(root)), nil
	case "fish":
		return []byte(fish(root)), nil
	}
	return nil, fmt.Errorf("there are completions for %s, not for %q", strings.Join(Shells(), ", "), shell)
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// bash finds out which command the line is in, and offers what its definition has.
func bash(root *Node) string {
	var commands, valued, offers strings.Builder
	root.walk(func(n *Node) {
		var words1 []string
		for _, sub := range n.Subs {
			fmt.Fprintf(&commands, "\t\t%s) path=%s ;;\n", quote(sub.Path), quote(sub.Path))
			words1 = append(words1, sub.Name)
		}
		var options []string
		for _, f := range n.flags() {
			options = append(options, "--"+f.Name)
			if f.Value == "" {
				continue
			}
			for _, s := range spellings(f) {
				fmt.Fprintf(&valued, "\t\t%s) value=%s ;;\n", quote(n.Path+" "+s), quote(valueOffer(f)))
			}
		}
		rest := strings.Join(words1, " ")
		switch {
		case rest != "":
		case n.takesID():
			rest = "\"$(" + root.Name + " list -q 2>/dev/null)\""
		case n.takesCommand():
			rest = "@command"
		default:
			rest = "@file"
		}
		if !strings.HasPrefix(rest, "\"") {
			rest = quote(rest)
		}
		fmt.Fprintf(&offers, "\t%s) options=%s rest=%s ;;\n", quote(n.Path), quote(strings.Join(options, " ")), rest)
	})
	name := root.Name
	return `# bash completion of ` + name + `, made by "` + name + ` completion bash"
_` + name + `() {
	local cur=${COMP_WORDS[COMP_CWORD]} path=` + name + ` value='' options='' rest='' i
	for ((i = 1; i < COMP_CWORD; i++)); do
		value=''
		case "$path ${COMP_WORDS[i]}" in
` + commands.String() + valued.String() + `		esac
		# The word behind such an option is its value.
		if [[ -n $value ]] && ((i < COMP_CWORD - 1)); then ((i++)); value=''; fi
	done
	case $path in
` + offers.String() + `	esac
	if [[ -n $value ]]; then rest=$value; options=''
	elif [[ $cur == -* ]]; then rest=$options
	fi
	case $rest in
	@file) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); compopt -o filenames 2>/dev/null ;;
	@command) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	@none) COMPREPLY=() ;;
	*) mapfile -t COMPREPLY < <(compgen -W "$rest" -- "$cur") ;;
	esac
	return 0
}
complete -F _` + name + ` ` + name + `
`
}

// valueOffer is what bash offers for an option's value.
func valueOffer(f *cli.Flag) string {
	switch list := words(f); {
	case len(list) > 0:
		return strings.Join(list, " ")
	case isPath(f):
		return "@file"
	}
	return "@none"
}

// zsh has a function for each command.
func zsh(root *Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n# zsh completion of %s, made by \"%s completion zsh\"\n", root.Name, root.Name, root.Name)
	root.walk(func(n *Node) {
		fmt.Fprintf(&b, "\n%s() {\n", zshName(n))
		if len(n.Subs) > 0 {
			b.WriteString("\tlocal state line\n\tlocal -a commands=(\n")
			for _, sub := range n.Subs {
				fmt.Fprintf(&b, "\t\t%s\n", quote(sub.Name+":"+sub.Summary))
			}
			b.WriteString("\t)\n")
		}
		b.WriteString("\t_arguments -C -s -S")
		for _, f := range n.flags() {
			for _, s := range spellings(f) {
				fmt.Fprintf(&b, " \\\n\t\t%s", quote("*"+s+"["+zshText(f.Help)+"]"+zshValue(f)))
			}
		}
		switch {
		case len(n.Subs) > 0:
			b.WriteString(" \\\n\t\t'1:command:{_describe command commands}' \\\n\t\t'*::argument:->argument'\n")
			b.WriteString("\tcase $state in\n\targument)\n\t\tcase $line[1] in\n")
			for _, sub := range n.Subs {
				fmt.Fprintf(&b, "\t\t%s) %s ;;\n", sub.Name, zshName(sub))
			}
			b.WriteString("\t\tesac ;;\n\tesac\n")
		case n.takesID():
			fmt.Fprintf(&b, " \\\n\t\t'1:container:(${(f)\"$(%s list -q 2>/dev/null)\"})' \\\n\t\t'*:argument:_files'\n", root.Name)
		case n.takesCommand():
			b.WriteString(" \\\n\t\t'(-)1:command:_command_names -e' \\\n\t\t'*::argument:_normal'\n")
		default:
			b.WriteString(" \\\n\t\t'*:argument:_files'\n")
		}
		b.WriteString("}\n")
	})
	fmt.Fprintf(&b, "\n%s \"$@\"\n", zshName(root))
	return b.String()
}

func zshName(n *Node) string {
	return "_" + strings.NewReplacer(" ", "_", "-", "_").Replace(n.Path)
}

func zshText(text string) string {
	return strings.NewReplacer("[", "(", "]", ")", ":", ";").Replace(text)
}

func zshValue(f *cli.Flag) string {
	switch list := words(f); {
	case f.Value == "":
		return ""
	case len(list) > 0:
		return ":value:(" + strings.Join(list, " ") + ")"
	case isPath(f):
		return ":file:_files"
	}
	return ":value: "
}

// fish has a line for each option, under the condition that the line is in its command.
func fish(root *Node) string {
	var b strings.Builder
	name := root.Name
	fmt.Fprintf(&b, "# fish completion of %s, made by \"%s completion fish\"\n", name, name)
	var paths []string
	root.walk(func(n *Node) { paths = append(paths, quote(n.Path)) })
	fmt.Fprintf(&b, "set -g __%s_paths %s\n", name, strings.Join(paths, " "))
	fmt.Fprintf(&b, `function __%[1]s_at
	set -l path %[1]s
	for word in (commandline -opc)[2..-1]
		contains -- "$path $word" $__%[1]s_paths; and set path "$path $word"
	end
	test "$path" = "$argv"
end
complete -c %[1]s -f
`, name)
	root.walk(func(n *Node) {
		at := "-n " + quote("__"+name+"_at "+n.Path)
		for _, sub := range n.Subs {
			fmt.Fprintf(&b, "complete -c %s %s -a %s -d %s\n", name, at, sub.Name, quote(sub.Summary))
		}
		switch {
		case len(n.Subs) > 0:
		case n.takesID():
			fmt.Fprintf(&b, "complete -c %s %s -a %s\n", name, at, quote("("+name+" list -q 2>/dev/null)"))
		case n.takesCommand():
			fmt.Fprintf(&b, "complete -c %s %s -a %s\n", name, at, quote("(__fish_complete_command)"))
		default:
			fmt.Fprintf(&b, "complete -c %s %s -F\n", name, at)
		}
		for _, f := range n.flags() {
			fmt.Fprintf(&b, "complete -c %s %s -l %s", name, at, f.Name)
			for _, letter := range f.Letters {
				fmt.Fprintf(&b, " -s %c", letter)
			}
			switch list := words(f); {
			case f.Value == "":
			case len(list) > 0:
				fmt.Fprintf(&b, " -x -a %s", quote(strings.Join(list, " ")))
			case isPath(f):
				b.WriteString(" -r -F")
			default:
				b.WriteString(" -x")
			}
			fmt.Fprintf(&b, " -d %s\n", quote(f.Help))
		}
	})
	return b.String()
}
