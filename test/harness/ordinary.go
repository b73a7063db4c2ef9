package harness

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// An OrdinaryUser is whom root's tests become to call the engine without any right of root's.
type OrdinaryUser struct {
	UID int
	box *Box
	// First is the first of the user's subordinate ids, of which there are Subordinate; 0 for none.
	First, Subordinate int
}

// AsOrdinaryUser makes all calls of the box those of an ordinary user. He has as many subordinate
// ids as it says. What the machine has in /etc/passwd, /etc/subuid and /etc/subgid stays: the calls
// see other files in their place.
func (b *Box) AsOrdinaryUser(t testing.TB, subordinate int) *OrdinaryUser {
	t.Helper()
	NeedContainers(t)
	NeedNamespace(t, "user")
	// Numbers that no distribution gives out by itself.
	u := &OrdinaryUser{UID: 54321, box: b, First: 2000000, Subordinate: subordinate}
	passwd, err := os.ReadFile("/etc/passwd")
	b.must(err)
	name := "berth-test"
	ids := ""
	if subordinate > 0 {
		NeedTool(t, "newuidmap", "uidmap")
		ids = fmt.Sprintf("%s:%d:%d\n", name, u.First, subordinate)
	}
	files := ""
	for file, content := range map[string]string{
		"passwd": string(passwd) + fmt.Sprintf("%s:x:%d:%d::/:/bin/sh\n", name, u.UID, u.UID), "subuid": ids, "subgid": ids,
	} {
		if _, err := os.Stat("/etc/" + file); os.IsNotExist(err) {
			if content == "" {
				continue
			}
			Skip(t, "needs a file /etc/%s to put another in its place", file)
		}
		if files != "" {
			files += ","
		}
		files += "/etc/" + file + "=" + b.WriteFile("etc/"+file, content, 0o644)
	}
	b.must(os.Chown(b.Dir, u.UID, u.UID)) // he makes the state root and files with pids there
	helper := Helper(t)
	b.Wrap = []string{helper, "covered", files, helper, "as", strconv.Itoa(u.UID)}
	return u
}

// Container is a container of the user's, with the mappings that he may have.
func (u *OrdinaryUser) Container(args ...string) *Container {
	b := u.box
	b.T.Helper()
	c := b.Container(args...)
	c.Spec.Linux.CgroupsPath, c.Spec.Linux.Resources = "", nil
	own := specs.LinuxIDMapping{HostID: uint32(u.UID), Size: 1}
	rootless(c.Spec, own, own)
	if u.Subordinate > 0 {
		more := specs.LinuxIDMapping{ContainerID: 1, HostID: uint32(u.First), Size: uint32(u.Subordinate)}
		c.Spec.Linux.UIDMappings = append(c.Spec.Linux.UIDMappings, more)
		c.Spec.Linux.GIDMappings = append(c.Spec.Linux.GIDMappings, more)
	}
	// The directories only: the programs in them are links to what other tests use too.
	b.must(filepath.WalkDir(c.Dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chown(path, u.UID, u.UID)
		}
		return err
	}))
	return c
}
