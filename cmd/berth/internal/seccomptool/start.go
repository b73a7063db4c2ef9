package seccomptool

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/start/entry"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/seccomp"
)

// A Supervised command runs under a filter that notifies, and its calls come to the listener.
type Supervised struct {
	Child    *launch.Child
	Listener *seccomp.Listener
}

// Start runs a command in our session, with our standard input and error. serve receives from the
// listener, from before the command is executed until all processes under the filter have ended.
func Start(path string, args []string, stdout uintptr, filter *seccomp.Filter, serve func(*seccomp.Listener)) (*Supervised, error) {
	spawn := &launch.Spawn{Stdio: [3]uintptr{0, stdout, 2}, Cgroup: -1}
	pass, err := sys.Random()
	if err != nil {
		return nil, err
	}
	code, err := plan.WithPass(filter.Program, pass)
	if err != nil {
		return nil, err
	}
	loaded := *filter
	loaded.Program = code
	spawn.Program = func(n *launch.Numbers) (*program.Program, error) {
		return compile(n.Report, path, args, &loaded, pass)
	}
	child, err := spawn.Start()
	if err != nil {
		return nil, err
	}
	s := &Supervised{Child: child}
	err = child.Serve(0, func(ask program.Request, fd int) error {
		if ask.Kind != program.AskListener || fd < 0 || s.Listener != nil {
			return fmt.Errorf("the command's start asks for %d, which means nothing", ask.Kind)
		}
		l, err := seccomp.Notify(fd)
		if err != nil {
			unix.Close(fd)
			return err
		}
		s.Listener = l
		go serve(l)
		return nil
	})
	if errors.Is(err, launch.ErrExecuted) {
		child.Close()
		return s, nil
	}
	child.Kill()
	if s.Listener != nil {
		s.Listener.Close()
	}
	return nil, err
}

// compile is the way from our clone to the command: its filter is loaded, its listener sent, and
// the command executed.
func compile(report int, path string, args []string, filter *seccomp.Filter, pass uint64) (*program.Program, error) {
	b := program.NewBuilder()
	socket := program.Int(int64(report))
	b.Because("", "give the command what is its own")
	b.Call(unix.SYS_FCNTL, socket, program.Int(unix.F_SETFD), program.Int(unix.FD_CLOEXEC))
	if slack := entry.Slack(); slack > 0 {
		b.Call(unix.SYS_PRCTL, program.Int(unix.PR_SET_TIMERSLACK), program.Imm(slack))
	}
	fprog := b.Words(program.Imm(uint64(len(filter.Program))), b.Bytes(filter.Bytes()).Arg())
	listener, without := b.Cell(), b.NewLabel()
	load := func() *program.Op {
		return b.Call(unix.SYS_SECCOMP, program.Int(unix.SECCOMP_SET_MODE_FILTER), program.Imm(uint64(filter.Flags)), fprog.Arg()).Into(listener)
	}
	send := b.NewLabel()
	// With CAP_SYS_ADMIN no_new_privs is not needed, and setuid programs go on as they do.
	b.Because("", "load the filter")
	load().Expect(without, unix.EACCES)
	b.Jump(send)
	b.Place(without)
	b.Call(unix.SYS_PRCTL, program.Int(unix.PR_SET_NO_NEW_PRIVS), program.Int(1), program.Int(0), program.Int(0), program.Int(0))
	load()
	b.Place(send)
	b.Because("", "hand the listener over")
	request := program.Request{Kind: program.AskListener}
	b.May(program.Expectation{Request: request, FD: true})
	iov := b.Words(b.Record(request).Arg(), program.Int(16))
	// A control message (cmsg(3)): length, SOL_SOCKET and SCM_RIGHTS, the descriptor.
	control := b.Words(program.Int(20), program.Imm(1|1<<32), program.Int(0))
	message := b.Words(program.Int(0), program.Int(0), iov.Arg(), program.Int(1), control.Arg(), program.Int(24), program.Int(0))
	b.Call(program.Set, listener.Value()).IntoAddr(control.Plus(16))
	none, key := program.Int(0), program.Imm(pass)
	b.Call(unix.SYS_SENDMSG, socket, message.Arg(), program.Int(unix.MSG_NOSIGNAL), none, none, key)
	b.Call(unix.SYS_READ, socket, b.Zeroed(8).Arg(), program.Int(1), none, none, key).ZeroFails()
	b.Because("", "exec: "+strconv.Quote(path))
	words := func(list []string) program.Arg {
		w := make([]program.Arg, 0, len(list)+1)
		for _, s := range list {
			w = append(w, b.CString(s).Arg())
		}
		return b.Words(append(w, none)...).Arg()
	}
	b.Call(unix.SYS_EXECVE, b.CString(path).Arg(), words(args), words(os.Environ()))
	return b.Build(report)
}
