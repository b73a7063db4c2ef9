package container

import (
	"bytes"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/inotify"
	"github.com/berth-runtime/berth/internal/json"
)

// A Denial is a kind of system calls that a seccomp filter has refused.
type Denial struct {
	Call    string // with the argument that tells, as unshare(CLONE_NEWUSER)
	Program string // of the first process that made it, "" where it was gone
	Pid     int
	Errno   string // by name
	Rule    string // the entry of the config.json that refuses it
}

// String is one line, as unshare(CLONE_NEWUSER) by bash[12]: EPERM, seccomp rule /linux/seccomp.
func (d *Denial) String() string {
	s := d.Call
	if d.Program != "" {
		s += " by " + d.Program + "[" + strconv.Itoa(d.Pid) + "]"
	}
	return s + ": " + d.Errno + ", seccomp rule " + d.Rule
}

// JSON writes it as an object.
func (d *Denial) JSON(w *json.Writer) {
	w.Object()
	w.Key("call").String(d.Call)
	if d.Program != "" {
		w.Key("program").String(d.Program)
		w.Key("pid").Int(int64(d.Pid))
	}
	w.Key("errno").String(d.Errno)
	w.Key("rule").String(d.Rule)
	w.End()
}

// mostDenials is how large the file of denials gets. A program that tries everything, again and
// again by exec, is not to fill the state directory, which is in memory.
const mostDenials = 256 << 10

// keepDenials opens the file of denials, and returns what writes a line to it. It may be called by
// several commands at once, each of which appends whole lines. The file is opened now, while this
// process still may.
func (c *Container) keepDenials() (func(*Denial), error) {
	fd, err := c.openDenials()
	if err != nil {
		return nil, err
	}
	return KeepDenials(os.NewFile(uintptr(fd), deniedFile)), nil
}

func (c *Container) openDenials() (int, error) {
	fd, err := unix.Openat(c.dir, deniedFile, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: c.ID + "/" + deniedFile, Err: err}
	}
	return fd, nil
}

// KeepDenials writes to a container's file of them.
func KeepDenials(f *os.File) func(*Denial) {
	return func(d *Denial) {
		if info, err := f.Stat(); err != nil || info.Size() > mostDenials {
			return
		}
		w := json.NewWriter(nil, "")
		d.JSON(w)
		_, _ = f.Write(append(w.Bytes(), '\n')) // it is told of as well
	}
}

// Denials are what has been refused so far, each kind once, in the order in which they came.
// Processes that were not to be explained leave none.
func (c *Container) Denials() []Denial {
	w := DenialWatch{dir: c.dir}
	var list []Denial
	for _, d := range w.More() {
		if !slices.ContainsFunc(list, func(k Denial) bool { return k.Call == d.Call && k.Errno == d.Errno && k.Rule == d.Rule }) {
			list = append(list, d)
		}
	}
	return list
}

// A DenialWatch tells of denials as they come.
type DenialWatch struct {
	Changed <-chan struct{} // gets a value when there may be more; nil where nothing tells

	dir   int
	past  int64
	watch *os.File
}

// WatchDenials begins behind those that there are. Its owner closes it before the container.
func (c *Container) WatchDenials() *DenialWatch {
	w := &DenialWatch{dir: c.dir}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err == nil {
		if _, err = unix.InotifyAddWatch(fd, "/proc/self/fd/"+strconv.Itoa(c.dir), unix.IN_MODIFY); err != nil {
			unix.Close(fd)
		}
	}
	w.More()
	if err != nil {
		c.runtime.note("container %s: its denials are told of at its end: inotify: %v", c.ID, err)
		return w
	}
	w.watch = os.NewFile(uintptr(fd), "inotify") // which Go's poller waits for
	changed := make(chan struct{}, 1)
	w.Changed = changed
	go func() {
		var buf [4096]byte
		for {
			n, err := w.watch.Read(buf[:])
			if err != nil {
				return // it was closed
			}
			if slices.ContainsFunc(inotify.Events(buf[:n]), func(e inotify.Event) bool { return e.Name == deniedFile || e.Watch < 0 }) {
				select {
				case changed <- struct{}{}:
				default: // it has been told, and has not looked yet
				}
			}
		}
	}()
	return w
}

// More are those that have come since the last call.
func (w *DenialWatch) More() []Denial {
	data, err := readFileAt(w.dir, deniedFile)
	if err != nil || int64(len(data)) <= w.past {
		return nil
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	if int64(whole) <= w.past {
		return nil
	}
	var list []Denial
	for line := range bytes.Lines(data[w.past:whole]) {
		if d, ok := parseDenial(line); ok {
			list = append(list, d)
		}
	}
	w.past = int64(whole)
	return list
}

// Close ends it.
func (w *DenialWatch) Close() {
	if w.watch != nil {
		w.watch.Close()
	}
}

// parseDenial reads a line that a Denial was written as.
func parseDenial(line []byte) (d Denial, ok bool) {
	r := json.NewDecoder(line)
	for r.Object(); r.Next(); {
		switch r.Key() {
		case "call":
			d.Call = r.String()
		case "program":
			d.Program = r.String()
		case "pid":
			d.Pid = int(r.Int(32))
		case "errno":
			d.Errno = r.String()
		case "rule":
			d.Rule = r.String()
		default:
			r.Skip()
		}
	}
	return d, r.Close() == nil && d.Call != ""
}
