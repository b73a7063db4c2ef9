package cgrouptool

import (
	"fmt"
	"os/user"
	"strconv"
	"strings"
)

// Account is a user and a group; -1 leaves one as it is.
type Account struct{ UID, GID int }

// ParseAccount reads "user:group" of names or numbers; either may be missing.
func ParseAccount(text string) (Account, error) {
	a := Account{UID: -1, GID: -1}
	name, group, _ := strings.Cut(text, ":")
	var err error
	if name != "" {
		a.UID, err = number(name, func(name string) (string, error) {
			u, err := user.Lookup(name)
			if err != nil {
				return "", err
			}
			return u.Uid, nil
		})
	}
	if err == nil && group != "" {
		a.GID, err = number(group, func(name string) (string, error) {
			g, err := user.LookupGroup(name)
			if err != nil {
				return "", err
			}
			return g.Gid, nil
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

func number(text string, lookup func(string) (string, error)) (int, error) {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return int(n), nil
	}
	id, err := lookup(text)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(id)
}
