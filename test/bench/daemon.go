package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// daemon is a containerd of ours, in a view, and a client of it.
type daemon struct {
	b       *bench
	dir     string
	process *os.Process
	log     *os.File
	conn    *grpc.ClientConn
}

// runtimeOf is a shim with the engine that it executes, "" for the one in it.
type runtimeOf struct{ name, shim, engine string }

const ctrNamespace = "bench"

// startDaemon starts containerd from the calling thread, so it is in its view.
func (b *bench) startDaemon() (*daemon, error) {
	path, err := exec.LookPath("containerd")
	if err != nil {
		return nil, err
	}
	d := &daemon{b: b, dir: filepath.Join(b.dir, "c")}
	if err := os.Mkdir(d.dir, 0o711); err != nil {
		return nil, err
	}
	// What containerd, shims and engines keep of a container is in memory, as /run
	// is on a host: on a disk the making of files would be much of what is measured.
	for _, at := range []string{d.state(), filepath.Join(d.dir, "engine"), "/run/containerd"} {
		if err := os.MkdirAll(at, 0o711); err != nil {
			return nil, err
		}
		if err := unix.Mount("tmpfs", at, "tmpfs", 0, "mode=711"); err != nil {
			return nil, fmt.Errorf("mount a tmpfs on %s: %w", at, err)
		}
	}
	config := fmt.Sprintf(`version = 2
root = "%[1]s/root"
state = "%[1]s/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "%[1]s/c.sock"
[ttrpc]
  address = "%[1]s/c.sock.ttrpc"
[debug]
  level = "error"
`, d.dir)
	file := filepath.Join(d.dir, "config.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	d.process, d.log, err = b.begin([]string{path, "-c", file}, "")
	if err != nil {
		return nil, err
	}
	d.conn, err = grpc.NewClient("unix://"+d.socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(d.ctx(), 30*time.Second)
	defer cancel()
	if _, err := d.containers().List(ctx, &containers.ListContainersRequest{}, grpc.WaitForReady(true)); err != nil {
		return nil, fmt.Errorf("containerd does not answer: %w\n%s", err, output(d.log))
	}
	return d, nil
}

func (d *daemon) stop() {
	d.conn.Close()
	_ = d.process.Signal(syscall.SIGTERM)
	_, _ = d.process.Wait()
	d.log.Close()
}

// state is containerd's directory for bundles.
func (d *daemon) state() string { return filepath.Join(d.dir, "state") }

func (d *daemon) socket() string { return filepath.Join(d.dir, "c.sock") }

func (d *daemon) ctx() context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "containerd-namespace", ctrNamespace)
}

func (d *daemon) tasks() tasks.TasksClient { return tasks.NewTasksClient(d.conn) }

func (d *daemon) containers() containers.ContainersClient {
	return containers.NewContainersClient(d.conn)
}

func (d *daemon) options(r runtimeOf) (*anypb.Any, error) {
	data, err := proto.Marshal(&runcoptions.Options{BinaryName: r.engine, Root: filepath.Join(d.dir, "engine")})
	return &anypb.Any{TypeUrl: "containerd.runc.v1.Options", Value: data}, err
}

// box is a container of the daemon.
type box struct {
	d       *daemon
	id      string
	options *anypb.Any
	pid     int
}

// define makes a container without a task.
func (d *daemon) define(r runtimeOf, s *specs.Spec) (*box, error) {
	c := &box{d: d, id: d.b.id()}
	s.Root = &specs.Root{Path: "rootfs"}
	s.Linux.CgroupsPath = "/" + d.b.cgroup + "/" + c.id
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	if c.options, err = d.options(r); err != nil {
		return nil, err
	}
	_, err = d.containers().Create(d.ctx(), &containers.CreateContainerRequest{Container: &containers.Container{
		ID:      c.id,
		Runtime: &containers.Container_Runtime{Name: r.shim, Options: c.options},
		Spec:    &anypb.Any{TypeUrl: "types.containerd.io/opencontainers/runtime-spec/1/Spec", Value: text},
	}})
	return c, err
}

func (c *box) create() error {
	r, err := c.d.tasks().Create(c.d.ctx(), &tasks.CreateTaskRequest{
		ContainerID: c.id, Options: c.options,
		Rootfs: []*types.Mount{{Type: "bind", Source: c.d.b.root(), Options: []string{"rbind", "ro"}}},
	})
	if err == nil {
		c.pid = int(r.Pid)
	}
	return err
}

func (c *box) start() error {
	_, err := c.d.tasks().Start(c.d.ctx(), &tasks.StartRequest{ContainerID: c.id})
	return err
}

func (c *box) wait() error {
	_, err := c.d.tasks().Wait(c.d.ctx(), &tasks.WaitRequest{ContainerID: c.id})
	return err
}

func (c *box) delete() error {
	_, err := c.d.tasks().Delete(c.d.ctx(), &tasks.DeleteTaskRequest{ContainerID: c.id})
	return err
}

func (c *box) undefine() error {
	_, err := c.d.containers().Delete(c.d.ctx(), &containers.DeleteContainerRequest{ID: c.id})
	return err
}

// end kills a running container and removes it.
func (c *box) end() error {
	if _, err := c.d.tasks().Kill(c.d.ctx(), &tasks.KillRequest{ContainerID: c.id, Signal: 9}); err != nil {
		return err
	}
	if err := c.wait(); err != nil {
		return err
	}
	if err := c.delete(); err != nil {
		return err
	}
	return c.undefine()
}

// exec adds a process, and waits for its end.
func (c *box) exec(args ...string) error {
	const id = "added"
	process, err := json.Marshal(&specs.Process{Cwd: "/", Env: []string{"PATH=/bin"}, Args: args, NoNewPrivileges: true})
	if err != nil {
		return err
	}
	t, ctx := c.d.tasks(), c.d.ctx()
	if _, err := t.Exec(ctx, &tasks.ExecProcessRequest{ContainerID: c.id, ExecID: id,
		Spec: &anypb.Any{TypeUrl: "types.containerd.io/opencontainers/runtime-spec/1/Process", Value: process}}); err != nil {
		return err
	}
	if _, err := t.Start(ctx, &tasks.StartRequest{ContainerID: c.id, ExecID: id}); err != nil {
		return err
	}
	if _, err := t.Wait(ctx, &tasks.WaitRequest{ContainerID: c.id, ExecID: id}); err != nil {
		return err
	}
	_, err = t.DeleteProcess(ctx, &tasks.DeleteProcessRequest{ContainerID: c.id, ExecID: id})
	return err
}
