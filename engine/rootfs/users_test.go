package rootfs_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/rootfs"
)

// endless is a file that goes on with the same text for ever, as far as it is read.
type endless struct {
	text  string // a whole number of times
	given int
}

func newEndless(text string) *endless {
	return &endless{text: strings.Repeat(text, 1+1<<16/len(text))}
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.given%len(e.text):])
	e.given += n
	return n, nil
}

// An image may have any file in the place of these.
func TestUsersOfAFileWithoutEnd(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"holes":         {"\x00", "a line of more than 1048576 bytes"},
		"one line":      {"root:x:0:0", "a line of more than 1048576 bytes"},
		"many fields":   {":", "a line of more than 1048576 bytes"},
		"empty lines":   {strings.Repeat("\n", 10) + strings.Repeat("#", 1<<10) + "\n", "more than 16777216 bytes"},
		"other entries": {"other:x:7:7:" + strings.Repeat("o", 1<<10) + "::\n", "more than 16777216 bytes"},
		"groups of his": {"g:x:7:user\n", `"user" is in more than the 65536 groups that a process can have`},
	} {
		for call, read := range map[string]func(io.Reader) error{
			"UserByID":    func(f io.Reader) error { _, err := rootfs.UserByID(f, 1000); return err },
			"UserByName":  func(f io.Reader) error { _, err := rootfs.UserByName(f, "user"); return err },
			"GroupByName": func(f io.Reader) error { _, err := rootfs.GroupByName(f, "user"); return err },
			"GroupsOf":    func(f io.Reader) error { _, err := rootfs.GroupsOf(f, "user"); return err },
		} {
			if name == "groups of his" && call != "GroupsOf" {
				continue
			}
			file := newEndless(test.line)
			if err := read(file); err == nil || err.Error() != test.want || errors.Is(err, rootfs.ErrNoUser) {
				t.Errorf("%s of %s: %v, want %s", call, name, err, test.want)
			}
			if file.given > 17<<20 {
				t.Errorf("%s of %s has read %d bytes", call, name, file.given)
			}
		}
	}
}

// What stands before the limits is found, and large files of honest people are read to their end.
func TestUsersOfALargeFile(t *testing.T) {
	members := strings.Repeat("somebody,", 100_000) + "app"
	ids, err := rootfs.GroupsOf(strings.NewReader("crowd:x:7:"+members+"\n"), "app")
	if err != nil || len(ids) != 1 || ids[0] != 7 {
		t.Errorf("a group of many: %v, %v", ids, err)
	}
	const fits = 16<<20 - len("app:x:5:5::/app:\n")
	other := "other:x:7:7:" + strings.Repeat("o", 1000) + "::\n"
	others := strings.Repeat(other, fits/len(other))
	others += strings.Repeat("\n", fits-len(others))
	if u, err := rootfs.UserByName(strings.NewReader(others+"app:x:5:5::/app:\n"), "app"); err != nil || u.UID != 5 {
		t.Errorf("the last of many: %+v, %v", u, err)
	}
	if _, err := rootfs.UserByName(strings.NewReader(others+"\napp:x:5:5::/app:\n"), "app"); err == nil || errors.Is(err, rootfs.ErrNoUser) {
		t.Errorf("the first beyond the limit: %v", err)
	}
	if u, err := rootfs.UserByName(io.MultiReader(strings.NewReader("app:x:5:5::/app:\n"), newEndless("\x00")), "app"); err != nil || u.UID != 5 {
		t.Errorf("before a line without end: %+v, %v", u, err)
	}
}
