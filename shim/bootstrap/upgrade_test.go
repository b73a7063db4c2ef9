package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/task"
)

// pretends is set for a process that only has the arguments of a shim.
const pretends = "BERTH_TEST_PRETENDS"

func TestMain(m *testing.M) {
	if os.Getenv(pretends) != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A process of a container that calls itself a shim is not asked; and what a shim says of itself is
// nothing that a terminal takes for orders.
func TestUpgradeBesideOneThatPretends(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a pid namespace")
	}
	root := t.TempDir()
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "exe"), program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, attr := range map[string]syscall.SysProcAttr{
		"of the host":                            {},
		"of the host, with mounts of its own":    {Cloneflags: syscall.CLONE_NEWNS},
		"of a container":                         {Cloneflags: syscall.CLONE_NEWPID},
		"of a container that sees all processes": {Cloneflags: syscall.CLONE_NEWNS, Chroot: root},
	} {
		t.Run(name, func(t *testing.T) {
			if attr.Chroot != "" && bytes.Contains(program[:min(len(program), 4096)], []byte("/ld-linux")) {
				t.Skip("the test is linked with libraries (the race detector's), which that root does not have")
			}
			ours := attr.Chroot == "" && attr.Cloneflags&syscall.CLONE_NEWPID == 0
			pid, asked := 0, 0
			socket := filepath.Join(t.TempDir(), "s")
			l, err := ttrpc.Listen(socket)
			if err != nil {
				t.Fatal(err)
			}
			server := ttrpc.NewServer(func(text string) { t.Log(text) })
			server.Register("containerd.task.v2.Task", map[string]ttrpc.Handler{"Connect": func(context.Context, []byte) (wire.Message, error) {
				asked++
				return &wire.ConnectResponse{ShimPid: uint32(pid)}, nil
			}})
			server.Register(task.UpgradeService, map[string]ttrpc.Handler{task.UpgradeMethod: func(context.Context, []byte) (wire.Message, error) {
				return &wire.UpgradeResponse{From: "\x1b[2J", To: "\n"}, nil
			}})
			cmd := exec.Command("/proc/self/exe")
			cmd.Args = []string{"shim", "-namespace", "berth-test-upgrade", "-id", "c", "-address", "/a", "-socket", socket}
			cmd.Env = append(os.Environ(), pretends+"=1")
			cmd.SysProcAttr = &attr
			if attr.Chroot != "" {
				cmd.Path = "/exe"
			}
			in, err := cmd.StdinPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer in.Close()
			pid = cmd.Process.Pid
			done := make(chan error)
			go func() { done <- server.Serve(l) }()
			var out bytes.Buffer
			err = Upgrade(&Args{All: true, Namespace: "berth-test-upgrade"}, &out)
			server.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
			want := fmt.Sprintf("berth-test-upgrade/c (pid %d): upgraded from \\x1b[2J to ; \n1 of 1 shims upgraded\n", pid)
			if !ours {
				want = "no shims are running\n"
			}
			if err != nil || out.String() != want || strings.Contains(out.String(), "\x1b") {
				t.Errorf("%v, %q, want %q", err, out.String(), want)
			}
			if !ours && asked > 0 {
				t.Error("it was asked")
			}
		})
	}
}
