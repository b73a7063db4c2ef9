package plan

import (
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/spec"
	"golang.org/x/sys/unix"
)

func TestLandlockAnnotations(t *testing.T) {
	l, problems := landlockOf(map[string]string{
		"other":                         "x",
		spec.LandlockPrefix + "read":    "/etc:/usr/share/",
		spec.LandlockPrefix + "execute": "/usr",
		spec.LandlockPrefix + "write":   "/tmp",
		"run.berth.landlocked.is.not":   "ours",
	}, 3)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := []struct {
		path    string
		has, no uint64
	}{
		{"/usr", unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE, unix.LANDLOCK_ACCESS_FS_WRITE_FILE},
		{"/etc", unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR, unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE},
		{"/usr/share", unix.LANDLOCK_ACCESS_FS_READ_FILE, unix.LANDLOCK_ACCESS_FS_EXECUTE},
		{"/tmp", unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER, unix.LANDLOCK_ACCESS_FS_EXECUTE},
	}
	if len(l.Rules) != len(want) {
		t.Fatalf("rules %+v", l.Rules)
	}
	for i, w := range want {
		r := l.Rules[i]
		if r.Path != w.path || r.Access&w.has != w.has || r.Access&w.no != 0 || r.Access&^l.Handled != 0 {
			t.Errorf("rule %d is %+v, want %+v", i, r, w)
		}
	}
}

// The kernel refuses rights that it does not know (EINVAL).
func TestLandlockByABI(t *testing.T) {
	all := map[string]string{spec.LandlockPrefix + "write": "/"}
	for abi, last := range map[int]uint64{
		1: unix.LANDLOCK_ACCESS_FS_MAKE_SYM, 2: unix.LANDLOCK_ACCESS_FS_REFER, 3: unix.LANDLOCK_ACCESS_FS_TRUNCATE,
		4: unix.LANDLOCK_ACCESS_FS_TRUNCATE, 5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, 99: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
	} {
		l, problems := landlockOf(all, abi)
		if len(problems) > 0 || l.Handled != last<<1-1 || l.Rules[0].Access&^l.Handled != 0 {
			t.Errorf("ABI %d: %x, %v; want all up to %x", abi, l.Handled, problems, last)
		}
	}
	if l, problems := landlockOf(map[string]string{"a": "b"}, 0); l != nil || problems != nil {
		t.Errorf("no annotations: %v, %v", l, problems)
	}
}

func TestLandlockMistakes(t *testing.T) {
	for _, c := range []struct {
		word, value, want string
		abi               int
	}{
		{"reed", "/etc", `no right "reed"`, 3},
		{"read", "etc", `found "etc"`, 3},
		{"read", "/etc:", `found ""`, 3},
		{"read", "", `found ""`, 0},
		{"read", "/etc", "the kernel has no Landlock", 0},
	} {
		_, problems := landlockOf(map[string]string{spec.LandlockPrefix + c.word: c.value}, c.abi)
		if len(problems) != 1 || !strings.Contains(problems[0].Message, c.want) || !strings.Contains(problems[0].Pointer, "/annotations/"+spec.LandlockPrefix) {
			t.Errorf("%s=%s: %+v, want %s", c.word, c.value, problems, c.want)
		}
	}
}
