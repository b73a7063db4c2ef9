package bootstrap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/internal/namespace"
	"github.com/berth-runtime/berth/internal/proc/procs"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/task"
)

// upgradeTimeout is how long a shim may take to be upgraded: half of it, it tries by itself while
// it is busy.
const upgradeTimeout = time.Minute

// Upgrade has running shims replaced by this program, or each by that which is now in the place of
// its own, one after the other, and says what became of each.
func Upgrade(a *Args, out io.Writer) error {
	if a.All == (a.ID != "") {
		return errors.New("upgrade needs either -id, with -namespace if there are several of that name, or -all")
	}
	program := ""
	if !a.InPlace {
		var err error
		if program, err = os.Executable(); err != nil {
			return err
		}
	}
	shims, err := running(a)
	if err != nil {
		return err
	}
	if a.ID != "" && len(shims) == 0 {
		return fmt.Errorf("no shim has container %q", a.ID)
	}
	failed := 0
	tell := func(format string, args ...any) { fmt.Fprintln(out, escape.Message(fmt.Sprintf(format, args...))) }
	for _, s := range shims {
		answer, err := s.upgrade(program)
		text := ""
		switch {
		case err == nil:
			text = "upgraded from " + answer.From + " to " + answer.To
		case ttrpc.CodeOf(err) == ttrpc.Unimplemented:
			failed++
			text = "stays: it is of a version that cannot be upgraded while it runs"
		default:
			failed++
			text = "stays: " + err.Error()
		}
		tell("%s/%s (pid %d): %s", s.args.Namespace, s.args.ID, s.pid, text)
	}
	switch {
	case !a.All:
	case len(shims) == 0:
		tell("no shims are running")
	default:
		tell("%d of %d shims upgraded", len(shims)-failed, len(shims))
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d shims stay as they were, and so do their containers", failed, len(shims))
	}
	return nil
}

// server is a shim that runs.
type server struct {
	pid  int
	args *Args
}

// running finds shims by their command lines: the directory of their sockets is up to each
// containerd.
func running(a *Args) (list []server, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		// A container's process may call itself a shim, and keep us waiting for its answer.
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !namespace.Beside(pid) {
			continue
		}
		p, err := procs.Read(pid)
		// Another user's is not to be believed, and would not be answered.
		if err != nil || p.UID != uint32(os.Geteuid()) || len(p.Args) < 2 {
			continue
		}
		args, err := ParseArgs(p.Args[1:])
		if err != nil || args.Command != "" || !filepath.IsAbs(args.Socket) ||
			a.Namespace != "" && args.Namespace != a.Namespace || a.Address != "" && args.Address != a.Address {
			continue
		}
		if s := (server{pid, args}); s.is(a.ID) {
			list = append(list, s)
		}
	}
	return list, nil
}

// is says whether this is a shim that serves and, unless id is "", has that container.
func (s *server) is(id string) bool {
	client, err := s.dial()
	if err != nil {
		return false
	}
	defer client.Close()
	var answer wire.ConnectResponse
	err = client.Call("containerd.task.v2.Task", "Connect", nil, answerTimeout, &wire.ConnectRequest{ID: id}, &answer)
	// A process may call itself what it likes.
	return err == nil && int(answer.ShimPid) == s.pid && (id == "" || s.args.ID == id || answer.TaskPid != 0)
}

func (s *server) dial() (*ttrpc.Client, error) {
	conn, err := ttrpc.Dial(s.args.Socket)
	if err != nil {
		return nil, err
	}
	if err := ttrpc.SamePeer(conn); err != nil {
		conn.Close()
		return nil, err
	}
	return ttrpc.NewClient(conn), nil
}

func (s *server) upgrade(program string) (*wire.UpgradeResponse, error) {
	client, err := s.dial()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	answer := new(wire.UpgradeResponse)
	err = client.Call(task.UpgradeService, task.UpgradeMethod, nil, upgradeTimeout, &wire.UpgradeRequest{Program: program}, answer)
	return answer, err
}
