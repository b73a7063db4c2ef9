package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/test/harness"
)

// imageBox prepares a box of an image, with a cache of the test's own.
func imageBox(b *harness.Box, image string, args ...string) *harness.Command {
	return box(b, append([]string{"--image-cache", b.Path("cache"), "--image", image}, args...)...)
}

// asBoth runs a test as root and as an ordinary user.
func asBoth(t *testing.T, test func(t *testing.T, b *harness.Box, root bool)) {
	t.Helper()
	for _, who := range []string{"root", "ordinary user"} {
		t.Run(who, func(t *testing.T) {
			b := harness.New(t)
			if who != "root" {
				b.AsOrdinaryUser(t, 0)
			}
			test(t, b, who == "root")
		})
	}
}

func tarred(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("tar", args...).CombinedOutput(); err != nil {
		t.Fatalf("tar %q: %v: %s", args, err, out)
	}
}

// hostArchive is a root file system made of programs of this machine, with the libraries that they
// say they need.
func hostArchive(t *testing.T, b *harness.Box, programs ...string) string {
	t.Helper()
	names := map[string]bool{"/etc/os-release": true, "/etc/passwd": true, "/etc/group": true}
	for _, p := range programs {
		names[p] = true
		out, err := exec.Command("ldd", p).Output()
		if err != nil {
			harness.Skip(t, "needs ldd for what %s is linked with: %v", p, err)
		}
		for _, word := range strings.Fields(string(out)) {
			if filepath.IsAbs(word) {
				names[word] = true
			}
		}
	}
	file := b.Path("host.tar")
	args := []string{"-C", "/", "-chf", file}
	for name := range names {
		args = append(args, strings.TrimPrefix(name, "/"))
	}
	tarred(t, args...)
	return file
}

func TestBoxImageOfHostFiles(t *testing.T) {
	asBoth(t, func(t *testing.T, b *harness.Box, root bool) {
		image := hostArchive(t, b, "/bin/sh", "/bin/cat", "/usr/bin/id", "/bin/ls")
		want, err := os.ReadFile("/etc/os-release")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if r := imageBox(b, image, "--", "cat", "/etc/os-release").Run().OK(t); r.Stdout != string(want) || r.Stderr != "" {
				t.Errorf("%q, want %q; %s", r.Stdout, want, r.Stderr)
			}
		}
		// Nothing else of the machine is there, and what is written is gone.
		r := imageBox(b, image, "--", "sh", "-c", "id -u; ls -d /home /var /root; echo x > /etc/new").Run().OK(t)
		if r.Stdout != "0\n" {
			t.Errorf("%q", r.Stdout)
		}
		imageBox(b, image, "--", "ls", "/etc/new").Run().Exits(t, 2)
	})
}

// layoutOf makes an OCI layout of directories, a layer each, without any tool but tar.
func layoutOf(t *testing.T, b *harness.Box, config string, layers ...string) string {
	t.Helper()
	top := b.Path("layout")
	if err := os.MkdirAll(top+"/blobs/sha256", 0o755); err != nil {
		t.Fatal(err)
	}
	blob := func(name string) (digest string, size int64) {
		out, err := exec.Command("sha256sum", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		digest = strings.Fields(string(out))[0]
		info, err := os.Stat(name)
		if err == nil {
			err = os.Rename(name, top+"/blobs/sha256/"+digest)
		}
		if err != nil {
			t.Fatal(err)
		}
		return "sha256:" + digest, info.Size()
	}
	text := func(content string) string { return b.WriteFile("document", content, 0o644) }
	var diffs, list []string
	for i, dir := range layers {
		plain := b.Path("layer")
		tarred(t, "-C", dir, "-cf", plain, ".")
		packed := plain
		if i == 0 {
			tarred(t, "-C", dir, "-czf", b.Path("layer.gz"), ".")
			packed = b.Path("layer.gz")
		}
		out, err := exec.Command("sh", "-c", `gzip -cdf "$1" | sha256sum`, "", packed).Output()
		if err != nil {
			t.Fatal(err)
		}
		diffs = append(diffs, `"sha256:`+strings.Fields(string(out))[0]+`"`)
		digest, size := blob(packed)
		list = append(list, fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":%q,"size":%d}`, digest, size))
	}
	digest, size := blob(text(`{"os":"linux","config":` + config + `,"rootfs":{"type":"layers","diff_ids":[` + strings.Join(diffs, ",") + `]}}`))
	digest, size = blob(text(fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},"layers":[%s]}`,
		digest, size, strings.Join(list, ","))))
	b.WriteFile("layout/index.json", fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":%q,"size":%d}]}`, digest, size), 0o644)
	b.WriteFile("layout/oci-layout", `{"imageLayoutVersion":"1.0.0"}`, 0o644)
	return top
}

// What an image says of its command holds as it does for docker, and options go before it.
func TestBoxImageConfig(t *testing.T) {
	asBoth(t, func(t *testing.T, b *harness.Box, root bool) {
		base := b.Container().Rootfs()
		upper := b.Path("upper")
		if err := os.Mkdir(base+"/owned", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(base+"/owned", 1000, 1000); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"bin/", "home/user/"} {
			b.WriteFile("upper/"+name+".wh.gone", "", 0o644)
			if err := os.WriteFile(base+"/"+name+"gone", nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		b.WriteFile("upper/entry", "#!/bin/sh\n"+`echo "$(id -u):$(id -g) $(pwd) $A $B $HOME ${SECRET-none} ${LANG-none}: $*"; ls /bin/gone /home/user/gone 2>/dev/null; echo $PATH`+"\n", 0o755)
		image := layoutOf(t, b, `{"Env":["PATH=/bin","A=image","B=image","SECRET"],"User":"user","Entrypoint":["/entry","first"],"Cmd":["usual"],"WorkingDir":"/work/dir"}`, base, upper)
		for _, test := range []struct {
			options, args []string
			want          string
		}{
			{nil, nil, "1000:1001 /work/dir image image /home/user none none: first usual\n/bin\n"},
			{[]string{"-e", "B=given", "-w", "/etc", "-u", "0"}, []string{"given"}, "0:0 /etc image given /root none none: first given\n/bin\n"},
			{[]string{"--entrypoint", "echo"}, []string{"-n", "x"}, "x"},
			{[]string{"--entrypoint", ""}, []string{"/entry"}, "1000:1001 /work/dir image image /home/user none none: \n/bin\n"},
			{[]string{"--entrypoint", "/entry"}, nil, "1000:1001 /work/dir image image /home/user none none: \n/bin\n"},
		} {
			c := imageBox(b, image, slices.Concat(test.options, []string{"--"}, test.args)...)
			c.Env = []string{"SECRET=s", "A=host", "LANG=xx", "HOME=/host"}
			if r := c.Run().OK(t); r.Stdout != test.want {
				t.Errorf("%q %q: %q, want %q; %s", test.options, test.args, r.Stdout, test.want, r.Stderr)
			}
		}
		r := imageBox(b, image, "--net", "host", "--entrypoint", "cat", "--", "/etc/resolv.conf", "/etc/hosts").Run().OK(t)
		want, err := exec.Command("cat", "/etc/resolv.conf", "/etc/hosts").Output()
		if err != nil || r.Stdout != string(want) {
			t.Errorf("with the host's network %q is not %q; %v", r.Stdout, want, err)
		}
		// Whose the files are: as the image says to root; all the user's own to a user, who is one.
		r = imageBox(b, image, "--entrypoint", "stat", "-u", "0", "--", "-c", "%u", "/owned").Run().OK(t)
		if want := map[bool]string{true: "1000\n", false: "0\n"}[root]; r.Stdout != want {
			t.Errorf("/owned belongs to %q, want %q", r.Stdout, want)
		}
		r = imageBox(b, image, "--diff", "--entrypoint", "sh", "-u", "0", "--", "-c", "echo more >> /entry; rm /bin/ls").Run().OK(t)
		for _, want := range []string{"/bin/ls -> /bin/busybox\n", "/entry (was ", "0 added, 1 modified, 1 deleted"} {
			if !strings.Contains(r.Stderr, want) {
				t.Errorf("%q, without %q", r.Stderr, want)
			}
		}
	})
}

// Boxes that are killed as they unpack an image leave nothing that is taken for it, and those that
// unpack it at once don't disturb each other.
func TestBoxImageKilled(t *testing.T) {
	b := harness.NewForAnyone(t)
	base := b.Container().Rootfs()
	if err := os.WriteFile(base+"/zeros", make([]byte, 64<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	image := b.Path("image.tar")
	tarred(t, "-C", base, "-cf", image, "--sort=name", ".")
	first := imageBox(b, image, "--", "true").Start()
	for begun := false; !begun && !first.Ended(); {
		entries, _ := os.ReadDir(b.Path("cache/new"))
		begun = len(entries) > 0
		time.Sleep(time.Millisecond)
	}
	first.Signal(os.Kill)
	first.Wait()
	var running []*harness.Running
	for range 3 {
		running = append(running, imageBox(b, image, "--", "wc", "-c", "/zeros").Start())
	}
	for _, r := range running {
		if got := r.Wait().OK(t); got.Stdout != "67108864 /zeros\n" {
			t.Errorf("%q, %s", got.Stdout, got.Stderr)
		}
	}
	for dir, most := range map[string]int{"new": 0, "roots": 1} {
		entries, err := os.ReadDir(b.Path("cache/" + dir))
		if err != nil || len(entries) > most {
			t.Errorf("%s: %v, %v", dir, entries, err)
		}
	}
}

// Ctrl-C ends the waiting for another box, of which a terminal is told.
func TestBoxImageInterrupted(t *testing.T) {
	b := harness.NewForAnyone(t)
	b.WriteFile("cache/locks/.keep", "", 0o600)
	image := b.Path("image.tar")
	tarred(t, "-C", b.Container().Rootfs(), "-cf", image, ".")
	info, err := exec.Command("stat", "-c", "%D-%i", image).Output()
	if err != nil {
		t.Fatal(err)
	}
	// Another box is at it.
	lock := b.Path("cache/locks/" + strings.TrimSpace(string(info)))
	holder := exec.Command("flock", "--no-fork", lock, "sleep", "1000")
	if err := holder.Start(); err != nil {
		harness.Skip(t, "needs flock: %v", err)
	}
	defer func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	}()
	for {
		if err := exec.Command("flock", "-n", lock, "true").Run(); err != nil {
			break
		}
	}
	term := b.Terminal()
	c := imageBox(b, image, "--", "true")
	c.Stderr = term.Slave
	r := c.Start()
	term.Until("another box is unpacking this image, ")
	r.Signal(os.Interrupt)
	term.Until("image.tar: interrupted")
	r.Wait().Exits(t, 125)
}
