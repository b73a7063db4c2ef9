package seccomp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// notifies is a profile that asks about these calls, and allows all others.
func notifies(names ...string) *specs.LinuxSeccomp {
	return &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: names, Action: specs.ActNotify}}}
}

// waiting makes a call that may wait for another thread: Go has to know.
func waiting(number uintptr, args ...uintptr) (uintptr, syscall.Errno) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	return r, errno
}

// answering runs a function on a filtered thread, whose calls another goroutine answers.
func answering(t *testing.T, p *specs.LinuxSeccomp, answer func(*Call) error, do func() error) {
	t.Helper()
	needKernel(t)
	err := onThread(p, func(fd int) error {
		l, err := Notify(fd)
		if err != nil {
			return err
		}
		answered := make(chan error, 1)
		go func() {
			for {
				c, err := l.Receive()
				if err == nil {
					err = answer(c)
				}
				if err != nil {
					answered <- err
					return
				}
			}
		}()
		err = do()
		if closed := l.Close(); err == nil {
			err = closed
		}
		if ended := <-answered; err == nil && !errors.Is(ended, os.ErrClosed) {
			err = fmt.Errorf("receiving ended by %v", ended)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNotifyAnswers(t *testing.T) {
	asked, group := map[string]int{}, unix.Getpgrp()
	answering(t, notifies("getppid", "getuid", "getpgid"), func(c *Call) error {
		asked[c.Name()]++
		if c.Arch != NativeArch() || !c.Waits() {
			return fmt.Errorf("%+v", c)
		}
		switch c.Name() {
		case "getppid":
			return c.Return(4711)
		case "getuid":
			return c.Fail(unix.EXDEV)
		}
		if c.Args[0] != 0 || c.Args[5] != 77 {
			return fmt.Errorf("the arguments are %#x", c.Args)
		}
		return c.Continue()
	}, func() error {
		if r, errno := waiting(unix.SYS_GETPPID); r != 4711 || errno != 0 {
			return fmt.Errorf("getppid: %d, %v", r, errno)
		}
		if _, errno := waiting(unix.SYS_GETUID); errno != unix.EXDEV {
			return fmt.Errorf("getuid: %v", errno)
		}
		if r, errno := waiting(unix.SYS_GETPGID, 0, 0, 0, 0, 0, 77); int(r) != group || errno != 0 {
			return fmt.Errorf("getpgid: %d, %v", r, errno)
		}
		return nil
	})
	if len(asked) != 3 || asked["getppid"] != 1 {
		t.Errorf("asked about %v", asked)
	}
}

func TestNotifyReadsMemory(t *testing.T) {
	// The end of the string is the end of what is mapped.
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mprotect(memory[page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	const path = "/no/such/file"
	text := memory[page-len(path)-1 : page]
	copy(text, path)
	var got []string
	through := make(chan bool) // the listener is closed after the call
	answering(t, notifies("unlinkat"), func(c *Call) error {
		defer close(through)
		for _, most := range []int{4096, 3} {
			s, err := c.ReadString(c.Args[1], most)
			if err != nil {
				return err
			}
			got = append(got, s)
		}
		if _, err := c.ReadMemory(make([]byte, 1), c.Args[1]+uint64(len(text))); !errors.Is(err, unix.EFAULT) {
			return fmt.Errorf("what can't be read: %v", err)
		}
		if err := c.Fail(unix.EPERM); err != nil {
			return err
		}
		if _, err := c.ReadString(c.Args[1], 4096); !errors.Is(err, ErrGone) {
			return fmt.Errorf("memory of a call that was answered: %v", err)
		}
		if err := c.Fail(unix.EPERM); !errors.Is(err, ErrGone) {
			return fmt.Errorf("a second answer: %v", err)
		}
		return nil
	}, func() error {
		cwd := unix.AT_FDCWD
		if _, errno := waiting(unix.SYS_UNLINKAT, uintptr(cwd), uintptr(unsafe.Pointer(&text[0]))); errno != unix.EPERM {
			return errno
		}
		<-through
		return nil
	})
	if len(got) != 2 || got[0] != path || got[1] != path[:3] {
		t.Errorf("got %q", got)
	}
	runtime.KeepAlive(memory)
}

// The process is killed while its call waits: nothing hangs, nothing is taken for its answer.
func TestNotifyOfTheDead(t *testing.T) {
	needKernel(t)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("no sleep to run: ", err)
	}
	type started struct {
		cmd *exec.Cmd
		l   *Listener
	}
	result := make(chan started, 1)
	err = onThread(notifies("clock_nanosleep"), func(fd int) error {
		l, err := Notify(fd)
		if err != nil {
			return err
		}
		cmd := exec.Command(sleep, "1000")
		if err := cmd.Start(); err != nil {
			return err
		}
		result <- started{cmd, l}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := <-result
	defer s.l.Close()
	c, err := s.l.Receive()
	if err != nil || c.Thread != s.cmd.Process.Pid || c.Name() != "clock_nanosleep" {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.cmd.Wait()
	if c.Waits() {
		t.Error("the call of a dead process waits")
	}
	if err := c.Continue(); !errors.Is(err, ErrGone) {
		t.Errorf("answer it: %v", err)
	}
	if _, err := c.ReadMemory(make([]byte, 8), c.Args[2]); !errors.Is(err, ErrGone) && !errors.Is(err, unix.ESRCH) {
		t.Errorf("read its memory: %v", err)
	}
	if c, err := s.l.Receive(); err != io.EOF {
		t.Errorf("when all have gone: %v, %v", c, err)
	}
}

// A close ends the wait of a receiver, and that of the caller.
func TestNotifyClose(t *testing.T) {
	needKernel(t)
	err := onThread(notifies("getppid"), func(fd int) error {
		l, err := Notify(fd)
		if err != nil {
			return err
		}
		calls := make(chan *Call, 1)
		ended := make(chan error, 1)
		go func() {
			c, err := l.Receive()
			if err != nil {
				ended <- err
				return
			}
			calls <- c
			_, err = l.Receive()
			ended <- err
		}()
		closed := make(chan error, 1)
		go func() {
			<-calls
			closed <- l.Close()
		}()
		if _, errno := waiting(unix.SYS_GETPPID); errno != unix.ENOSYS {
			return fmt.Errorf("the call that waited: %v", errno)
		}
		if err := <-ended; err != os.ErrClosed {
			return fmt.Errorf("the receiver: %v", err)
		}
		if err := l.Close(); err != os.ErrClosed {
			return fmt.Errorf("a second close: %v", err)
		}
		return <-closed
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Notify(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if c, err := l.Receive(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a file as a listener: %v, %v", c, err)
	}
}

func TestInstall(t *testing.T) {
	needKernel(t)
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: []string{"getppid"}, Action: specs.ActErrno, ErrnoRet: uintp(95)}}}
	if out, state := runChild(t, "install", p); out != "errno 95 95 no_new_privs 1 1\n" {
		t.Errorf("%v: %s", state, out)
	}
	// A thread has a filter of its own: it can't be taken along, and nothing has changed.
	if out, state := runChild(t, "install apart", p); out != "refused: true errno 0 no_new_privs 0\n" {
		t.Errorf("%v: %s", state, out)
	}
	if err := Install(notifies("getppid")); err == nil {
		t.Error("a profile that notifies is installed")
	}
	var wrong *ProfileError
	if err := Install(&specs.LinuxSeccomp{DefaultAction: "no"}); !errors.As(err, &wrong) {
		t.Error(err)
	}
}

// installChild is TestInstall's, in a process of its own.
func installChild(p *specs.LinuxSeccomp, apart bool) error {
	type seen struct {
		errno syscall.Errno
		nnp   int
	}
	look := func() seen {
		_, errno := try(unix.SYS_GETPPID)
		nnp, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		return seen{errno, nnp}
	}
	ready, goOn, done := make(chan error), make(chan bool), make(chan seen)
	go func() {
		runtime.LockOSThread()
		var err error
		if apart {
			var f *Filter
			if f, err = Compile(&specs.LinuxSeccomp{DefaultAction: specs.ActAllow}); err == nil {
				_, err = load(f)
			}
		}
		ready <- err
		<-goOn
		done <- look()
	}()
	if err := <-ready; err != nil {
		return err
	}
	err := Install(p)
	here := look()
	close(goOn)
	there := <-done
	if apart {
		fmt.Printf("refused: %v errno %d no_new_privs %d\n", err != nil, here.errno, here.nnp)
		return nil
	}
	fmt.Printf("errno %d %d no_new_privs %d %d\n", here.errno, there.errno, here.nnp, there.nnp)
	return err
}
