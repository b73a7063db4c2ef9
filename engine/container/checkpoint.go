package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/criu"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/rootfs"
	"github.com/berth-runtime/berth/internal/atomicfile"
	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/internal/namespace"
	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// CheckpointOptions say how a container is written down.
type CheckpointOptions struct {
	CriuOptions
	// LeaveRunning lets the container go on; otherwise it is gone afterwards.
	LeaveRunning bool
	// PreDump writes only its memory, as a parent of the checkpoint to come.
	PreDump bool
	// Parent is an earlier directory of images, of which only what has changed since
	// is written.
	Parent          string
	TCPSkipInFlight bool
	// PageServer gets the memory instead of the image files; nil for none.
	PageServer *criu.PageServer
	// StatusFD is a descriptor that criu writes a zero byte to when it serves lazy
	// pages; -1 for none.
	StatusFD int
}

// Checkpoint writes the container's processes down.
func (c *Container) Checkpoint(o *CheckpointOptions) error {
	defer c.runtime.Trace.Begin("checkpoint").End()
	if err := wantRoot("checkpoint"); err != nil {
		return err
	}
	if err := c.hold(); err != nil {
		return err
	}
	defer c.Release()
	switch status := c.status(); status {
	case specs.StateRunning, Paused:
	case specs.StateStopped:
		return fmt.Errorf("cannot checkpoint container %s: %w", c.ID, ErrNotRunning)
	default:
		return fmt.Errorf("cannot checkpoint container %s: it is %s", c.ID, status)
	}
	// What the images say of the world outside is by what the first process sees.
	if err := c.stayed(); err != nil {
		return err
	}
	p, err := c.plan()
	if err != nil {
		return err
	}
	if err := refuseForCriu(p); err != nil {
		return fmt.Errorf("cannot checkpoint container %s: %w", c.ID, err)
	}
	folders, err := o.open("dump.log", true)
	if err != nil {
		return err
	}
	defer folders.close()
	d := &dumper{Container: c, o: o, plan: p, folders: folders}
	if err := d.dump(); err != nil {
		return err
	}
	if o.LeaveRunning || o.PreDump {
		return nil
	}
	return c.remove()
}

// dumper is one checkpoint being made.
type dumper struct {
	*Container
	o       *CheckpointOptions
	plan    *plan.Plan
	folders *criuFolders
	criu    *criu.Options
}

func (d *dumper) dump() error {
	defer d.runtime.Trace.Begin("let criu write it down").End()
	var err error
	if d.criu, err = d.o.options(d.folders); err != nil {
		return err
	}
	d.criu.Pid, d.criu.Root = d.Pid, d.Rootfs
	d.criu.LeaveRunning = d.o.LeaveRunning
	d.criu.TCPSkipInFlight = d.o.TCPSkipInFlight
	d.criu.PageServer = d.o.PageServer
	d.criu.TrackMemory = d.o.PreDump || d.o.Parent != ""
	if d.criu.ParentImage, err = relativeParent(d.o.Images, d.o.Parent); err != nil {
		return err
	}
	if err := d.outside(); err != nil {
		return err
	}
	start := criu.Start{Program: d.o.Criu, Images: d.o.Images, Work: d.o.Work}
	if d.o.StatusFD >= 0 {
		start.Files = []int{d.o.StatusFD}
	}
	d.folders.clear()
	session, err := criu.Open(&start)
	if err != nil {
		return err
	}
	defer session.Close()
	if d.o.StatusFD >= 0 {
		d.criu.StatusFD = session.Pass(0)
	}
	if err := d.able(session); err != nil {
		return err
	}
	takeBack, err := d.handOver()
	if err != nil {
		return fmt.Errorf("container %s: hand its freezer over to criu: %w", d.ID, err)
	}
	task := criu.Dump
	if d.o.PreDump {
		task = criu.PreDump
	}
	if _, err = session.Do(task, d.criu, nil); err != nil {
		err = d.folders.explain(d.ID, err)
	}
	session.Close() // it may hold the processes yet
	return errors.Join(err, takeBack())
}

// relativeParent is how criu wants the parent of images: as they see it.
func relativeParent(images, parent string) (string, error) {
	if parent == "" {
		return "", nil
	}
	if filepath.IsAbs(parent) {
		absolute, err := filepath.Abs(images)
		if err == nil {
			parent, err = filepath.Rel(absolute, parent)
		}
		if err != nil {
			return "", fmt.Errorf("--parent-path: %w", err)
		}
	}
	if _, err := os.Stat(filepath.Join(images, parent)); err != nil {
		return "", fmt.Errorf("--parent-path (relative to --image-path): %w", err)
	}
	return parent, nil
}

// able refuses what this criu, or the kernel, does not do.
func (d *dumper) able(s *criu.Session) error {
	v, err := s.Version()
	if err != nil {
		return d.folders.explain(d.ID, err)
	}
	if err := d.o.old(v); err != nil {
		return err
	}
	if d.o.TCPSkipInFlight && v.Before(3, 13) {
		return fmt.Errorf("--tcp-skip-in-flight needs criu 3.13 or later, and this one is %s", v)
	}
	if !d.criu.TrackMemory && !d.o.LazyPages {
		return nil
	}
	f, err := s.Features()
	if err != nil {
		return d.folders.explain(d.ID, err)
	}
	switch {
	case d.criu.TrackMemory && !f.MemoryTracking:
		return fmt.Errorf("--pre-dump and --parent-path: this kernel does not track changes of memory (CONFIG_MEM_SOFT_DIRTY); leave them out for a whole image")
	case d.o.LazyPages && !f.LazyPages:
		return fmt.Errorf("--lazy-pages: this kernel or criu has no userfaultfd (CONFIG_USERFAULTFD); leave it out for a whole image")
	}
	return nil
}

// outside tells criu what the container has of the world outside of it: mounts,
// namespaces, descriptors.
func (d *dumper) outside() error {
	if err := d.outsideMounts(); err != nil {
		return fmt.Errorf("container %s: %w", d.ID, err)
	}
	for i := range d.plan.Namespaces {
		n := &d.plan.Namespaces[i]
		file, name := externalNamespace(n)
		if n.Path == "" || file == "" {
			continue
		}
		id, err := namespace.Of(d.Pid, file)
		if err != nil {
			return fmt.Errorf("container %s: %w", d.ID, err)
		}
		d.criu.External = append(d.criu.External, file+"["+strconv.FormatUint(id.Ino, 10)+"]:"+name)
	}
	if d.o.PreDump {
		return nil
	}
	return d.outsideFiles()
}

// outsideMounts names the mounts that come from the host, by their place in the
// container.
func (d *dumper) outsideMounts() error {
	if d.plan.Namespace(specs.MountNamespace) == nil {
		return nil
	}
	mounts, err := mountinfo.Of(strconv.Itoa(d.Pid))
	if err != nil {
		return err
	}
	root, err := rootfs.Open("/proc/" + strconv.Itoa(d.Pid) + "/root")
	if err != nil {
		return err
	}
	defer root.Close()
	at := func(name string) (m mountinfo.Entry, st unix.Stat_t) {
		id, st, err := root.Mount(name)
		if err != nil {
			return m, st
		}
		for _, m := range mounts {
			if m.ID == id {
				return m, st
			}
		}
		return m, st
	}
	add := func(point, name string) {
		if point != "" && point != "/" {
			d.criu.Mounts = append(d.criu.Mounts, criu.Mount{Key: point, Value: name})
		}
	}
	for i := range d.plan.Mounts {
		m := &d.plan.Mounts[i]
		there, _ := at(m.Destination)
		switch {
		case m.Bind:
			add(there.Point, m.Destination)
		case m.Cgroup:
			for _, inner := range mounts {
				rest, below := strings.CutPrefix(inner.Point, there.Point)
				if below && (inner.Type == "cgroup" || inner.Type == "cgroup2") {
					add(inner.Point, m.Destination+rest)
				}
			}
		}
	}
	for i := range d.plan.Devices {
		if dev := &d.plan.Devices[i]; dev.Bind {
			there, _ := at(dev.Path)
			add(there.Point, dev.Path)
		}
	}
	for i := range d.plan.Masked {
		there, st := at(d.plan.Masked[i].Path)
		if st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(1, 3) {
			add(there.Point, nullDevice)
		}
	}
	return nil
}

const nullDevice = "/dev/null"

// outsideFiles records what the descriptors of the first process are that came
// from outside, for restore to put others in their place.
func (d *dumper) outsideFiles() error {
	mounts, err := mountinfo.Of(strconv.Itoa(d.Pid))
	if err != nil {
		return fmt.Errorf("container %s: %w", d.ID, err)
	}
	ids := map[int]bool{}
	for _, m := range mounts {
		ids[m.ID] = true
	}
	folder := "/proc/" + strconv.Itoa(d.Pid)
	var keys []string
	for fd := range 3 + d.preserved() {
		key := descriptorKey(folder, strconv.Itoa(fd), ids)
		if strings.HasPrefix(key, "file[") && !slices.Contains(d.criu.External, key) {
			d.criu.External = append(d.criu.External, key)
		}
		keys = append(keys, key)
	}
	w := json.NewWriter(nil, "")
	w.Strings(keys)
	if err := atomicfile.Write(int(d.folders.images.Fd()), descriptorsFile, w.Bytes(), 0o600); err != nil {
		return fmt.Errorf("--image-path: %w", err)
	}
	return nil
}

// preserved is how many more descriptors from 3 on the first process has without
// a gap, which is how --preserve-fds gives them.
func (d *dumper) preserved() int {
	for n := 0; ; n++ {
		if _, err := os.Readlink("/proc/" + strconv.Itoa(d.Pid) + "/fd/" + strconv.Itoa(3+n)); err != nil {
			return n
		}
	}
}

// descriptorKey is how criu calls an open file that comes from outside: a pipe, or
// a file on a mount that the container does not have. For any other it is what
// the kernel calls it.
func descriptorKey(folder, fd string, mounts map[int]bool) string {
	name, err := os.Readlink(folder + "/fd/" + fd)
	if err != nil || !strings.HasPrefix(name, "/") {
		return name
	}
	id, err := rootfs.MountID(folder + "/fdinfo/" + fd)
	if err != nil || mounts[id] {
		return name
	}
	var st unix.Stat_t
	if err := unix.Stat(folder+"/fd/"+fd, &st); err != nil {
		return name
	}
	return "file[" + strconv.FormatInt(int64(id), 16) + ":" + strconv.FormatUint(st.Ino, 16) + "]"
}
