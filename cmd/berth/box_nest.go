package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/host"
)

// checkRights finds out what root lacks in a container, and what root's boxes can't have.
func (o *boxOptions) checkRights() error {
	if os.Geteuid() != 0 {
		return nil
	}
	if o.Nest {
		return errors.New("--nest is for ordinary users: what keeps root of a box from the machine's /proc is in the way of boxes in it")
	}
	if host.Lacking()&(1<<unix.CAP_SYS_ADMIN) == 0 {
		return nil
	}
	if os.Getenv("container") == "berth" {
		return errors.New("root of a box has no CAP_SYS_ADMIN, so it can make no others: run both as an ordinary user, the outer one with --nest")
	}
	return errors.New("root has no CAP_SYS_ADMIN here, as in most containers: run this one with it (docker run --privileged), or the box as an ordinary user")
}
