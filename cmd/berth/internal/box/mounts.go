package box

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// mounts are what lies on the root file system. Those of the host that are not
// named here are overlaid with it.
func (o *Options) mounts(c *Caller, more ...specs.Mount) []specs.Mount {
	list := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: devpts(c)},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777"}},
		o.sysfs(c),
		memory("/run", "mode=755"),
		memory("/tmp", "mode=1777"),
	}
	if o.Limited() {
		// Programs ask there what they may use.
		list = append(list, specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "ro"}})
	}
	for _, b := range o.resolvers() {
		list = append(list, bind(b))
	}
	if o.dir(c.Dir) == asItIs {
		list = append(list, bind(Bind{Source: c.Dir, Path: c.Dir}))
	}
	list = append(list, more...)
	for _, b := range o.Binds {
		list = append(list, bind(b))
	}
	for _, d := range o.Devices {
		list = append(list, d.mount())
	}
	for _, name := range o.Tmp {
		m := memory(filepath.Join("/", name), "mode=1777")
		if size, ok := o.TmpSize[name]; ok {
			m.Options = append(m.Options, "size="+strconv.FormatInt(size, 10))
		}
		list = append(list, m)
	}
	// What lies in another comes after it; of two in one place the later one wins.
	slices.SortStableFunc(list, func(a, b specs.Mount) int {
		return strings.Compare(a.Destination+"/", b.Destination+"/")
	})
	return list
}

func memory(place, mode string) specs.Mount {
	return specs.Mount{Destination: place, Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", mode}}
}

func bind(b Bind) specs.Mount {
	// With all that is mounted below, which a user namespace can't leave out.
	options := []string{"rbind", "nosuid", "nodev", "rro"}
	if b.Writable {
		options = options[:3]
	}
	return specs.Mount{Destination: b.Path, Type: "bind", Source: b.Source, Options: options}
}

func devpts(c *Caller) []string {
	options := []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}
	if c.UID == 0 {
		options = append(options, "gid=5") // the group tty, which another's user namespace has not
	}
	return options
}

// sysfs shows what the kernel tells of its devices. A new one takes rights over the
// network namespace that it shows.
func (o *Options) sysfs(c *Caller) specs.Mount {
	if c.UID == 0 {
		return specs.Mount{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}}
	}
	return specs.Mount{Destination: "/sys", Type: "none", Source: "/sys", Options: []string{"rbind", "nosuid", "noexec", "nodev", "rro"}}
}

// How the current directory is shown, read-only in any case.
type dirShow int

const (
	notShown dirShow = iota
	inOverlay
	asItIs
)

// dir says how the current directory, by its real path, is shown: not at all where something was
// asked for in its place, or where it belongs to a file system of the kernel's.
//
// As a mount of the host's it would have the host's sockets and pipes in it, which
// can be used on a read-only mount too (unix_find_bsd in net/unix/af_unix.c looks at
// the rights of the socket only). In an overlay they are others than the host's. So it
// is shown as it is only where the box has a /tmp of its own instead: below that, but
// /tmp itself, and all of /run, are where programs of the machine have the sockets by
// which they take orders.
func (o *Options) dir(dir string) dirShow {
	if o.Rootfs != "" || dir == "/" {
		return notShown
	}
	for _, place := range []string{"/proc", "/sys", "/dev"} {
		if within(dir, place) {
			return notShown
		}
	}
	for _, b := range o.Binds {
		if within(dir, b.Path) {
			return notShown
		}
	}
	for _, name := range o.Tmp {
		if within(dir, filepath.Join("/", name)) {
			return notShown
		}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return notShown
	}
	switch tmp := realPath("/tmp"); {
	case dir == tmp, within(dir, realPath("/run")):
		return notShown
	case within(dir, tmp):
		return asItIs
	}
	return inOverlay
}

func within(dir, place string) bool { return dir == place || strings.HasPrefix(dir, place+"/") }

// realPath is where a path leads to.
func realPath(name string) string {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return name
	}
	return real
}
