package box

import (
	"os"
	"path/filepath"
	"strings"
)

// resolvers are the files by which names are found, where there is a network.
func (o *Options) resolvers() []Bind {
	name, err := filepath.EvalSymlinks("/etc/resolv.conf")
	switch {
	case o.Resolver != "" && o.Rootfs != "":
		return []Bind{{Source: o.Resolver, Path: o.inRoot("/etc/resolv.conf")}}
	case o.Resolver != "" && err != nil:
		return []Bind{{Source: o.Resolver, Path: "/etc/resolv.conf"}}
	case o.Resolver != "":
		return []Bind{{Source: o.Resolver, Path: name}}
	case !o.HostNet, err != nil:
		return nil
	case o.Image != nil:
		return []Bind{{Source: name, Path: o.inRoot("/etc/resolv.conf")}, {Source: realPath("/etc/hosts"), Path: o.inRoot("/etc/hosts")}}
	case o.Rootfs == "" && strings.HasPrefix(name, "/run/"): // of which the box has its own
		return []Bind{{Source: name, Path: name}}
	}
	return nil
}

// inRoot is where a name of the Rootfs leads to, which may be a link into what is mounted later.
func (o *Options) inRoot(name string) string {
	for range 8 {
		target, err := os.Readlink(filepath.Join(o.Rootfs, name))
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(name), target)
		}
		name = filepath.Clean("/" + target)
	}
	return name
}
