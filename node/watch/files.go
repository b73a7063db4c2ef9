package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/berth-runtime/berth/internal/inotify"
	"golang.org/x/sys/unix"
)

// written tells of a file that was written to.
type written struct {
	path string // as it was given to set
	who  string // "" where that is not known
}

// files tells of writes to single files. Fanotify says who it was, and wants
// CAP_SYS_ADMIN and a kernel that is built with it; inotify is everywhere.
type files struct {
	events chan written
	file   *os.File
	fan    bool
	done   chan struct{}
	// describe says who a process is. It is asked at once when an event comes: a
	// shell's echo may be over a moment later.
	describe func(pid int) string

	mu      sync.Mutex
	watches map[string]watch
	names   map[watch]string
}

// watch names a watched file in events: by its inode, since the writer may have
// reached it by another mount and so by another path; for inotify by the watch.
type watch struct{ device, inode uint64 }

func newFiles(describe func(pid int) string) (*files, error) {
	f := &files{events: make(chan written, 64), done: make(chan struct{}), describe: describe, watches: map[string]watch{}, names: map[watch]string{}}
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_LARGEFILE)
	if f.fan = err == nil; !f.fan {
		if fd, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
			return nil, fmt.Errorf("watch files: %w", err)
		}
	}
	f.file = os.NewFile(uintptr(fd), "notify")
	go f.read()
	return f, nil
}

// set says which files are watched from now on. One that is not there now is
// passed over, and found by the next set.
func (f *files) set(paths []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	wanted := map[string]bool{}
	for _, path := range paths {
		wanted[path] = true
	}
	for path, w := range f.watches {
		if !wanted[path] {
			f.forget(path, w)
		}
	}
	var failed error
	for _, path := range paths {
		// Each is added again: a file of the same name may be another since.
		if err := f.add(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("watch %s: %w", path, err))
		}
	}
	return failed
}

func (f *files) add(path string) error {
	raw, err := f.file.SyscallConn()
	if err != nil {
		return err
	}
	var err2 error
	err = raw.Control(func(fd uintptr) {
		var w watch
		if f.fan {
			var st unix.Stat_t
			if err2 = unix.Stat(path, &st); err2 == nil {
				err2 = unix.FanotifyMark(int(fd), unix.FAN_MARK_ADD, unix.FAN_MODIFY, unix.AT_FDCWD, path)
			}
			w = watch{uint64(st.Dev), st.Ino}
		} else {
			var number int
			number, err2 = unix.InotifyAddWatch(int(fd), path, unix.IN_MODIFY)
			w = watch{inode: uint64(number)}
		}
		if err2 == nil {
			delete(f.names, f.watches[path])
			f.watches[path], f.names[w] = w, path
		}
	})
	return errors.Join(err, err2)
}

func (f *files) forget(path string, w watch) {
	delete(f.watches, path)
	delete(f.names, w)
	raw, err := f.file.SyscallConn()
	if err != nil {
		return
	}
	// Both fail where the file is gone, and the watch with it.
	_ = raw.Control(func(fd uintptr) {
		if f.fan {
			_ = unix.FanotifyMark(int(fd), unix.FAN_MARK_REMOVE, unix.FAN_MODIFY, unix.AT_FDCWD, path)
		} else {
			_, _ = unix.InotifyRmWatch(int(fd), uint32(w.inode))
		}
	})
}

func (f *files) close() {
	close(f.done)
	f.file.Close()
}

func (f *files) read() {
	buf := make([]byte, 4096)
	for failed := 0; ; {
		n, err := f.file.Read(buf)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err == nil {
			failed = 0
		} else {
			n = 0 // fanotify could not open the file for us (fanotify(7)): something was written
			select {
			case f.events <- written{}:
			case <-f.done:
				return
			}
			// Where that goes on, the receiver checks everything each time.
			if failed++; failed > 1 {
				select {
				case <-time.After(min(time.Second<<min(failed-2, 6), time.Minute)):
				case <-f.done:
					return
				}
			}
		}
		list := f.inotify
		if f.fan {
			list = f.fanotify
		}
		for _, w := range list(buf[:n]) {
			select {
			case f.events <- w:
			case <-f.done:
				return
			}
		}
	}
}

func (f *files) inotify(buf []byte) []written {
	var list []written
	for _, e := range inotify.Events(buf) {
		list = append(list, written{path: f.name(watch{inode: uint64(e.Watch)})})
	}
	return list
}

// fanotify takes struct fanotify_event_metadata apart: its length at 0, a
// descriptor of the file at 16 and the pid at 20. The descriptor is ours to close.
// What we wrote ourselves is no news.
func (f *files) fanotify(buf []byte) []written {
	const size = 24
	var list []written
	for len(buf) >= size {
		length := binary.NativeEndian.Uint32(buf)
		if length < size || uint64(length) > uint64(len(buf)) {
			break
		}
		var w written
		pid := int(int32(binary.NativeEndian.Uint32(buf[20:])))
		if pid > 0 && pid != os.Getpid() { // 0 is one outside of our pid namespace
			w.who = f.describe(pid)
		}
		if fd := int(int32(binary.NativeEndian.Uint32(buf[16:]))); fd >= 0 {
			var st unix.Stat_t
			if unix.Fstat(fd, &st) == nil {
				w.path = f.name(watch{uint64(st.Dev), st.Ino})
			}
			unix.Close(fd)
		}
		if pid != os.Getpid() {
			list = append(list, w)
		}
		buf = buf[length:]
	}
	return list
}

// name gives the path of a watch.
func (f *files) name(w watch) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.names[w]
}
