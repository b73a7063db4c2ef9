package container

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	"golang.org/x/sys/unix"
)

func TestRemountFlags(t *testing.T) {
	const bind = unix.MS_REMOUNT | unix.MS_BIND
	for _, c := range []struct {
		have   string
		change compile.MountChange
		want   uint64
	}{
		{"rw,relatime", compile.MountChange{Set: unix.MOUNT_ATTR_RDONLY}, unix.MS_RDONLY | unix.MS_RELATIME},
		{"ro,nosuid,nodev,noexec,relatime", compile.MountChange{Clear: unix.MOUNT_ATTR_NOEXEC},
			unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_RELATIME},
		{"rw", compile.MountChange{Set: unix.MOUNT_ATTR_NOSUID}, unix.MS_NOSUID | unix.MS_STRICTATIME},
		{"rw,relatime", compile.MountChange{Set: unix.MOUNT_ATTR_NOATIME, Clear: unix.MOUNT_ATTR__ATIME}, unix.MS_NOATIME},
		{"rw,noatime,nodiratime", compile.MountChange{Clear: unix.MOUNT_ATTR__ATIME}, unix.MS_RELATIME | unix.MS_NODIRATIME},
		{"rw,noatime", compile.MountChange{Set: unix.MOUNT_ATTR_STRICTATIME, Clear: unix.MOUNT_ATTR__ATIME}, unix.MS_STRICTATIME},
		{"rw,relatime", compile.MountChange{Set: unix.MOUNT_ATTR_NOSYMFOLLOW}, unix.MS_NOSYMFOLLOW | unix.MS_RELATIME},
	} {
		if got := remountFlags(c.have, c.change); got != c.want|bind {
			t.Errorf("%s changed by %+v: %#x, want %#x", c.have, c.change, got, c.want|bind)
		}
	}
}

func TestRemountSteps(t *testing.T) {
	// The third mount stands before the one that it lies on, as after a move.
	mounts := mountinfo.Parse("10 1 0:1 / /r/x rw,relatime - a a rw\n30 20 0:3 / /r/x/a/b rw,noexec - c c rw\n" +
		"20 10 0:2 / /r/x/a ro - b b rw\n40 1 0:4 / /r/y rw - d d rw\n")
	readonly := compile.MountChange{Set: unix.MOUNT_ATTR_RDONLY, Recursive: true}
	steps, err := remountSteps(mounts, 10, readonly)
	var paths []string
	for _, s := range steps {
		paths = append(paths, s.Path)
		if s.Flags&unix.MS_RDONLY == 0 {
			t.Errorf("%q is not read-only then", s.Path)
		}
	}
	if err != nil || !slices.Equal(paths, []string{"", "a", "a/b"}) {
		t.Errorf("%q, %v", paths, err)
	}
	if steps, err := remountSteps(mounts, 10, compile.MountChange{Set: unix.MOUNT_ATTR_RDONLY}); len(steps) != 1 || err != nil {
		t.Errorf("one mount alone: %v, %v", steps, err)
	}
	steps, err = remountSteps(mounts, 10, compile.MountChange{Propagation: unix.MS_SLAVE, Recursive: true})
	if err != nil || len(steps) != 1 || steps[0].Flags != unix.MS_SLAVE|unix.MS_REC {
		t.Errorf("propagation: %v, %v", steps, err)
	}
	if _, err := remountSteps(mounts, 99, readonly); err == nil {
		t.Error("a mount that is not there")
	}
	covered := append(mounts, mountinfo.Entry{ID: 50, Parent: 20, Point: "/r/x/a"})
	if _, err := remountSteps(covered, 10, readonly); err == nil || !strings.Contains(err.Error(), "/r/x/a") {
		t.Errorf("a mount that lies under another: %v", err)
	}
}
