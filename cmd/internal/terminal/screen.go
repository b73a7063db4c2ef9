package terminal

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Screen is what the output can display.
type Screen struct {
	Width   int // in characters; 0 is without bounds
	Height  int
	Color   bool
	Unicode bool
}

// ScreenOf looks at where the output goes. Colours are for terminals that
// have them, unless NO_COLOR is set (no-color.org); a file gets whole lines.
func ScreenOf(out *os.File, getenv func(string) string) Screen {
	s := Screen{Unicode: isUTF8(getenv)}
	if !IsTerminal(int(out.Fd())) {
		return s
	}
	term := getenv("TERM")
	s.Color = getenv("NO_COLOR") == "" && term != "" && term != "dumb"
	s.Resize(out)
	return s
}

// Resize asks the terminal for its size.
func (s *Screen) Resize(out *os.File) {
	s.Width, s.Height = 80, 24
	if size, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 0 {
		s.Width, s.Height = int(size.Col), int(size.Row)
	}
}

// isUTF8 goes by the variables of the locale, in their order (locale(7)).
func isUTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToLower(getenv(name)); value != "" {
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return false
}
