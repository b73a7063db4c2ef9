package rootfs_test

import (
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/rootfs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

func TestAccounts(t *testing.T) {
	files := map[string]string{
		"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1001:x:/home/user:/bin/sh\n",
		"/etc/group":  "wheel:x:10:root,user\nplayers:x:2000:user\n",
	}
	known := &rootfs.Accounts{Of: "the container", Open: func(name string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(files[name])), nil
	}}
	nobody := &rootfs.Accounts{Of: "the container", Open: func(string) (io.ReadCloser, error) { return nil, fs.ErrNotExist }}
	broken := &rootfs.Accounts{Of: "the container", Open: func(string) (io.ReadCloser, error) { return nil, fs.ErrPermission }}
	base := specs.User{UID: 1, GID: 2, AdditionalGids: []uint32{3}}
	for _, test := range []struct {
		of       *rootfs.Accounts
		text     string
		uid, gid uint32
		groups   []uint32
		home     string
		err      string
	}{
		{known, "user", 1000, 1001, []uint32{10, 2000}, "/home/user", ""},
		{known, "1000", 1000, 1001, []uint32{10, 2000}, "/home/user", ""},
		{known, "user:wheel", 1000, 10, nil, "/home/user", ""},
		{known, "1000:4", 1000, 4, nil, "/home/user", ""},
		{known, "4242", 4242, 2, []uint32{3}, "", ""},
		{known, "4242:5", 4242, 5, nil, "", ""},
		{known, "other", 0, 0, nil, "", `user "other": no such entry in the container's /etc/passwd (a number needs none)`},
		{known, "4242:other", 0, 0, nil, "", `group "other": no such entry in the container's /etc/group (a number needs none)`},
		{nobody, "4242", 4242, 2, []uint32{3}, "", ""},
		{nobody, "4242:5", 4242, 5, nil, "", ""},
		{nobody, "user", 0, 0, nil, "", "the container has no /etc/passwd"},
		{broken, "4242", 0, 0, nil, "", "permission denied"},
		{broken, "4242:5", 4242, 5, nil, "", ""},
	} {
		user, home, err := test.of.User(test.text, base)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %v, want %q", test.text, err, test.err)
			}
			continue
		}
		if err != nil || user.UID != test.uid || user.GID != test.gid || !slices.Equal(user.AdditionalGids, test.groups) || home != test.home {
			t.Errorf("%s: %+v, %q, %v", test.text, user, home, err)
		}
	}
}
