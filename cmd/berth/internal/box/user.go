package box

import (
	"cmp"
	"io"
	"os"

	"github.com/berth-runtime/berth/engine/rootfs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// user resolves --user, or what an image has for it, by the files of the root, and finds the home.
func (o *Options) user(c *Caller) (specs.User, string, error) {
	caller := specs.User{UID: uint32(c.UID), GID: uint32(c.GID)}
	accounts := &rootfs.Accounts{Of: "the box", Open: o.open}
	name := o.User
	if o.Image != nil {
		// As everywhere images are run: what is not said is root's.
		name, caller = cmp.Or(name, o.Image.User, "0"), specs.User{}
	}
	if name != "" {
		user, home, err := accounts.User(name, caller)
		return user, cmp.Or(home, "/"), err
	}
	if home, ok := lookUp(c.Environ, "HOME"); ok && o.Rootfs == "" {
		return caller, home, nil
	}
	entry, err := accounts.UserByID(caller.UID)
	if err != nil {
		return caller, "/", nil // an unknown user, without a home
	}
	return caller, cmp.Or(entry.Home, "/"), nil
}

// open opens a file of the root that the box will have.
func (o *Options) open(name string) (io.ReadCloser, error) {
	if o.Rootfs == "" {
		return os.Open(name)
	}
	root, err := rootfs.Open(o.Rootfs)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(name)
}
