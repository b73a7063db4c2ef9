package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// What podman saves, in each of its forms, runs as it runs in podman; skopeo's copies do, too.
func TestBoxImageOfPodman(t *testing.T) {
	podman := harness.NeedTool(t, "podman", "podman")
	b := harness.New(t)
	if os.Geteuid() != 0 {
		harness.Skip(t, "needs root for a store of podman's own")
	}
	top := t.TempDir()
	store := []string{"--root", top + "/store", "--runroot", top + "/run", "--tmpdir", top + "/tmp", "--storage-driver", "vfs"}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "TMPDIR="+top)
		out, err := cmd.Output()
		if err != nil {
			harness.Skip(t, "needs a podman or skopeo that can %q: %v: %s", args, err, err.(*exec.ExitError).Stderr)
		}
		return string(out)
	}
	call := func(args ...string) string {
		t.Helper()
		return run(append(append([]string{podman}, store...), args...)...)
	}
	archive := b.Path("root.tar")
	tarred(t, "-C", b.Container().Rootfs(), "-cf", archive, ".")
	call("import", "-q", "--change", `ENTRYPOINT ["/bin/sh","-c"]`, "--change", `CMD ["echo $A $(id -u) $(pwd)"]`, "--change", "ENV A=podman", "--change", "USER user", "--change", "WORKDIR /tmp", archive, "test/one:tag")
	call("save", "-q", "--format", "docker-archive", "-o", b.Path("docker.tar"), "test/one:tag")
	call("save", "-q", "--format", "oci-archive", "-o", b.Path("oci.tar"), "test/one:tag")
	images := []string{"docker.tar", "docker.tar:one:tag", "oci.tar"}
	if skopeo, err := exec.LookPath("skopeo"); err == nil {
		run(skopeo, "copy", "-q", "docker-archive:"+b.Path("docker.tar"), "oci:"+b.Path("layout")+":named")
		images = append(images, "layout", "layout:named")
	}
	for _, image := range images {
		if r := imageBox(b, b.Path(image)).Run().OK(t); r.Stdout != "podman 1000 /tmp\n" {
			t.Errorf("%s: %q, %s", image, r.Stdout, r.Stderr)
		}
	}
	// All have the same layers.
	if roots, err := filepath.Glob(b.Path("cache/roots/*")); err != nil || len(roots) != 1 {
		t.Errorf("%q, %v", roots, err)
	}
}
