package plan

import (
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

func TestMountOptionsAreSorted(t *testing.T) {
	if !slices.IsSortedFunc(mountOptions[:], func(a, b mountOption) int {
		switch {
		case a.word < b.word:
			return -1
		case a.word > b.word:
			return 1
		}
		t.Errorf("%q is there twice", a.word)
		return 0
	}) {
		t.Error("the table is not sorted: the search in it fails")
	}
}

// A word that we say we understand must not reach the file system as a parameter of its own, unless
// it is one of the few that every file system has.
func TestMountOptionsAreUnderstood(t *testing.T) {
	for _, word := range MountOptions() {
		var m Mount
		m.option(word)
		switch word {
		case "sync", "dirsync", "lazytime", "nolazytime":
			if !slices.Equal(m.Params, []string{word}) {
				t.Errorf("%s: parameters %q", word, m.Params)
			}
			continue
		}
		if len(m.Params) != 0 {
			t.Errorf("%s: taken for a parameter of the file system", word)
		}
	}
}

// The words of the spec's table (config.md, "Linux mount options").
func TestMountOptionsOfTheSpec(t *testing.T) {
	known := MountOptions()
	for _, word := range []string{"async", "atime", "bind", "defaults", "dev", "diratime", "dirsync", "exec", "iversion", "lazytime", "loud",
		"mand", "noatime", "nodev", "nodiratime", "noexec", "noiversion", "nolazytime", "nomand", "norelatime", "nostrictatime", "nosuid",
		"nosymfollow", "private", "ratime", "rbind", "rdev", "rdiratime", "relatime", "remount", "rexec", "rnoatime", "rnodev", "rnodiratime", "rnoexec",
		"rnorelatime", "rnostrictatime", "rnosuid", "rnosymfollow", "ro", "rprivate", "rrelatime", "rro", "rrw", "rshared", "rslave", "rstrictatime",
		"rsuid", "rsymfollow", "runbindable", "rw", "shared", "silent", "slave", "strictatime", "suid", "symfollow", "sync", "tmpcopyup", "unbindable",
		"idmap", "ridmap"} {
		if !slices.Contains(known, word) {
			t.Errorf("%s is not understood", word)
		}
	}
}

func TestMountAttributes(t *testing.T) {
	const atime = unix.MOUNT_ATTR__ATIME
	for _, test := range []struct {
		words                        []string
		set, clear, recSet, recClear uint64
	}{
		{words: []string{"ro"}, set: unix.MOUNT_ATTR_RDONLY},
		{words: []string{"rw"}, clear: unix.MOUNT_ATTR_RDONLY},
		{words: []string{"ro", "rw"}, clear: unix.MOUNT_ATTR_RDONLY},
		{words: []string{"rw", "ro"}, set: unix.MOUNT_ATTR_RDONLY},
		{words: []string{"nosuid", "nodev", "noexec"}, set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC},
		{words: []string{"nosuid", "suid"}, clear: unix.MOUNT_ATTR_NOSUID},
		{words: []string{"dev", "exec"}, clear: unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC},
		{words: []string{"nodiratime"}, set: unix.MOUNT_ATTR_NODIRATIME},
		{words: []string{"diratime"}, clear: unix.MOUNT_ATTR_NODIRATIME},
		{words: []string{"nosymfollow"}, set: unix.MOUNT_ATTR_NOSYMFOLLOW},
		{words: []string{"symfollow"}, clear: unix.MOUNT_ATTR_NOSYMFOLLOW},
		{words: []string{"noatime"}, set: unix.MOUNT_ATTR_NOATIME, clear: atime},
		{words: []string{"strictatime"}, set: unix.MOUNT_ATTR_STRICTATIME, clear: atime},
		{words: []string{"relatime"}, clear: atime},
		{words: []string{"atime"}, clear: atime},
		{words: []string{"norelatime"}, clear: atime},
		{words: []string{"nostrictatime"}, clear: atime},
		// The last word about the access time holds, and leaves nothing of the others.
		{words: []string{"strictatime", "noatime"}, set: unix.MOUNT_ATTR_NOATIME, clear: atime},
		{words: []string{"noatime", "relatime"}, clear: atime},
		{words: []string{"rro"}, recSet: unix.MOUNT_ATTR_RDONLY},
		{words: []string{"rrw"}, recClear: unix.MOUNT_ATTR_RDONLY},
		{words: []string{"rro", "rrw"}, recClear: unix.MOUNT_ATTR_RDONLY},
		{words: []string{"rnosuid", "rnodev", "rnoexec", "rnosymfollow", "rnodiratime"},
			recSet: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NOSYMFOLLOW | unix.MOUNT_ATTR_NODIRATIME},
		{words: []string{"rsuid", "rdev", "rexec", "rsymfollow", "rdiratime"},
			recClear: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NOSYMFOLLOW | unix.MOUNT_ATTR_NODIRATIME},
		{words: []string{"rnoatime"}, recSet: unix.MOUNT_ATTR_NOATIME, recClear: atime},
		{words: []string{"rstrictatime"}, recSet: unix.MOUNT_ATTR_STRICTATIME, recClear: atime},
		{words: []string{"ratime"}, recClear: atime},
		{words: []string{"rrelatime"}, recClear: atime},
		{words: []string{"rnorelatime"}, recClear: atime},
		{words: []string{"rnostrictatime"}, recClear: atime},
		{words: []string{"ro", "rrw"}, set: unix.MOUNT_ATTR_RDONLY, recClear: unix.MOUNT_ATTR_RDONLY},
		{words: []string{"defaults", "async", "loud", "silent", "mand", "nomand", "iversion", "noiversion"}},
	} {
		var m Mount
		for _, word := range test.words {
			m.option(word)
		}
		if m.Set != test.set || m.Clear != test.clear || m.RecSet != test.recSet || m.RecClear != test.recClear {
			t.Errorf("%q: set %#x, clear %#x, recursively %#x and %#x", test.words, m.Set, m.Clear, m.RecSet, m.RecClear)
		}
		if len(m.Params) > 0 {
			t.Errorf("%q: parameters %q", test.words, m.Params)
		}
	}
}

func TestMountPropagation(t *testing.T) {
	for _, test := range []struct {
		word string
		flag uintptr
	}{
		{"shared", unix.MS_SHARED}, {"slave", unix.MS_SLAVE}, {"private", unix.MS_PRIVATE}, {"unbindable", unix.MS_UNBINDABLE},
		{"rshared", unix.MS_SHARED | unix.MS_REC}, {"rslave", unix.MS_SLAVE | unix.MS_REC},
		{"rprivate", unix.MS_PRIVATE | unix.MS_REC}, {"runbindable", unix.MS_UNBINDABLE | unix.MS_REC},
	} {
		var m Mount
		m.option(test.word)
		if !slices.Equal(m.Propagation, []uintptr{test.flag}) {
			t.Errorf("%s: %#x", test.word, m.Propagation)
		}
		if flag, ok := Propagation(test.word); !ok || flag != test.flag {
			t.Errorf("Propagation(%q) = %#x, %t", test.word, flag, ok)
		}
	}
	for _, word := range []string{"", "ro", "rrshared", "Shared", "tmpcopyup"} {
		if flag, ok := Propagation(word); ok {
			t.Errorf("Propagation(%q) = %#x", word, flag)
		}
	}
}

func TestMountParameters(t *testing.T) {
	var m Mount
	words := []string{"mode=1777", "size=64k", "rsize=1024", "rmode", "noacl", "RO", "sync", ""}
	for _, word := range words {
		m.option(word)
	}
	if !slices.Equal(m.Params, words) || m.Set|m.Clear|m.RecSet|m.RecClear != 0 {
		t.Errorf("%+v", m)
	}
}

func TestMounts(t *testing.T) {
	maps := []specs.LinuxIDMapping{{ContainerID: 0, HostID: 1000, Size: 1}}
	for _, test := range []struct {
		name   string
		in     specs.Mount
		userNS bool
		want   Mount
		err    string
	}{
		{name: "tmpfs", in: specs.Mount{Destination: "/tmp", Type: "tmpfs", Source: "x", Options: []string{"nosuid", "size=1m"}},
			want: Mount{Destination: "/tmp", Type: "tmpfs", Source: "x", Set: unix.MOUNT_ATTR_NOSUID, Params: []string{"size=1m"}}},
		{name: "relative", in: specs.Mount{Destination: "tmp/./a/../b/", Type: "tmpfs"}, want: Mount{Destination: "/tmp/b", Type: "tmpfs"}},
		{name: "upwards", in: specs.Mount{Destination: "/../../etc", Type: "tmpfs"}, want: Mount{Destination: "/etc", Type: "tmpfs"}},
		{name: "bind", in: specs.Mount{Destination: "/a", Source: "/src", Options: []string{"bind", "ro"}},
			want: Mount{Destination: "/a", Source: "/src", Bind: true, Set: unix.MOUNT_ATTR_RDONLY, Loosen: lockable &^ unix.MOUNT_ATTR_RDONLY}},
		{name: "bind with words of no use", in: specs.Mount{Destination: "/a", Source: "/src", Options: []string{"bind", "silent", "sync"}},
			want: Mount{Destination: "/a", Source: "/src", Bind: true, Loosen: lockable}},
		{name: "bind with other words", in: specs.Mount{Destination: "/a", Source: "/src", Options: []string{"bind", "defaults", "rro", "private"}},
			want: Mount{Destination: "/a", Source: "/src", Bind: true, RecSet: unix.MOUNT_ATTR_RDONLY, Propagation: []uintptr{unix.MS_PRIVATE}}},
		{name: "bind with a word that nobody knows", in: specs.Mount{Destination: "/a", Source: "/src", Options: []string{"bind", "nosiud"}}, err: `a bind mount has no option "nosiud"`},
		{name: "lists of words", in: specs.Mount{Destination: "/a", Type: "tmpfs", Options: []string{"", "ro,size=1m", `context="a:b:c1,c2",mode=700`, ","}},
			want: Mount{Destination: "/a", Type: "tmpfs", Set: unix.MOUNT_ATTR_RDONLY, Params: []string{"size=1m", `context="a:b:c1,c2"`, "mode=700"}}},
		{name: "names in an overlay", in: specs.Mount{Destination: "/a", Type: "overlay", Options: []string{`lowerdir=/a\\,ro`, `upperdir=/x\,y,userxattr`}},
			want: Mount{Destination: "/a", Type: "overlay", Set: unix.MOUNT_ATTR_RDONLY, Params: []string{`lowerdir=/a\\`, `upperdir=/x\,y`, "userxattr"}}},
		{name: "bind with a type", in: specs.Mount{Destination: "/a", Type: "none", Source: "/src", Options: []string{"rbind", "rslave"}},
			want: Mount{Destination: "/a", Source: "/src", Bind: true, Recursive: true, Propagation: []uintptr{unix.MS_SLAVE | unix.MS_REC}}},
		{name: "bind by type", in: specs.Mount{Destination: "/a", Type: "bind", Source: "/src"}, want: Mount{Destination: "/a", Source: "/src", Bind: true}},
		{name: "relative source", in: specs.Mount{Destination: "/a", Source: "data", Options: []string{"bind"}},
			want: Mount{Destination: "/a", Source: "/bundle/data", Bind: true}},
		{name: "bind of nothing", in: specs.Mount{Destination: "/a", Options: []string{"bind"}}, err: "a bind mount needs a source"},
		{name: "no type", in: specs.Mount{Destination: "/a", Source: "x"}, err: "a mount that is no bind mount needs a type"},
		{name: "remount", in: specs.Mount{Destination: "/a", Options: []string{"remount", "ro"}},
			want: Mount{Destination: "/a", Remount: true, Set: unix.MOUNT_ATTR_RDONLY}},
		{name: "remount of a bind mount", in: specs.Mount{Destination: "/a", Source: "tmpfs", Type: "bind", Options: []string{"remount", "bind", "ro"}},
			want: Mount{Destination: "/a", Remount: true, Set: unix.MOUNT_ATTR_RDONLY}},
		{name: "cgroup", in: specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup"}, want: Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC, Cgroup: true}},
		{name: "cgroup2", in: specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup2"}, want: Mount{Destination: "/sys/fs/cgroup", Type: "cgroup2", Set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC, Cgroup: true}},
		{name: "cgroup with programs", in: specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Options: []string{"exec"}},
			want: Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Clear: unix.MOUNT_ATTR_NOEXEC, Cgroup: true}},
		{name: "copy up", in: specs.Mount{Destination: "/var", Type: "tmpfs", Options: []string{"tmpcopyup"}}, want: Mount{Destination: "/var", Type: "tmpfs", CopyUp: true}},
		{name: "copy up elsewhere", in: specs.Mount{Destination: "/var", Type: "proc", Options: []string{"tmpcopyup"}}, err: "tmpcopyup is for tmpfs only"},
		{name: "over the root", in: specs.Mount{Destination: "/..", Type: "tmpfs"}, err: "the root of the container can't be mounted over; set root.path instead"},
		{name: "idmap of the container", userNS: true, in: specs.Mount{Destination: "/a", Source: "/src", Options: []string{"bind", "idmap"}},
			want: Mount{Destination: "/a", Source: "/src", Bind: true, IDMap: &IDMap{}}},
		{name: "idmap without any", in: specs.Mount{Destination: "/a", Source: "/src", Options: []string{"bind", "idmap"}},
			err: "idmap without uidMappings and gidMappings needs a container with a user namespace"},
		{name: "own idmap", in: specs.Mount{Destination: "/a", Source: "/src", Options: []string{"rbind", "ridmap"}, UIDMappings: maps, GIDMappings: maps},
			want: Mount{Destination: "/a", Source: "/src", Bind: true, Recursive: true, IDMap: &IDMap{UID: maps, GID: maps, Recursive: true}}},
		{name: "mappings say idmap", in: specs.Mount{Destination: "/a", Source: "/src", Options: []string{"bind"}, UIDMappings: maps, GIDMappings: maps},
			want: Mount{Destination: "/a", Source: "/src", Bind: true, IDMap: &IDMap{UID: maps, GID: maps}}},
		{name: "idmap of a file system", userNS: true, in: specs.Mount{Destination: "/a", Type: "tmpfs", Options: []string{"idmap"}}, err: "only bind mounts can be idmapped"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, problems := mountsOf([]specs.Mount{test.in}, "/bundle", "/bundle/rootfs", test.userNS)
			if test.err != "" {
				if len(problems) != 1 || problems[0].Pointer != "/mounts/0" || problems[0].Message != test.err {
					t.Errorf("problems %v, want %q", problems, test.err)
				}
				return
			}
			if len(problems) != 0 || len(got) != 1 {
				t.Fatalf("%v, problems %v", got, problems)
			}
			test.want.At = "/mounts/0"
			same(t, got[0], test.want)
		})
	}
}
