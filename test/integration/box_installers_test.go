package integration

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// changedBy runs an installer in a box, as root, and is what --diff says of it.
func changedBy(t *testing.T, b *harness.Box, args ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		harness.Skip(t, "needs root, as installers do")
	}
	r := box(b, append([]string{"--diff=json:diff.json", "--save", "saved.tar", "--"}, args...)...).Run()
	if r.Code != 0 {
		t.Fatalf("%q: %d\n%s%s", args, r.Code, r.Stdout, r.Stderr)
	}
	text := box(b, "--on", "saved.tar", "--diff", "--", "/bin/true").Run().OK(t).Stderr
	if !strings.Contains(readFile(t, b.Path("diff.json")), `"changes":[`) {
		t.Errorf("%.300s", readFile(t, b.Path("diff.json")))
	}
	return text
}

// expectChanges looks for lines of a diff, and for nothing of them on the machine.
func expectChanges(t *testing.T, diff string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !regexp.MustCompile("(?m)^" + line + "$").MatchString(diff) {
			t.Errorf("no line is like %s:\n%s", line, diff)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^A .* (/\S+)`).FindAllStringSubmatch(diff, -1) {
		if _, err := os.Lstat(m[1]); err == nil {
			t.Errorf("%s is on the machine", m[1])
		}
	}
}

func TestBoxDiffOfMakeInstall(t *testing.T) {
	harness.NeedTool(t, "make", "make")
	b := harness.New(t)
	b.WriteFile("Makefile", "install:\n\tinstall -D -m 750 tool /usr/local/bin/berth-box-tool\n\tinstall -D -m 644 tool /usr/local/berth-box-share/tool\n"+
		"\tln -s berth-box-tool /usr/local/bin/berth-box-alias\n\techo more >> /etc/hosts\n", 0o644)
	b.WriteFile("tool", "#!/bin/sh\n", 0o755)
	diff := changedBy(t, b, "make", "install")
	expectChanges(t, diff, `A -rwxr-x--- 0:0 +10B /usr/local/bin/berth-box-tool`, `A drwxr-xr-x 0:0 +/usr/local/berth-box-share/`, `A -rw-r--r-- 0:0 +10B /usr/local/berth-box-share/tool`,
		`A lrwxrwxrwx 0:0 +/usr/local/bin/berth-box-alias -> berth-box-tool`, `M -\S+ \d+:\d+ +\S+ /etc/hosts \(was \S+\)`, `4 added, 1 modified, 0 deleted; .*`)
}

func TestBoxDiffOfApt(t *testing.T) {
	harness.NeedTool(t, "dpkg-deb", "dpkg")
	harness.NeedTool(t, "apt-get", "apt")
	b := harness.New(t)
	b.WriteFile("deb/DEBIAN/control", "Package: berth-box-test\nVersion: 1\nArchitecture: all\nMaintainer: None <none@example.test>\nDescription: nothing\n", 0o644)
	b.WriteFile("deb/usr/bin/berth-box-test", "#!/bin/sh\necho installed\n", 0o755)
	b.WriteFile("deb/DEBIAN/postinst", "#!/bin/sh\necho x > /var/lib/berth-box-test\n", 0o755)
	for _, args := range [][]string{{"dpkg-deb", "--root-owner-group", "--build", "deb", "test.deb"}, {"apt-get", "--simulate", "install", "./test.deb"}} {
		c := exec.Command(args[0], args[1:]...)
		c.Dir = b.Dir
		if out, err := c.CombinedOutput(); err != nil {
			harness.Skip(t, "%s: %s", args, out)
		}
	}
	diff := changedBy(t, b, "apt-get", "-y", "-q", "install", "./test.deb")
	expectChanges(t, diff, `A -rwxr-xr-x 0:0 +25B /usr/bin/berth-box-test`, `A -rw-r--r-- 0:0 +2B /var/lib/berth-box-test`, `A -rw-r--r-- .* /var/lib/dpkg/info/berth-box-test.list`,
		`M -rw-r--r-- .* /var/lib/dpkg/status \(was .*\)`)
	if r := box(b, "--on", "saved.tar", "--", "sh", "-c", "berth-box-test; dpkg-query -W berth-box-test").Run().OK(t); r.Stdout != "installed\nberth-box-test\t1\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func TestBoxDiffOfPip(t *testing.T) {
	b := harness.New(t)
	wheel, err := os.Create(b.Path("berth_box_test-1-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(wheel)
	for name, text := range map[string]string{
		"berth_box_test.py":                   "print('imported')\n",
		"berth_box_test-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: berth-box-test\nVersion: 1\n",
		"berth_box_test-1.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"berth_box_test-1.dist-info/RECORD":   "berth_box_test.py,,\nberth_box_test-1.dist-info/METADATA,,\nberth_box_test-1.dist-info/WHEEL,,\nberth_box_test-1.dist-info/RECORD,,\n",
	} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	wheel.Close()
	pip := []string{"env", "PIP_BREAK_SYSTEM_PACKAGES=1", "PIP_NO_INPUT=1", "python3", "-m", "pip", "install", "--no-index", "--no-cache-dir"}
	probe := exec.Command(pip[0], append(pip[1:], "--dry-run", wheel.Name())...)
	if out, err := probe.CombinedOutput(); err != nil {
		harness.Skip(t, "needs pip, with --dry-run: %s", out)
	}
	diff := changedBy(t, b, append(pip, "./"+filepath.Base(wheel.Name()))...)
	expectChanges(t, diff, `A -rw-r--r-- 0:0 +18B /\S*/berth_box_test.py`, `A drwxr-xr-x 0:0 +/\S*/berth_box_test-1.dist-info/`, `A -rw-r--r-- .* /\S*/berth_box_test-1.dist-info/INSTALLER`)
	if r := box(b, "--on", "saved.tar", "--", "python3", "-c", "import berth_box_test").Run().OK(t); r.Stdout != "imported\n" {
		t.Errorf("%q", r.Stdout)
	}
}
