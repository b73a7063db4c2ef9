package settings

import (
	"strconv"
	"strings"
)

// WithParent gives the text of a file with another parent, and all else as it was, comments too;
// with "" it gives the text without one.
func WithParent(text, parent string) string {
	line := ""
	if parent != "" {
		line = parentKey + " = " + strconv.Quote(parent) + "\n"
	}
	var b strings.Builder
	for l := range strings.Lines(text) {
		key, _, found := strings.Cut(l, "=")
		if found && strings.Trim(strings.TrimSpace(key), `"'`) == parentKey {
			b.WriteString(line)
			line = ""
			continue
		}
		b.WriteString(l)
	}
	if line != "" && b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
		b.WriteByte('\n')
	}
	return b.String() + line
}
