package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/criu"
	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/engine/rootfs"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/internal/namespace"
	"github.com/berth-runtime/berth/internal/sys"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// RestoreOptions say how a container is brought back from a checkpoint.
type RestoreOptions struct {
	CreateOptions
	CriuOptions
}

// Restore makes a container whose processes are those of a checkpoint. They run
// when it returns. When it fails, nothing is left.
func (r *Runtime) Restore(id string, o *RestoreOptions) (*Created, error) {
	defer r.Trace.Begin("restore").End()
	if err := wantRoot("restore"); err != nil {
		return nil, err
	}
	folders, err := o.open("restore.log", false)
	if err != nil {
		return nil, err
	}
	defer folders.close()
	if err := folders.openable(); err != nil {
		return nil, err
	}
	if err := folders.complete(); err != nil {
		return nil, err
	}
	o.NotifySocket, o.Listen = "", 0 // the processes have been told already
	m, config, err := r.newMaker(id, &o.CreateOptions)
	if err != nil {
		return nil, err
	}
	defer m.hangUp()
	b := &bringer{maker: m, o: o, folders: folders}
	if err := b.bring(config); err != nil {
		b.endHalfRestored()
		m.fail()
		return nil, err
	}
	m.Release()
	created := &Created{Container: m.Container, child: m.child, maker: m}
	if err := m.poststart(&m.plan.Hooks); err != nil {
		created.Abandon()
		return nil, err
	}
	return created, nil
}

// bringer is one container being brought back.
type bringer struct {
	*maker
	o       *RestoreOptions
	folders *criuFolders
	criu    *criu.Options
	start   criu.Start
	inherit []string // what Start.Files stand for
}

func (b *bringer) bring(config []byte) error {
	defer b.runtime.Trace.Begin("let criu bring it back").End()
	if err := refuseForCriu(b.plan); err != nil {
		return fmt.Errorf("cannot restore container %s: %w", b.ID, err)
	}
	var err error
	if b.criu, err = b.o.CriuOptions.options(b.folders); err != nil {
		return err
	}
	b.criu.Root, b.criu.Sibling = b.plan.Root.Path, true
	if err := b.checkRoot(); err != nil {
		return err
	}
	if err := b.intend(config); err != nil {
		return err
	}
	if err := b.inheritFiles(); err != nil {
		return err
	}
	if err := b.inheritNamespaces(); err != nil {
		return err
	}
	if err := b.makeTargets(); err != nil {
		return err
	}
	b.start.Program, b.start.Images, b.start.Work = b.o.Criu, b.o.Images, b.o.Work
	if b.o.ShellJob {
		b.start.Terminal = &b.o.Stdio
	}
	if b.plan.Namespace(specs.MountNamespace) != nil {
		b.start.Root = b.plan.Root.Path
	}
	b.folders.clear()
	session, err := criu.Open(&b.start)
	if err != nil {
		return err
	}
	defer session.Close()
	for i, key := range b.inherit {
		b.criu.Inherit = append(b.criu.Inherit, criu.Inherit{Key: key, FD: session.Pass(i)})
	}
	if err := b.enterCgroup(session); err != nil {
		return err
	}
	// After the cgroup, whose directories are sources of mounts.
	if err := b.outsideMounts(); err != nil {
		return err
	}
	v, err := session.Version()
	if err != nil {
		return b.folders.explain(b.ID, err)
	}
	if err := b.o.old(v); err != nil {
		return err
	}
	pid, err := session.Do(criu.Restore, b.criu, b.notified)
	if err != nil {
		var refused *criu.Refusal
		if !errors.As(err, &refused) {
			return err
		}
		return b.folders.explain(b.ID, err)
	}
	if err := b.adopt(pid); err != nil {
		return err
	}
	return b.settle()
}

// endHalfRestored ends what criu had begun to restore when it failed, and helpers of its own. criu
// does not wait for their end, and till then they would be taken for other processes in the cgroup,
// which would be left to them. But it was made for this, and refused if it was in use: they are
// criu's.
func (b *bringer) endHalfRestored() {
	if b.group == nil || b.child != nil || !b.Cgroup.MadeAll {
		return
	}
	pids, err := b.group.AllProcs()
	if err != nil {
		return // fail says what is wrong with it
	}
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		if unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
			_, _ = waitGone(fd, time.Second)
		}
		unix.Close(fd)
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // what is restored as criu's sibling is our child
	}
}

// adopt takes a restored process, which is our child, for the container's.
func (b *bringer) adopt(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("container %s: open its restored process %d: %w", b.ID, pid, err)
	}
	b.child = launch.Adopt(pid, fd)
	return nil
}

// notified does what is due while criu restores.
func (b *bringer) notified(n criu.Notification, fd int) error {
	switch n.Script {
	case "setup-namespaces":
		// The namespaces exist, and nothing is in them yet.
		b.hooked = true
		state := b.hookState(specs.StateCreating, n.Pid)
		h := &b.plan.Hooks
		//lint:ignore SA1019 deprecated is not gone: clients write them
		if err := b.runHooks("prestart", h.Prestart, state, spawnHook); err != nil {
			return err
		}
		return b.runHooks("createRuntime", h.CreateRuntime, state, spawnHook)
	case "orphan-pts-master":
		return b.o.deliverConsole(fd)
	case "post-restore":
		// Everything is there, and nothing runs yet.
		var err error
		if b.Namespaces, err = lookAtNamespaces(n.Pid); err != nil {
			return fmt.Errorf("container %s: %w", b.ID, err)
		}
		if b.plan.Root.Readonly {
			return readonlyRoot(n.Pid)
		}
	}
	return nil
}

// readonlyRoot makes the root mount of a process's mount namespace read-only:
// criu leaves the mount of a root as it finds it, and makes directories in it before.
func readonlyRoot(pid int) error {
	var err error
	sys.OnThrowawayThread(func() { err = readonlyRootIn(pid) })
	if err != nil {
		return fmt.Errorf("config.json: /root/readonly: make the restored root read-only: %w", err)
	}
	return nil
}

// enterMounts lets this thread enter the mount namespace of a process for good.
func enterMounts(pid int) error {
	fd, err := namespace.Open(pid, "mnt")
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// A mount namespace is entered only by a thread that shares its root and working
	// directory with no other (setns(2)); Go's threads share them.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	return unix.Setns(fd, unix.CLONE_NEWNS)
}

// readonlyRootIn is for a thread that ends with it.
func readonlyRootIn(pid int) error {
	if err := enterMounts(pid); err != nil {
		return err
	}
	err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err == unix.ENOSYS { // before Linux 5.12
		var now unix.Statfs_t
		if err = unix.Statfs("/", &now); err == nil {
			err = unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|uintptr(now.Flags)&keptByRemount, "")
		}
	}
	return err
}

// keptByRemount are the attributes of a mount that statfs(2) tells in the same bits
// in which mount(2) takes them.
const keptByRemount = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME

// inheritFiles puts our descriptors in place of those that the container had
// from outside when it was written down.
func (b *bringer) inheritFiles() error {
	data, err := rootfs.ReadAt(int(b.folders.images.Fd()), descriptorsFile, spec.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // images that another program created
	}
	if err != nil {
		return fmt.Errorf("--image-path: %w", err)
	}
	d := json.NewDecoder(data)
	keys := d.Strings()
	if err := d.Close(); err != nil {
		return fmt.Errorf("--image-path: %s: %w", descriptorsFile, err)
	}
	ours := append(b.o.Stdio[:], b.o.Preserve...)
	seen := map[string]bool{}
	for i, key := range keys {
		if !isInheritable(key) || seen[key] {
			continue
		}
		seen[key] = true
		if i >= len(ours) {
			return fmt.Errorf("descriptor %d of the container was passed to it from outside: pass another with --preserve-fds %d", i, i-2)
		}
		b.start.Files = append(b.start.Files, int(ours[i]))
		b.inherit = append(b.inherit, key)
	}
	return nil
}

// inheritNamespaces gives the container the namespaces that the config names.
func (b *bringer) inheritNamespaces() error {
	for i := range b.plan.Namespaces {
		n := &b.plan.Namespaces[i]
		if n.Path == "" {
			continue
		}
		fd, err := opener{b.maker}.namespace(n)
		if err != nil {
			return err
		}
		file, name := externalNamespace(n)
		if file == "" {
			b.criu.Join = append(b.criu.Join, criu.Join{Type: joinType(n.Type), File: n.Path})
			continue
		}
		b.start.Files = append(b.start.Files, fd)
		b.inherit = append(b.inherit, name)
	}
	return nil
}

// joinType is what criu calls a type of namespace: as the files of /proc/PID/ns.
func joinType(t specs.LinuxNamespaceType) string {
	if t == specs.MountNamespace {
		return "mnt"
	}
	return string(t)
}

// enterCgroup puts criu into the container's cgroup: what it restores begins
// there, and counts against the container's limits from the start.
func (b *bringer) enterCgroup(session *criu.Session) error {
	if b.plan.Cgroup.Unit != nil {
		b.child = launch.Adopt(session.Pid, -1)
		err := b.startUnit()
		b.child = nil
		if err != nil {
			return err
		}
	}
	if b.group == nil {
		return nil
	}
	at := path.Join(b.Cgroup.Path, b.Cgroup.Payload)
	g, err := b.host.Cgroups.Open(at, cgroup.Force())
	if err != nil {
		return blame(b.plan.Cgroup.At, err)
	}
	defer g.Close()
	if err := g.Join(session.Pid); err != nil {
		return blame(b.plan.Cgroup.At, err)
	}
	if b.criu.CgroupMode != criu.CgroupIgnore {
		b.criu.CgroupRoots = []criu.CgroupRoot{{Path: at}}
	}
	return nil
}

// outsideMounts says where the mounts come from that dump gave a name.
func (b *bringer) outsideMounts() error {
	add := func(name, source string) {
		b.criu.Mounts = append(b.criu.Mounts, criu.Mount{Key: name, Value: source})
	}
	for i := range b.plan.Mounts {
		m := &b.plan.Mounts[i]
		switch {
		case m.Bind:
			if _, err := os.Stat(m.Source); err != nil {
				return fmt.Errorf("config.json: %s/source: bind mount of %q: %w", m.At, m.Source, err)
			}
			add(m.Destination, m.Source)
		case m.Cgroup:
			dirs := callersCgroupDirs
			if b.group != nil {
				dirs = func(*cgroup.Host) []compile.CgroupDir { return b.group.dirs() }
			}
			shown := dirs(b.host.Cgroups)
			b.showCgroupTree(shown)
			for _, dir := range compile.ShownCgroups(m, shown) {
				if dir.Tree != "" {
					add(m.Destination, dir.Tree)
					dir.Name = strings.TrimPrefix(dir.Path, dir.Tree)
				}
				add(path.Join(m.Destination, dir.Name), dir.Path)
			}
		}
	}
	for i := range b.plan.Devices {
		if d := &b.plan.Devices[i]; d.Bind {
			if err := b.unfit(d); err != nil && !errors.Is(err, errOtherOwner) {
				return fmt.Errorf("config.json: %s: a restored container takes the device %s (%c %d:%d) from the host: %w", d.At, d.Path, d.Type, d.Major, d.Minor, err)
			}
			add(d.Path, d.Path)
		}
	}
	if len(b.plan.Masked) > 0 {
		add(nullDevice, nullDevice)
	}
	return nil
}
