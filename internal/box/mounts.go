package box

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// mounts are what lies on the root file system. Those of the host that are not
// named here are overlaid with it.
func (o *Options) mounts(c *Caller) []specs.Mount {
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
	if name, ok := o.resolver(); ok {
		list = append(list, bind(Bind{Source: name, Path: name}))
	}
	if o.showsDir(c.Dir) {
		list = append(list, bind(Bind{Source: c.Dir, Path: c.Dir}))
	}
	for _, b := range o.Binds {
		list = append(list, bind(b))
	}
	for _, name := range o.Tmp {
		list = append(list, memory(filepath.Join("/", name), "mode=1777"))
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

// resolver is the file that the host's /etc/resolv.conf leads to, where that is in
// /run, of which the box has its own.
func (o *Options) resolver() (string, bool) {
	if !o.HostNet || o.Rootfs != "" {
		return "", false
	}
	name, err := filepath.EvalSymlinks("/etc/resolv.conf")
	return name, err == nil && strings.HasPrefix(name, "/run/")
}

// showsDir reports whether the current folder is shown as it is: unless something
// was asked for in its place, or it belongs to a file system of the kernel's.
func (o *Options) showsDir(dir string) bool {
	if o.Rootfs != "" || dir == "/" {
		return false
	}
	within := func(place string) bool { return dir == place || strings.HasPrefix(dir, place+"/") }
	for _, place := range []string{"/proc", "/sys", "/dev"} {
		if within(place) {
			return false
		}
	}
	for _, b := range o.Binds {
		if within(b.Path) {
			return false
		}
	}
	for _, name := range o.Tmp {
		if within(filepath.Join("/", name)) {
			return false
		}
	}
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}
