package cgrouptool

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/rootfs"
)

// Account is a user and a group; -1 leaves one as it is.
type Account struct{ UID, GID int }

// ParseAccount reads "user:group" of names or numbers; either may be missing. Names are those of
// /etc/passwd and /etc/group: os/user would ask the C library for others, and where a C compiler is
// installed link it, which costs the program its confinement (sys.Confine) and a millisecond a run.
func ParseAccount(text string) (Account, error) {
	a := Account{UID: -1, GID: -1}
	name, group, _ := strings.Cut(text, ":")
	var err error
	if name != "" {
		a.UID, err = number(name, "/etc/passwd", func(passwd io.Reader) (uint32, error) {
			u, err := rootfs.UserByName(passwd, name)
			return u.UID, err
		})
	}
	if err == nil && group != "" {
		a.GID, err = number(group, "/etc/group", func(groups io.Reader) (uint32, error) {
			return rootfs.GroupByName(groups, group)
		})
	}
	if err == nil && a == (Account{UID: -1, GID: -1}) {
		err = fmt.Errorf("it is written as user:group")
	}
	if err != nil {
		return a, fmt.Errorf("owner %q: %w", text, err)
	}
	return a, nil
}

func number(text, file string, lookup func(io.Reader) (uint32, error)) (int, error) {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return int(n), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	id, err := lookup(f)
	if err != nil {
		return 0, fmt.Errorf("%s in %s: %w", text, file, err)
	}
	return int(id), nil
}
