package clidoc

import (
	"fmt"
	"strings"
)

// zsh has a function for each command.
func (s *script) zsh() string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(zshHead, "NAME", s.root.Name))
	s.root.walk(func(n *Node) {
		fmt.Fprintf(&b, "\n%s() {\n", zshName(n))
		if n == s.root {
			b.WriteString("\tlocal program=$words[1]; local -a global=(); _" + n.Name + "_global\n")
		}
		if len(n.Subs) > 0 {
			// Not "commands": that is zsh's own, in which _command_names looks.
			b.WriteString("\tlocal state line\n\tlocal -a subcommands=(\n")
			for _, sub := range n.Subs {
				fmt.Fprintf(&b, "\t\t%s\n", quote(sub.Name+":"+sub.Summary))
			}
			b.WriteString("\t)\n")
		}
		b.WriteString("\t_arguments -C -s -S")
		for _, f := range n.flags() {
			for _, spelling := range spellings(f) {
				value := ""
				if f.Value != "" {
					value = ":value:" + s.zshAction(s.offerFor(f.Value))
					if strings.HasPrefix(spelling, "--") {
						spelling += "=" // its value may be in the same word
					}
				}
				fmt.Fprintf(&b, " \\\n\t\t%s", quote("*"+spelling+"["+zshText(f.Help)+"]"+value))
			}
		}
		if len(n.Subs) > 0 {
			b.WriteString(" \\\n\t\t'1:command:{_describe command subcommands}' \\\n\t\t'*::argument:->argument'\n")
			b.WriteString("\tcase $state in\n\targument)\n\t\tcase $line[1] in\n")
			for _, sub := range n.Subs {
				fmt.Fprintf(&b, "\t\t%s) %s ;;\n", sub.Name, zshName(sub))
			}
			b.WriteString("\t\tesac ;;\n\tesac\n}\n")
			return
		}
		s.zshArguments(&b, n)
		b.WriteString("}\n")
	})
	fmt.Fprintf(&b, "\n%s \"$@\"\n", zshName(s.root))
	return b.String()
}

func (s *script) zshArguments(b *strings.Builder, n *Node) {
	list, repeated := s.arguments(n)
	for i, o := range list {
		place := fmt.Sprint(i + 1)
		if n.FirstEnds && i == 0 {
			place = "(-)1" // no option follows it
		}
		if repeated && i == len(list)-1 {
			place = "*"
		}
		if o.command { // what follows belongs to it
			fmt.Fprintf(b, " \\\n\t\t%s \\\n\t\t'*::argument:_normal'\n", quote(place+":command:"+s.zshAction(o)))
			return
		}
		fmt.Fprintf(b, " \\\n\t\t%s", quote(place+":argument:"+s.zshAction(o)))
	}
	b.WriteByte('\n')
}

func zshName(n *Node) string {
	return "_" + strings.NewReplacer(" ", "_", "-", "_").Replace(n.Path)
}

func zshText(text string) string {
	return strings.NewReplacer("[", "(", "]", ")", ":", ";").Replace(text)
}

// zshAction is what _arguments does for an offer. A blank stands for none.
func (s *script) zshAction(o offer) string {
	var words []string
	if len(o.words) > 0 {
		words = append(words, "compadd -- "+strings.Join(o.words, " "))
	}
	for _, name := range o.asked {
		words = append(words, "_"+s.root.Name+"_ask "+quote(name))
	}
	if o.file {
		words = append(words, "_files")
	}
	if o.command {
		words = append(words, "_command_names -e")
	}
	switch {
	case len(words) == 0:
		return " "
	case len(words) == 1 && o.file:
		return "_files"
	}
	// In braces it is a list of commands, whose colons would end the action.
	return "{" + strings.ReplaceAll(strings.Join(words, "; "), ":", `\:`) + "}"
}

// zshHead has what the functions ask the program by. A word that more must follow gets no blank.
const zshHead = `#compdef NAME
# zsh completion of NAME, made by "NAME completion zsh"

_NAME_global() {
	local i
	for ((i = 2; i < CURRENT; i++)); do
		case $words[i] in
		--root|-root) global=(--root "${(Q)words[i+1]}") ;;
		--root=*|-root=*) global=(--root "${(Q)words[i]#*=}") ;;
		-*) ;;
		*) return ;;
		esac
	done
}

_NAME_ask() {
	local -a found=(${(f)"$($program $global completion --offer $1 -- "${(Q)PREFIX}" 2>/dev/null)"})
	compadd -S '' -- ${(M)found:#*[=:/]}
	compadd -- ${found:#*[=:/]}
}
`
