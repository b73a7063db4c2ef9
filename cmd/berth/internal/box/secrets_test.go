package box

import (
	"os"
	"slices"
	"testing"
)

func TestBlanked(t *testing.T) {
	const before = "root:$6$salt$hash:20000:0:99999:7:::\nlocked:!:1::::::\nwas:!$y$j9T$x:1::::::\nnone::1::::::\nstar:*:1\nbroken\ngroup:$1$a:root:user\n"
	const after = "root:*:20000:0:99999:7:::\nlocked:!:1::::::\nwas:*:1::::::\nnone::1::::::\nstar:*:1\nbroken\ngroup:*:root:user\n"
	if got := string(blanked([]byte(before))); got != after {
		t.Errorf("%q, want %q", got, after)
	}
}

// What is hidden is what exists and was not asked for, wherever it is to be seen.
func TestHide(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"/.ssh", "/.aws", "/.kube", "/keys"} {
		if err := os.Mkdir(home+name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"/.ssh/id", "/.ssh/known_hosts", "/.aws/credentials", "/keys/token", "/.netrc"} {
		if err := os.WriteFile(home+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("keys", home+"/.azure"); err != nil {
		t.Fatal(err)
	}
	ssh, aws, azure, netrc := home+"/.ssh", home+"/.aws", home+"/keys", home+"/.netrc"
	for name, test := range map[string]struct {
		o              Options
		hidden, masked []string
		empty          string
	}{
		"all": {Options{}, []string{ssh, aws, azure, netrc}, []string{ssh, aws, azure, netrc}, ""},
		"one is shown, and two as paths": {Options{Show: []string{aws}, Binds: []Bind{{Source: netrc, Path: "/x"}, {Source: azure, Path: azure, Writable: true}}},
			[]string{ssh}, []string{ssh}, ""},
		"all are shown": {Options{Show: []string{"/"}}, nil, nil, ""},
		"a home elsewhere": {Options{Show: []string{azure}, Binds: []Bind{{Source: home, Path: "/data", Writable: true}}},
			[]string{ssh, aws, netrc}, []string{"/data/.ssh", ssh, "/data/.aws", aws, "/data/.netrc", netrc}, ""},
		"a file of a directory": {Options{Show: []string{ssh + "/known_hosts"}}, []string{ssh, aws, azure, netrc}, []string{aws, azure, netrc}, ssh},
		"another root":          {Options{Rootfs: "/usr"}, nil, nil, ""},
	} {
		mounts, masked := test.o.hide(&Caller{UID: 54321, Dir: "/usr", Environ: []string{"HOME=" + home}})
		if !slices.Equal(test.o.Hidden, test.hidden) || !slices.Equal(masked, test.masked) {
			t.Errorf("%s: hidden %q, masked %q", name, test.o.Hidden, masked)
		}
		if len(mounts) > 1 || len(mounts) == 1 != (test.empty != "") || len(mounts) == 1 && mounts[0].Destination != test.empty {
			t.Errorf("%s: %+v", name, mounts)
		}
	}
}
