package stdio

import (
	"fmt"
	"strings"
)

// The kinds of places that output can go to.
const (
	schemeFIFO     = "fifo"
	schemeFile     = "file"
	schemeBinary   = "binary"
	schemeBinaryV2 = "binary-v2"
	// schemeStream is the shim's own address, and in the query which of its streams.
	schemeStream = "ttrpc+unix"
)

// place is a parsed stdio URI.
type place struct {
	scheme string
	path   string
	query  [][2]string // in the order given
}

// parse reads a stdio URI; a path without a scheme is that of a FIFO. Unlike
// net/url it keeps the order of the query, which becomes an argument list.
func parse(uri string) (place, error) {
	scheme, rest, found := strings.Cut(uri, "://")
	if !found {
		return place{scheme: schemeFIFO, path: uri}, nil
	}
	p := place{scheme: scheme}
	switch scheme {
	case schemeFIFO, schemeFile, schemeBinary, schemeBinaryV2, schemeStream:
	default:
		return p, fmt.Errorf("stdio %q: unknown scheme %q: use %s, %s, %s, %s or %s",
			uri, scheme, schemeFIFO, schemeFile, schemeBinary, schemeBinaryV2, schemeStream)
	}
	path, query, _ := strings.Cut(rest, "?")
	var err error
	if p.path, err = unescape(path, false); err != nil {
		return p, fmt.Errorf("stdio %q: %w", uri, err)
	}
	if !strings.HasPrefix(p.path, "/") {
		return p, fmt.Errorf("stdio %q: path %q is not absolute", uri, p.path)
	}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		if key, err = unescape(key, true); err == nil {
			value, err = unescape(value, true)
		}
		if err != nil {
			return p, fmt.Errorf("stdio %q: %w", uri, err)
		}
		p.query = append(p.query, [2]string{key, value})
	}
	return p, nil
}

// stream is the id in place of a stream.
func (p place) stream() (string, error) {
	for _, pair := range p.query {
		if pair[0] == "streaming_id" && pair[1] != "" {
			return pair[1], nil
		}
	}
	return "", fmt.Errorf("stdio %s://%s has no streaming_id", p.scheme, p.path)
}

// unescape undoes percent-encoding and, in a query, the plus that is a blank.
func unescape(s string, query bool) (string, error) {
	if !strings.ContainsAny(s, "%+") {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '%':
			if i+2 >= len(s) {
				return "", fmt.Errorf("%q ends in the middle of an escape", s)
			}
			hi, lo := hex(s[i+1]), hex(s[i+2])
			if hi < 0 || lo < 0 {
				return "", fmt.Errorf("%q is not an escape", s[i:i+3])
			}
			b.WriteByte(byte(hi<<4 | lo))
			i += 2
		case s[i] == '+' && query:
			b.WriteByte(' ')
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

func hex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
