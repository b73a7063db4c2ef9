package container

import (
	"errors"
	"io"
	"strconv"

	"github.com/berth-runtime/berth/engine/rootfs"
)

// Accounts are the users and groups of the running container, mounts and all.
func (c *Container) Accounts() *rootfs.Accounts {
	return &rootfs.Accounts{Of: "the container", Open: func(name string) (io.ReadCloser, error) {
		root, err := rootfs.Open("/proc/" + strconv.Itoa(c.Pid) + "/root")
		if err != nil {
			return nil, err
		}
		defer root.Close()
		if !c.Alive() {
			return nil, errors.New("the container is gone")
		}
		return root.Open(name)
	}}
}
