package clidoc

import (
	"fmt"
	"strings"

	"github.com/berth-runtime/berth/cmd/internal/cli"
)

// bash finds out which command the line is in, and offers what its definition has.
func (s *script) bash() string {
	var commands, valued, firsts, offers strings.Builder
	s.valued(func(n *Node, spelling string, f *cli.Flag) {
		fmt.Fprintf(&valued, "\t\t\t%s) value=%s ;;\n", quote(n.Path+" "+spelling), quote(s.offerFor(f.Value).bash()))
	})
	s.root.walk(func(n *Node) {
		var options, names, places []string
		for _, f := range n.flags() {
			options = append(options, "--"+f.Name)
		}
		for _, sub := range n.Subs {
			fmt.Fprintf(&commands, "\t\t%s) path=%s count=0 ;;\n", quote(sub.Path), quote(sub.Path))
			names = append(names, sub.Name)
		}
		list, repeated := s.arguments(n)
		if n.Subs != nil {
			list = []offer{{words: names}}
		}
		for _, o := range list {
			places = append(places, quote(o.bash()))
		}
		more := ""
		if repeated {
			more = " more=1"
		}
		if n.FirstEnds {
			fmt.Fprintf(&firsts, "\t\t%s) over=1 ;;\n", quote(n.Path))
		}
		fmt.Fprintf(&offers, "\t%s) options=%s places=(%s)%s ;;\n", quote(n.Path), quote(strings.Join(options, " ")), strings.Join(places, " "), more)
	})
	return strings.NewReplacer("NAME", s.root.Name, "VALUED\n", valued.String(), "COMMANDS\n", commands.String(),
		"FIRSTS\n", firsts.String(), "OFFERS\n", offers.String()).Replace(bashScript)
}

// bash writes an offer as words of the script, of which those with @ stand for something.
func (o offer) bash() string {
	list := append([]string(nil), o.words...)
	for _, name := range o.asked {
		list = append(list, "@ask:"+name)
	}
	if o.file {
		list = append(list, "@file")
	}
	if o.command {
		list = append(list, "@command")
	}
	if list == nil {
		return "@none"
	}
	return strings.Join(list, " ")
}

// bashScript reads the line by words. Bash has parted them at = and : too. They are put together
// again, and what it regards as another word is taken off the replies. Nothing that the program
// says is expanded, as "compgen -W" would do: others choose the names of cgroups.
const bashScript = `# bash completion of NAME, made by "NAME completion bash"
_NAME() {
	local path=NAME value='' options='' over='' more='' lead='' past='' count=0 i one word cur
	local text=${COMP_LINE:0:COMP_POINT}
	local -a words=() places=() global=() found=() want=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		one=1
		if ((i > 0)) && [[ $text != [[:space:]]* ]]; then one=''; fi
		text=${text#"${text%%[![:space:]]*}"} word=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || word=$text
		text=${text#"$word"}
		if [[ -n $one ]]; then words+=("$word"); else words[-1]+=$word; fi
	done
	local last=$((${#words[@]} - 1))
	cur=${words[last]}
	for ((i = 1; i <= last; i++)); do
		word=${words[i]}
		if [[ -z $over && $word == -?* ]]; then
			if ((i < last)) && [[ $word == -- ]]; then over=1; continue; fi
			one=${word%%=*} value=''
			[[ $one != -[!-]?* ]] || one=-$one
			case "$path $one" in
VALUED
			esac
			[[ -n $value ]] || continue
			if [[ $word == *=* ]]; then lead=${word%%=*}= cur=${word#*=}
			elif ((i < last)); then ((++i)); lead='' cur=${words[i]}
			else value=''; continue
			fi
			((i < last)) || continue
			[[ "$path $one" != 'NAME --root' ]] || global=(--root "$cur")
			value='' lead='' cur=${words[last]}
			continue
		fi
		((i < last)) || break
		case "$path $word" in
COMMANDS
		*) ((++count)) ;;
		esac
		((count == 0)) || case $path in
FIRSTS
		esac
	done
	case $path in
OFFERS
	esac
	one=''
	if [[ -n $value ]]; then one=$value
	elif [[ -z $over && $cur == -* ]]; then one=$options
	elif ((count < ${#places[@]})); then one=${places[count]}
	elif [[ -n $more ]]; then one=${places[-1]}
	fi
	read -ra want <<< "$one"
	for one in = :; do
		text=$lead${cur}
		if [[ $COMP_WORDBREAKS == *$one* && $text == *$one* ]]; then
			text=${text%"$one"*}$one
			((${#text} <= ${#past})) || past=$text
		fi
	done
	COMPREPLY=()
	for word in "${want[@]}"; do
		# The path behind the last = or : is a file's too: PATH:PLACE, type=bind,src=PATH.
		text=${cur##*[=:]}
		case $word in
		@file)
			mapfile -t found < <(compgen -f -- "$text")
			found=("${found[@]/#/"${cur%"$text"}"}")
			compopt -o filenames 2>/dev/null ;;
		@command) mapfile -t found < <(compgen -c -- "$cur") ;;
		@ask:*) mapfile -t found < <("${words[0]}" "${global[@]}" completion --offer "${word#@ask:}" -- "$cur" 2>/dev/null) ;;
		@none) found=() ;;
		*) found=("$word") ;;
		esac
		for one in "${found[@]}"; do
			if [[ $word != @file && $word != @command ]]; then
				[[ $one == "$cur"* ]] || continue
				[[ $word != @ask:* ]] || printf -v one %q "$one"
			fi
			one=$lead$one
			COMPREPLY+=("${one#"$past"}")
		done
	done
	if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[=:/] ]]; then compopt -o nospace 2>/dev/null; fi
	return 0
}
complete -F _NAME NAME
`
