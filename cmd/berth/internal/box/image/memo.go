package image

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/atomicfile"
	"github.com/berth-runtime/berth/internal/json"
)

// A memo is what an archive was found to have, so that it is read once only.
type memo struct {
	was  string // what the file was
	key  string // of the root
	text string // the config, "" for a root file system without one
}

// memoName names the memo on a file, or on one of the images in it.
func memoName(f *os.File, ref string) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", os.NewSyscallError("fstat", err)
	}
	name := fmt.Sprintf("%x-%d", st.Dev, st.Ino)
	if ref != "" {
		name += "-" + digestOf([]byte(ref))[len("sha256:"):][:16]
	}
	return name, nil
}

// stateOf is what changes with a file: its owner can put back all but the time of the last change.
func stateOf(f *os.File) (state string, settled bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", false, os.NewSyscallError("fstat", err)
	}
	// A change within a tick of the kernel's clock would leave the time as it is.
	settled = time.Since(time.Unix(st.Ctim.Unix())) > time.Second
	return fmt.Sprintf("%d %d.%d %d.%d", st.Size, st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec), settled, nil
}

// recall finds what is known of a file, if it is unchanged and the root is still there.
func (c *Cache) recall(f *os.File, name string) *memo {
	text, err := os.ReadFile(filepath.Join(c.dir, "files", name))
	if err != nil {
		return nil
	}
	var m memo
	d := json.NewDecoder(text)
	for d.Object(); d.Next(); {
		switch d.Key() {
		case "was":
			m.was = d.String()
		case "root":
			m.key = d.String()
		case "config":
			m.text = d.String()
		}
	}
	state, _, err := stateOf(f)
	if d.Close() != nil || err != nil || m.was != state || !isHash(m.key) || !c.has(m.key) {
		return nil
	}
	return &m
}

// note writes down what a file has.
func (c *Cache) note(name string, m *memo) error {
	w := json.NewWriter(nil, "")
	w.Object()
	w.Key("was").String(m.was)
	w.Key("root").String(m.key)
	w.Key("config").String(m.text)
	w.End()
	return atomicfile.Write(unix.AT_FDCWD, filepath.Join(c.dir, "files", name), w.Bytes(), 0o600)
}
