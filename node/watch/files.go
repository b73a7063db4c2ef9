package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// written tells of a file that was written to.
type written struct {
	path string
	pid  int // who did it; 0 where that is not known
}

// files tells of writes to single files. Fanotify says who it was, and wants
// CAP_SYS_ADMIN and a kernel that is built with it; inotify is everywhere.
type files struct {
	events chan written
	file   *os.File
	fan    bool
	done   chan struct{}

	mu      sync.Mutex
	watches map[string]int32
	names   map[int32]string // of inotify
}

func newFiles() (*files, error) {
	f := &files{events: make(chan written, 64), done: make(chan struct{}), watches: map[string]int32{}, names: map[int32]string{}}
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
	for path, watch := range f.watches {
		if !wanted[path] {
			f.forget(path, watch)
		}
	}
	for _, path := range paths {
		// Each is added anew: a file of the same name may be another since.
		if err := f.add(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("watch %s: %w", path, err)
		}
	}
	return nil
}

func (f *files) add(path string) error {
	raw, err := f.file.SyscallConn()
	if err != nil {
		return err
	}
	var err2 error
	err = raw.Control(func(fd uintptr) {
		if f.fan {
			err2 = unix.FanotifyMark(int(fd), unix.FAN_MARK_ADD, unix.FAN_MODIFY, unix.AT_FDCWD, path)
			f.watches[path] = 0
			return
		}
		watch, err := unix.InotifyAddWatch(int(fd), path, unix.IN_MODIFY)
		if err2 = err; err == nil {
			f.watches[path], f.names[int32(watch)] = int32(watch), path
		}
	})
	return errors.Join(err, err2)
}

func (f *files) forget(path string, watch int32) {
	delete(f.watches, path)
	delete(f.names, watch)
	raw, err := f.file.SyscallConn()
	if err != nil {
		return
	}
	// Both fail where the file is gone, and the watch with it.
	_ = raw.Control(func(fd uintptr) {
		if f.fan {
			_ = unix.FanotifyMark(int(fd), unix.FAN_MARK_REMOVE, unix.FAN_MODIFY, unix.AT_FDCWD, path)
		} else {
			_, _ = unix.InotifyRmWatch(int(fd), uint32(watch))
		}
	})
}

func (f *files) close() {
	close(f.done)
	f.file.Close()
}

func (f *files) read() {
	buf := make([]byte, 4096)
	for {
		n, err := f.file.Read(buf)
		if err != nil {
			return // closed
		}
		list := f.inotify(buf[:n])
		if f.fan {
			list = fanotify(buf[:n])
		}
		for _, w := range list {
			if w.pid == os.Getpid() {
				continue
			}
			select {
			case f.events <- w:
			case <-f.done:
				return
			}
		}
	}
}

// inotify takes struct inotify_event apart: four numbers and a name.
func (f *files) inotify(buf []byte) []written {
	if f.fan {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []written
	for len(buf) >= unix.SizeofInotifyEvent {
		size := unix.SizeofInotifyEvent + uint64(binary.NativeEndian.Uint32(buf[12:]))
		if size > uint64(len(buf)) {
			break
		}
		list = append(list, written{path: f.names[int32(binary.NativeEndian.Uint32(buf))]})
		buf = buf[size:]
	}
	return list
}

// fanotify takes struct fanotify_event_metadata apart: its length at 0, a
// descriptor of the file at 16 and the pid at 20. The descriptor is ours to close.
func fanotify(buf []byte) []written {
	const size = 24
	var list []written
	for len(buf) >= size {
		length := binary.NativeEndian.Uint32(buf)
		if length < size || uint64(length) > uint64(len(buf)) {
			break
		}
		w := written{pid: int(int32(binary.NativeEndian.Uint32(buf[20:])))}
		if fd := int32(binary.NativeEndian.Uint32(buf[16:])); fd >= 0 {
			w.path, _ = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(fd)))
			unix.Close(int(fd))
		}
		list = append(list, w)
		buf = buf[length:]
	}
	return list
}
