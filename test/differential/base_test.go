package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// prelude says what a Go program can no longer see of itself: its start sets handlers for all
// signals, and raises a limit.
const prelude = `while IFS= read -r l; do echo "S $l"; done < /proc/self/status; while IFS= read -r l; do echo "L $l"; done < /proc/self/limits; exec /inside report wait`

// A setup is a bundle made from lines, and how the engine is to be called on it.
type setup struct {
	dir, id  string
	options  []string // of create
	caller   []string // words of test/inside's caller
	terminal bool
	mounts   []string     // made on the host for the bundle
	found    map[int]bool // the host's mounts, by number, before there was anything of this
}

// prepare makes a bundle in a directory that is not there yet.
func (w *worker) prepare(id string, lines []string) (*setup, error) {
	s := &setup{dir: filepath.Join(w.dir, "bundle"), id: id, found: map[int]bool{}}
	for _, m := range ownMounts() {
		s.found[m.ID] = true
	}
	// What mounts take comes from elsewhere than the root file system, as volumes do.
	host := filepath.Join(s.dir, "host")
	if err := os.MkdirAll(host, 0o755); err != nil {
		return s, err
	}
	if err := unix.Mount("host", host, "tmpfs", 0, "mode=755"); err != nil {
		return s, err
	}
	if err := w.files(s.dir); err != nil {
		return s, err
	}
	config, err := generic(w.base(id))
	if err != nil {
		return s, err
	}
	replace := strings.NewReplacer("@BUNDLE", s.dir, "@HOOK", filepath.Join(w.dir, "inside"), "@LOG", filepath.Join(s.dir, "hooks"), "@ID", id)
	for _, line := range lines {
		for _, c := range changesOf(replace.Replace(line)) {
			if strings.HasPrefix(c.pointer, "/") {
				if config, err = set(config, c.pointer, c.value); err != nil {
					return s, err
				}
				// What is about the command or its environment is not to be changed by a shell
				// before it.
				if strings.HasPrefix(c.pointer, "/process/env") {
					config, _ = set(config, "/process/args", `["/inside","report","wait"]`)
				}
				continue
			}
			if err := s.beside(c); err != nil {
				return s, err
			}
		}
	}
	if owner := map[string]int{"rootless": ordinary, "userns": 100000}[w.Layout.User]; owner != 0 {
		if err := chownAll(s.dir, owner); err != nil {
			return s, err
		}
	}
	data, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return s, err
	}
	var known struct{ Process struct{ Terminal bool } }
	json.Unmarshal(data, &known)
	s.terminal = known.Process.Terminal
	return s, os.WriteFile(filepath.Join(s.dir, "config.json"), data, 0o644)
}

// base is the config that the lines change.
func (w *worker) base(id string) *specs.Spec {
	spec := harness.DefaultSpec("/"+id, "/bin/sh", "-c", prelude)
	spec.Version = "1.2.0"
	if w.Layout.Systemd {
		spec.Linux.CgroupsPath = "system.slice:berth-diff:" + id
		if w.Layout.User == "rootless" {
			spec.Linux.CgroupsPath = "user.slice:berth-diff:" + id
		}
	}
	switch w.Layout.User {
	case "userns":
		harness.UserNamespace(spec)
	case "rootless":
		spec.Linux.Namespaces = append(spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
		spec.Linux.UIDMappings = []specs.LinuxIDMapping{{HostID: ordinary, Size: 1}, {ContainerID: 1, HostID: firstSubordinate, Size: 65536}}
		spec.Linux.GIDMappings = spec.Linux.UIDMappings
		if !w.Layout.Systemd {
			spec.Linux.CgroupsPath, spec.Linux.Resources = "", nil
		}
	}
	return spec
}

// files makes a bundle's files, the programs as links.
func (w *worker) files(dir string) (err error) {
	check := func(e error) {
		if err == nil {
			err = e
		}
	}
	root := filepath.Join(dir, "rootfs")
	for _, name := range strings.Fields("bin dev etc home/user proc root sys usr/bin var masked-dir/below ../host/dir/sub ../host/private/dir ../host/upper ../host/work ../host/flagged") {
		check(os.MkdirAll(filepath.Join(root, name), 0o755))
	}
	check(os.Mkdir(filepath.Join(root, "tmp"), 0o755))
	check(os.Chmod(filepath.Join(root, "tmp"), 0o1777))
	check(os.Chown(filepath.Join(root, "home/user"), 1000, 1000))
	check(os.Link(filepath.Join(w.dir, "busybox"), filepath.Join(root, "bin/busybox")))
	check(os.Link(filepath.Join(w.dir, "inside"), filepath.Join(root, "inside")))
	for _, name := range []string{"sh", "sleep", "cat"} {
		check(os.Symlink("busybox", filepath.Join(root, "bin", name)))
	}
	check(os.Symlink("rootfs", filepath.Join(dir, "link-to-rootfs")))
	for name, text := range map[string]string{
		"rootfs/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1001:User:/home/user:/bin/sh\n",
		"rootfs/etc/group":  "root:x:0:\nuser:x:1001:\nplayers:x:2000:user\ntty:x:5:\n",
		"rootfs/masked":     "text\n", "rootfs/masked-dir/file": "text\n", "host/file": "text\n", "host/dir/file": "text\n",
	} {
		check(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	check(os.Chmod(filepath.Join(dir, "host/private"), 0o700))
	return err
}

// beside makes a change that is not one of the config.
func (s *setup) beside(c change) error {
	kind, name, _ := strings.Cut(c.pointer, "/")
	text := strings.Trim(c.value, `"`)
	switch kind {
	case "caller":
		s.caller = append(s.caller, name+"="+text)
		return nil
	case "option":
		if text == "true" {
			s.options = append(s.options, "--"+name)
		} else {
			s.options = append(s.options, "--"+name+"="+text)
		}
		return nil
	}
	var file struct {
		Link, File, Mode, Mount string
		Dir                     bool
		Owner                   int
	}
	if err := json.Unmarshal([]byte(c.value), &file); err != nil {
		return err
	}
	path := filepath.Join(s.dir, c.pointer)
	if file.Link != "" || file.File != "" {
		os.RemoveAll(path)
	}
	switch {
	case file.Link != "":
		return os.Symlink(file.Link, path)
	case file.File != "":
		if err := os.WriteFile(path, []byte(file.File), 0o644); err != nil {
			return err
		}
	case file.Dir:
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	case file.Mount != "":
		if err := unix.Mount("flagged", path, "tmpfs", 0, "mode=755"); err != nil {
			return err
		}
		s.mounts = append(s.mounts, path)
		var flags uintptr
		for _, word := range strings.Split(file.Mount, ",") {
			flags |= map[string]uintptr{"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC, "noatime": unix.MS_NOATIME}[word]
		}
		return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|flags, "")
	}
	if file.Mode != "" {
		mode, err := strconv.ParseUint(file.Mode, 8, 32)
		if err != nil {
			return err
		}
		return os.Chmod(path, os.FileMode(mode))
	}
	return nil
}
