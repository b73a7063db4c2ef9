package agree

import (
	"errors"
	"strings"
)

// tables reads a TOML file as containerd's are: the values as written, by the path of their keys.
// It reads more of TOML than package internal/toml, which is for options, and is less strict:
// containerd has read the file already, and complains of what is wrong.
func tables(text string) (map[string]string, error) {
	r := &reader{text: text, values: map[string]string{}}
	at := ""
	for r.blank(true); r.text != ""; r.blank(true) {
		if r.text[0] == '[' {
			r.text = strings.TrimLeft(r.text, "[ \t")
			path, err := r.path()
			if err != nil {
				return nil, err
			}
			at = path
			r.text = strings.TrimLeft(r.text, "] \t")
			continue
		}
		if err := r.pair(at); err != nil {
			return nil, err
		}
	}
	return r.values, nil
}

type reader struct {
	text   string
	values map[string]string
}

// between stands between the keys of a path; no key has it.
const between = "\x00"

func join(at string, keys ...string) string {
	path := strings.Join(keys, between)
	if at == "" {
		return path
	}
	return at + between + path
}

var errTOML = errors.New("this is not TOML")

// blank passes over white space and comments, and line breaks where those are nothing.
func (r *reader) blank(lines bool) {
	for {
		before := len(r.text)
		r.text = strings.TrimLeft(r.text, " \t\r")
		if strings.HasPrefix(r.text, "#") {
			if end := strings.IndexByte(r.text, '\n'); end >= 0 {
				r.text = r.text[end:]
			} else {
				r.text = ""
			}
		}
		if lines {
			r.text = strings.TrimLeft(r.text, "\n")
		}
		if len(r.text) == before {
			return
		}
	}
}

// path reads keys with dots between them.
func (r *reader) path() (string, error) {
	path := ""
	for {
		r.blank(false)
		key := ""
		if r.text != "" && (r.text[0] == '"' || r.text[0] == '\'') {
			text, err := r.quoted()
			if err != nil {
				return "", err
			}
			key = text
		} else {
			end := strings.IndexFunc(r.text, func(c rune) bool {
				return !(c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
			})
			if end <= 0 {
				return "", errTOML
			}
			key, r.text = r.text[:end], r.text[end:]
		}
		path = join(path, key)
		r.blank(false)
		if !strings.HasPrefix(r.text, ".") {
			return path, nil
		}
		r.text = r.text[1:]
	}
}

// pair reads KEY = VALUE below a path.
func (r *reader) pair(at string) error {
	path, err := r.path()
	if err != nil {
		return err
	}
	if !strings.HasPrefix(r.text, "=") {
		return errTOML
	}
	r.text = r.text[1:]
	r.blank(false)
	return r.value(join(at, path))
}

// value reads one, and keeps what it is.
func (r *reader) value(at string) error {
	switch {
	case r.text == "":
		return errTOML
	case r.text[0] == '"' || r.text[0] == '\'':
		text, err := r.quoted()
		r.values[at] = text
		return err
	case r.text[0] == '{':
		r.text = r.text[1:]
		for {
			r.blank(true)
			switch {
			case r.text == "":
				return errTOML
			case r.text[0] == '}':
				r.text = r.text[1:]
				return nil
			case r.text[0] == ',':
				r.text = r.text[1:]
			default:
				if err := r.pair(at); err != nil {
					return err
				}
			}
		}
	case r.text[0] == '[':
		return r.array(at)
	}
	end := strings.IndexAny(r.text, ",]}#\n")
	if end < 0 {
		end = len(r.text)
	}
	if end == 0 {
		return errTOML
	}
	r.values[at] = strings.TrimSpace(r.text[:end])
	r.text = r.text[end:]
	return nil
}

// array reads values, and keeps them with line breaks between.
func (r *reader) array(at string) error {
	r.text = r.text[1:]
	var list []string
	for {
		r.blank(true)
		switch {
		case r.text == "":
			return errTOML
		case r.text[0] == ']':
			r.text = r.text[1:]
			r.values[at] = strings.Join(list, "\n")
			return nil
		case r.text[0] == ',':
			r.text = r.text[1:]
		default:
			if err := r.value(at); err != nil {
				return err
			}
			list = append(list, r.values[at])
		}
	}
}

// quoted reads a string of one line or several. Escapes but for quotes stay as they are: nothing
// that is asked for has any.
func (r *reader) quoted() (string, error) {
	quote := r.text[:1]
	if three := strings.Repeat(quote, 3); strings.HasPrefix(r.text, three) {
		quote = three
	}
	rest := r.text[len(quote):]
	for i := 0; i+len(quote) <= len(rest); i++ {
		switch {
		case rest[i] == '\\' && quote[0] == '"':
			i++
		case rest[i:i+len(quote)] == quote:
			r.text = rest[i+len(quote):]
			return strings.ReplaceAll(rest[:i], `\"`, `"`), nil
		case rest[i] == '\n' && len(quote) == 1:
			return "", errTOML
		}
	}
	return "", errTOML
}
