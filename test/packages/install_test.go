package packages

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A package is installed over this machine's own root, whose changes go to a directory: what is in
// it after a container has run and the package was purged is what it leaves behind. rpm runs its
// scripts here as it does elsewhere, but knows none of what it depends on.
func TestPurgedPackageLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for packager, pattern := range map[string]string{"dpkg": "*_amd64.deb", "rpm": "*.x86_64.rpm"} {
		t.Run(packager, func(t *testing.T) {
			for _, tool := range []string{packager, "unshare"} {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skipf("needs %s: %v", tool, err)
				}
			}
			files, err := filepath.Glob(filepath.Join(made(t), pattern))
			if err != nil || len(files) != 1 {
				t.Fatalf("%q, %v", files, err)
			}
			purgeInOverlay(t, files[0])
		})
	}
}

func purgeInOverlay(t *testing.T, file string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "use"), []byte(use), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "bash", "-euo", "pipefail", "-c", overRoot, "install", dir, file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	text := string(out)
	if strings.Contains(text, "no overlay:") {
		t.Skipf("needs an overlay over the root: %s", text)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !strings.Contains(text, "hello from the package\n") || strings.Contains(text, "left:") {
		t.Errorf("%s", text)
	}
	looked := 0
	err = filepath.WalkDir(filepath.Join(dir, "changes"), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, filepath.Join(dir, "changes"))
		if name == "" || ofDpkg(name) {
			return nil
		}
		if name == "/usr/share/zsh/site-functions" && strings.HasSuffix(file, ".rpm") {
			return nil // a directory of the package filesystem, which Debian has not
		}
		looked++
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		switch {
		case st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0:
			t.Errorf("%s of this machine was removed", name)
		case e.IsDir():
			if _, err := os.Lstat(name); err != nil {
				t.Errorf("left behind: the folder %s", name)
			}
		default:
			t.Errorf("left behind, or changed: %s", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked == 0 {
		t.Error("nothing was installed at all: not even folders were touched")
	}
}

// ofDpkg are the files of dpkg itself, which it writes for every package, and caches that its
// triggers make anew.
func ofDpkg(name string) bool {
	for _, own := range []string{"/var/lib/dpkg", "/var/log/dpkg.log", "/var/log/alternatives.log", "/var/cache", "/etc/ld.so.cache"} {
		if name == own || strings.HasPrefix(name, own+"/") || strings.HasPrefix(name, own+"-") {
			return true
		}
	}
	return false
}

// overRoot gives what use is called with, below the directory $1, a root of its own.
const overRoot = `
dir=$1 package=$2
mkdir "$dir/memory" "$dir/root" "$dir/changes"
mount -t tmpfs -o mode=755 tmpfs "$dir/memory"
mkdir "$dir/memory/upper" "$dir/memory/work"
mount -t overlay -o "lowerdir=/,upperdir=$dir/memory/upper,workdir=$dir/memory/work" overlay "$dir/root" || { echo "no overlay: refused"; exit 1; }
for at in /proc /sys /dev; do mount --rbind $at "$dir/root$at"; done
mount -t tmpfs tmpfs "$dir/root/run"
mount -t tmpfs tmpfs "$dir/root/tmp"
cp "$package" "$dir/root/tmp/berth.${package##*.}"
cp "$dir/use" "$dir/root/tmp/use"
# In mounts of its own again, so that this shell keeps the root that it has.
unshare --mount --propagation private bash -euc 'cd "$1/root" && pivot_root . mnt && exec chroot . bash -euc "umount -l /mnt; exec bash /tmp/use /tmp/berth.*"' inside "$dir"
cp -a "$dir/memory/upper/." "$dir/changes"
`

// use installs the package $1, runs a container of it, and purges it.
const use = `
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
case $1 in
*.deb) install="dpkg -i" purge="dpkg --purge" ;;
*.rpm) install="rpm --dbpath /tmp/rpmdb -U --force --nodeps" purge="rpm --dbpath /tmp/rpmdb -e" ;;
esac
$install "$1"
test -x /usr/bin/berth -a -e /usr/share/man/man1/berth.1.gz
mkdir -p /tmp/bundle/rootfs/bin
cp "$(command -v busybox)" /tmp/bundle/rootfs/bin/busybox
ln -s busybox /tmp/bundle/rootfs/bin/echo
cd /tmp/bundle
berth spec
sed -i 's/"terminal": true/"terminal": false/; s/"sh"/"echo", "hello from the package"/' config.json
berth run "package-test-$$"
berth box -- true
berth list -q | sed 's/^/left: /'
cd /
rm -r /tmp/bundle
if [[ -d /run/systemd/system ]]; then
	mkdir /etc/berth-node
	cp /usr/share/doc/berth/node/node.yaml /etc/berth-node/
	systemctl enable --now berth-node
	berth-node status > /dev/null
	rm -r /etc/berth-node # which is the administrator's
fi
# A new version takes nothing away but the old one's files.
mkdir -p /var/lib/berth-node
$install "$1"
test -d /var/lib/berth-node -a -d /run/berth
[[ ! -d /run/systemd/system ]] || systemctl is-active berth-node
# As the last container leaves it where others live in a parent of its cgroup.
echo "1 /sys/fs/cgroup/parent" > /run/berth/cgroups:parents
$purge berth
test ! -e /var/lib/berth-node -a ! -e /usr/bin/berth
find /run -name '*berth*' | sed 's/^/left: /'
find /sys/fs/cgroup -name "*package-test-$$*" | sed 's/^/left: /'
`
