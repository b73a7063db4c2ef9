package rootfs

import "testing"

func TestLongestMount(t *testing.T) {
	const table = "1 0 8:1 / / rw - ext4 /dev/sda rw\n" +
		"2 1 8:2 / /srv rw - ext4 /dev/sdb rw\n" +
		"3 2 8:3 / /srv/with\\040space rw - ext4 /dev/sdc rw\n" +
		"short\n"
	for path, want := range map[string]string{
		"/srv": "/srv", "/srvx": "/", "/srv/a/b": "/srv", "/srv/with space/x": "/srv/with space", "/other": "/",
	} {
		if got := longestMount(table, path); got != want {
			t.Errorf("%s lies on %s, want %s", path, got, want)
		}
	}
}

func FuzzLongestMount(f *testing.F) {
	f.Add("1 0 8:1 / / rw - ext4 /dev/sda rw\n", "/x")
	f.Add("1 0 8:1 / /\\04 rw", "/")
	f.Fuzz(func(t *testing.T, table, path string) {
		if longestMount(table, path) == "" {
			t.Error("no mount point at all")
		}
	})
}
