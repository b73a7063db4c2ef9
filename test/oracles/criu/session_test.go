package criu_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/checkpoint-restore/go-criu/v7/rpc"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/berth-runtime/berth/engine/criu"
)

// fakeMode is the environment variable that makes the test binary a criu.
const fakeMode = "BERTH_FAKE_CRIU"

// fakeHeard is the one that names a directory, where every request that it gets is kept in a file.
const fakeHeard = "BERTH_FAKE_CRIU_HEARD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(fakeMode); mode != "" && len(os.Args) == 3 && os.Args[1] == "swrk" {
		os.Exit(fakeCriu(mode))
	}
	os.Exit(m.Run())
}

// fakeCriu serves one caller as "criu swrk" does, in one of several ways.
func fakeCriu(mode string) int {
	socket, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return 2
	}
	send := func(r *rpc.CriuResp, fds ...int) {
		data, err := proto.Marshal(r)
		if err != nil {
			panic(err)
		}
		var rights []byte
		if len(fds) > 0 {
			rights = unix.UnixRights(fds...)
		}
		if err := unix.Sendmsg(socket, data, rights, nil, 0); err != nil {
			panic(err)
		}
	}
	requests := 0
	receive := func() *rpc.CriuReq {
		buf := make([]byte, 64<<10)
		n, err := unix.Read(socket, buf)
		if err != nil || n == 0 {
			os.Exit(0)
		}
		r := &rpc.CriuReq{}
		if err := proto.Unmarshal(buf[:n], r); err != nil {
			panic(err)
		}
		if heard := os.Getenv(fakeHeard); heard != "" {
			requests++
			if err := os.WriteFile(filepath.Join(heard, strconv.Itoa(requests)), buf[:n], 0o600); err != nil {
				panic(err)
			}
		}
		return r
	}
	for {
		r := receive()
		switch {
		case r.GetType() == rpc.CriuReqType_VERSION:
			send(&rpc.CriuResp{Type: r.Type, Success: proto.Bool(true), Version: &rpc.CriuVersion{MajorNumber: proto.Int32(4), MinorNumber: proto.Int32(1), Sublevel: proto.Int32(1)}})
		case r.GetType() == rpc.CriuReqType_FEATURE_CHECK:
			send(&rpc.CriuResp{Type: r.Type, Success: proto.Bool(true), Features: &rpc.CriuFeatures{MemTrack: r.GetFeatures().MemTrack}})
		case mode == "agrees":
			notify := rpc.CriuReqType_NOTIFY.Enum()
			send(&rpc.CriuResp{Type: notify, Success: proto.Bool(true), Notify: &rpc.CriuNotify{Script: proto.String("setup-namespaces")}})
			send(&rpc.CriuResp{Type: r.Type, Success: proto.Bool(receive().GetNotifySuccess())})
		case mode == "hangs":
			time.Sleep(time.Hour)
		case mode == "takes its time":
			log := "/proc/" + strconv.Itoa(os.Getppid()) + "/fd/" + strconv.Itoa(int(r.GetOpts().GetImagesDirFd())) + "/" + r.GetOpts().GetLogFile()
			for n := range 20 {
				time.Sleep(idle / 5)
				if err := os.WriteFile(log, make([]byte, n), 0o600); err != nil {
					panic(err)
				}
			}
			send(&rpc.CriuResp{Type: r.Type, Success: proto.Bool(true)})
		case mode == "dies":
			os.Stderr.WriteString("first\nout of luck\n")
			return 1
		case mode == "babbles":
			if err := unix.Sendto(socket, []byte("\xff\xff"), 0, nil); err != nil {
				panic(err)
			}
		case mode == "refuses":
			send(&rpc.CriuResp{Type: r.Type, Success: proto.Bool(false), CrErrno: proto.Int32(int32(syscall.ESRCH)), CrErrmsg: proto.String("Error (criu/x.c:1): no such task\n")})
		case mode == "restores":
			// The file that is inherited is written to, by its number and key; what
			// the directory is that was passed is proved by a file in it.
			for _, i := range r.GetOpts().GetInheritFd() {
				if _, err := unix.Write(int(i.GetFd()), []byte(i.GetKey())); err != nil {
					panic(err)
				}
			}
			images := "/proc/" + strconv.Itoa(os.Getppid()) + "/fd/" + strconv.Itoa(int(r.GetOpts().GetImagesDirFd()))
			if err := os.WriteFile(filepath.Join(images, "seen"), []byte(r.GetOpts().GetRoot()), 0o600); err != nil {
				panic(err)
			}
			pipe := make([]int, 2)
			if err := unix.Pipe(pipe); err != nil {
				panic(err)
			}
			notify := rpc.CriuReqType_NOTIFY.Enum()
			send(&rpc.CriuResp{Type: notify, Success: proto.Bool(true), Notify: &rpc.CriuNotify{Script: proto.String("setup-namespaces"), Pid: proto.Int32(77)}})
			if !receive().GetNotifySuccess() {
				send(&rpc.CriuResp{Type: r.Type, Success: proto.Bool(false)})
				continue
			}
			send(&rpc.CriuResp{Type: notify, Success: proto.Bool(true), Notify: &rpc.CriuNotify{Script: proto.String("orphan-pts-master")}}, pipe[1])
			receive()
			unix.Close(pipe[1])
			said := make([]byte, 100)
			n, err := unix.Read(pipe[0], said)
			if err != nil || string(said[:n]) != "to the terminal" {
				panic("nothing came over the descriptor that was sent")
			}
			send(&rpc.CriuResp{Type: r.Type, Success: proto.Bool(true), Restore: &rpc.CriuRestoreResp{Pid: proto.Int32(4321)}})
		}
	}
}

func open(t *testing.T, mode string, o *criu.Start) *criu.Session {
	t.Helper()
	t.Setenv(fakeMode, mode)
	o.Program = os.Args[0]
	if o.Images == "" {
		o.Images = t.TempDir()
	}
	s, err := criu.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// idle is what a criu of these tests may take without doing anything.
const idle = 500 * time.Millisecond

// A criu that does nothing any more is ended; one that takes its time is waited for.
func TestStuck(t *testing.T) {
	o := &criu.Options{LogFile: "dump.log"}
	s := open(t, "hangs", &criu.Start{Idle: idle})
	pid := s.Pid
	if _, err := s.Do(criu.Dump, o, nil); !errors.Is(err, criu.ErrStuck) {
		t.Errorf("a criu that hangs: %v", err)
	}
	s.Close()
	if err := unix.Kill(pid, 0); err != unix.ESRCH {
		t.Errorf("it is still there: %v", err)
	}
	s = open(t, "takes its time", &criu.Start{Idle: idle})
	if _, err := s.Do(criu.Dump, o, nil); err != nil {
		t.Errorf("a criu that takes its time: %v", err)
	}
}

func TestConversation(t *testing.T) {
	inherited, err := os.Create(filepath.Join(t.TempDir(), "inherited"))
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	images := t.TempDir()
	s := open(t, "restores", &criu.Start{Images: images, Files: []int{int(inherited.Fd())}})
	v, err := s.Version()
	if want := (criu.Version{Major: 4, Minor: 1, Sublevel: 1}); err != nil || v != want || v.String() != "4.1.1" {
		t.Errorf("version %v, %v; want %v", v, err, want)
	}
	f, err := s.Features()
	if err != nil || !f.MemoryTracking || f.LazyPages {
		t.Errorf("features %+v, %v; want memory tracking alone", f, err)
	}
	var heard []criu.Notification
	pid, err := s.Do(criu.Restore, &criu.Options{Root: "/srv", Inherit: []criu.Inherit{{Key: "pipe:[7]", FD: s.Pass(0)}}}, func(n criu.Notification, fd int) error {
		heard = append(heard, n)
		if n.Script == "orphan-pts-master" {
			_, err := unix.Write(fd, []byte("to the terminal"))
			return err
		}
		if fd >= 0 {
			t.Errorf("%s came with a descriptor", n.Script)
		}
		return nil
	})
	if err != nil || pid != 4321 {
		t.Errorf("restored process %d, %v; want 4321", pid, err)
	}
	if len(heard) != 2 || heard[0] != (criu.Notification{Script: "setup-namespaces", Pid: 77}) {
		t.Errorf("notifications %+v", heard)
	}
	if got, _ := os.ReadFile(inherited.Name()); string(got) != "pipe:[7]" {
		t.Errorf("the inherited file has %q", got)
	}
	if got, _ := os.ReadFile(filepath.Join(images, "seen")); string(got) != "/srv" {
		t.Errorf("the images' folder has %q", got)
	}
}

func TestAHandlerCanRefuse(t *testing.T) {
	s := open(t, "restores", &criu.Start{})
	no := errors.New("the hook failed")
	if _, err := s.Do(criu.Restore, &criu.Options{}, func(criu.Notification, int) error { return no }); !errors.Is(err, no) {
		t.Errorf("error %v, want %v", err, no)
	}
}

func TestWhatGoesWrong(t *testing.T) {
	for mode, want := range map[string]string{
		"dies":    "criu ended in the middle of dump (it said: out of luck)",
		"babbles": "talk to criu about dump: criu's answer is not a message of its protocol: message ends in the middle of a field",
		"refuses": "criu could not dump: no such process: no such task (criu/x.c:1)",
	} {
		s := open(t, mode, &criu.Start{})
		_, err := s.Do(criu.Dump, &criu.Options{}, nil)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", mode, err, want)
		}
		var refused *criu.Refusal
		if errors.As(err, &refused) != (mode == "refuses") {
			t.Errorf("%s: error of type %T", mode, err)
		}
		s.Close()
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := criu.Open(&criu.Start{}); !errors.Is(err, criu.ErrMissing) {
		t.Errorf("without criu: %v, want %v", err, criu.ErrMissing)
	}
}

// TestOwnRoot looks from a process that was started with a root of its own, and
// from here, where nothing of it may be seen.
func TestOwnRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	root, heard := t.TempDir(), t.TempDir()
	t.Setenv(fakeHeard, heard)
	s := open(t, "agrees", &criu.Start{Root: root})
	if _, err := s.Do(criu.PreDump, &criu.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile("/proc/" + strconv.Itoa(s.Pid) + "/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(theirs), " "+root+" ") {
		t.Errorf("%s is no mount point for criu", root)
	}
	if strings.Contains(string(ours), " "+root+" ") {
		t.Errorf("%s is a mount point for us as well", root)
	}
	// What it changes to must be of its own mount namespace.
	id, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(request(t, heard, 1).GetOpts().GetImagesDirFd())))
	if err != nil {
		t.Fatal(err)
	}
	_, number, _ := strings.Cut(string(id), "mnt_id:")
	number = strings.TrimSpace(strings.SplitN(number, "\n", 2)[0])
	if !strings.HasPrefix(string(theirs), number+" ") && !strings.Contains(string(theirs), "\n"+number+" ") {
		t.Errorf("the folder of the images is on mount %s, which criu does not have", number)
	}
}
