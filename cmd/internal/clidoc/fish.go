package clidoc

import (
	"fmt"
	"strings"

	"github.com/berth-runtime/berth/cmd/internal/cli"
)

// fish has a line for each option and argument, under the condition that the line is in its
// command, and at its place.
func (s *script) fish() string {
	var paths, valued []string
	s.root.walk(func(n *Node) { paths = append(paths, quote(n.Path)) })
	s.valued(func(n *Node, spelling string, _ *cli.Flag) { valued = append(valued, quote(n.Path+" "+spelling)) })
	name := s.root.Name
	var b strings.Builder
	b.WriteString(strings.NewReplacer("NAME", name, "PATHS", strings.Join(paths, " "), "VALUED", strings.Join(valued, " ")).Replace(fishHead))
	s.root.walk(func(n *Node) {
		for _, sub := range n.Subs {
			fmt.Fprintf(&b, "complete -c %s -n %s -a %s -d %s\n", name, quote("__"+name+"_at "+quote(n.Path)), sub.Name, quote(sub.Summary))
		}
		if len(n.Subs) == 0 {
			list, repeated := s.arguments(n)
			for i, o := range list {
				place := fmt.Sprint(i)
				if repeated && i == len(list)-1 {
					place += " more"
				}
				if values := s.fishValues(o); values != "" {
					fmt.Fprintf(&b, "complete -c %s -n %s%s\n", name, quote("__"+name+"_at "+quote(n.Path)+" "+place), values)
				}
			}
		}
		for _, f := range n.flags() {
			fmt.Fprintf(&b, "complete -c %s -n %s -l %s", name, quote("__"+name+"_at "+quote(n.Path)), f.Name)
			for _, letter := range f.Letters {
				fmt.Fprintf(&b, " -s %c", letter)
			}
			if f.Value != "" {
				o := s.offerFor(f.Value)
				if b.WriteString(" -r"); !o.file {
					b.WriteString(" -f")
				}
				b.WriteString(s.fishValues(o))
			}
			fmt.Fprintf(&b, " -d %s\n", quote(f.Help))
		}
	})
	return b.String()
}

// fishValues are the options of complete(1) for an offer.
func (s *script) fishValues(o offer) string {
	list := append([]string(nil), o.words...)
	for _, name := range o.asked {
		list = append(list, "(__"+s.root.Name+"_ask "+quote(name)+")")
	}
	if o.command {
		list = append(list, "(__fish_complete_command)")
	}
	text := ""
	if o.file {
		text = " -F"
	}
	if len(list) > 0 {
		text += " -a " + quote(strings.Join(list, " "))
	}
	return text
}

const fishHead = `# fish completion of NAME, made by "NAME completion fish"
set -g __NAME_paths PATHS
set -g __NAME_valued VALUED
# Is the line in this command, with so many arguments behind it?
function __NAME_at
	set -l path NAME
	set -l count 0
	set -l skip 0
	for word in (commandline -opc)[2..-1]
		if test $skip = 1
			set skip 0
		else if string match -q -- '-*' $word
			contains -- "$path $word" $__NAME_valued; and set skip 1
		else if contains -- "$path $word" $__NAME_paths
			set path "$path $word"
			set count 0
		else
			set count (math $count + 1)
		end
	end
	test "$path" = "$argv[1]"; or return 1
	test (count $argv) = 1; and return 0
	test $count = $argv[2]; or begin
		test (count $argv) = 3; and test $count -ge $argv[2]
	end
end
function __NAME_ask
	set -l words (commandline -opc)
	set -l global
	for i in (seq 2 (count $words))
		switch $words[$i]
			case --root -root
				set global --root $words[(math $i + 1)]
			case '--root=*' '-root=*'
				set global --root (string replace -r '^[^=]*=' '' -- $words[$i])
			case '-*'
			case '*'
				break
		end
	end
	# The value of --option=value is behind the equals sign.
	set -l word (commandline -ct | string replace -r '^--?[^=]*=' '')
	$words[1] $global completion --offer $argv[1] -- "$word" 2>/dev/null
end
complete -c NAME -f
`
