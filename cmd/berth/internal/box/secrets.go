package box

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cmd/berth/internal/box/tarfile"
)

// homeSecrets are where programs keep in a home what opens other doors: keys, tokens, cookies.
var homeSecrets = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".kube", ".docker/config.json", ".netrc", ".git-credentials", ".config/git/credentials",
	".config/gh", ".config/containers/auth.json", ".config/doctl", ".config/hcloud", ".config/rclone", ".config/op", ".oci", ".vault-token",
	".terraform.d/credentials.tfrc.json", ".npmrc", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
	".gradle/gradle.properties", ".pgpass", ".my.cnf", ".s3cfg", ".password-store", ".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium",
}

// machineSecrets are those of the machine, which root can read.
var machineSecrets = []string{"/etc/ssh/ssh_host_*_key", "/etc/ssl/private", "/etc/wireguard", "/etc/kubernetes/pki", "/etc/kubernetes/*.conf"}

// passwords are the files in which a program that adds a user has to put a line, by a file that
// takes the place of the old one: a mount in that place would be in the way.
var passwords = []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-"}

// hide finds the secrets that the caller could read, and hides those that were not asked for:
// Blanked is for WriteBlanked, the rest for the mounts of the box.
func (o *Options) hide(c *Caller) (mounts []specs.Mount, masked []string) {
	o.Hidden, o.Blanked = nil, nil
	if o.Rootfs != "" {
		return nil, nil
	}
	var found []string
	for _, home := range homes(c) {
		for _, name := range homeSecrets {
			found = append(found, filepath.Join(home, name))
		}
	}
	if c.UID == 0 {
		for _, pattern := range machineSecrets {
			names, _ := filepath.Glob(pattern)
			found = append(found, names...)
		}
	}
	for _, name := range found {
		if name, ok := holdsSomething(name); ok && !o.isShown(name) && !slices.Contains(o.Hidden, name) {
			o.Hidden = append(o.Hidden, name)
			for _, shown := range o.Show {
				if within(shown, name) { // a part of it
					o.Binds = append(o.Binds, Bind{Source: shown, Path: shown, Option: "--show"})
				}
			}
			m, paths := o.cover(name)
			mounts, masked = append(mounts, m...), append(masked, paths...)
		}
	}
	if c.UID != 0 {
		return mounts, masked
	}
	for _, name := range passwords {
		if _, err := os.Stat(name); err != nil || o.isShown(name) {
			continue
		}
		switch {
		case o.passwordsCovered(c):
			_, paths := o.cover(name)
			masked = append(masked, paths...)
		case o.KeepsChanges:
			continue // what is brought to the machine later must be whole
		default:
			o.Blanked = append(o.Blanked, name)
		}
		o.Hidden = append(o.Hidden, name)
	}
	return mounts, masked
}

// homes are the directories in which a caller can read secrets: its own, and root all people's.
func homes(c *Caller) (list []string) {
	add := func(home string) {
		if home = realPath(home); filepath.IsAbs(home) && home != "/" && !slices.Contains(list, home) {
			list = append(list, home)
		}
	}
	if home, ok := lookUp(c.Environ, "HOME"); ok {
		add(home)
	}
	text, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return list
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(line, ":")
		if len(fields) < 7 {
			continue
		}
		uid, err := strconv.Atoi(fields[2])
		// Those of the system's own services have no homes in which people keep anything.
		if err == nil && (uid == c.UID || c.UID == 0 && uid >= 1000 && uid < 65534) {
			add(fields[5])
		}
	}
	return list
}

// holdsSomething is the real path of what exists, and is no empty directory.
func holdsSomething(name string) (string, bool) {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		var names []string
		if f, err := os.Open(name); err == nil {
			names, _ = f.Readdirnames(1)
			f.Close()
		}
		return name, len(names) > 0
	}
	return name, err == nil
}

// isShown reports whether a secret was asked for: by --show, or as a path that is to be seen.
func (o *Options) isShown(secret string) bool {
	for _, name := range o.Show {
		if name == "/" || within(secret, name) {
			return true
		}
	}
	return slices.ContainsFunc(o.Binds, func(b Bind) bool { return realPath(b.Source) == secret })
}

// RealPath is where a path of the caller's leads to.
func RealPath(name string) (string, error) {
	name, err := Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(name)
}

// cover hides a secret, where it is and where a bind mount shows it.
func (o *Options) cover(secret string) (mounts []specs.Mount, masked []string) {
	places := []string{secret}
	for _, b := range o.Binds {
		if source := realPath(b.Source); source != secret && within(secret, source) {
			places = append(places, b.Path+strings.TrimPrefix(secret, source))
		}
	}
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		// With something of it shown, it is an empty directory to mount that in.
		if slices.ContainsFunc(o.Binds, func(b Bind) bool { return b.Path != place && within(b.Path, place) }) {
			mounts = append(mounts, memory(place, "mode=700"))
		} else if !slices.ContainsFunc(o.Binds, func(b Bind) bool { return b.Path == place }) {
			masked = append(masked, place)
		}
	}
	return mounts, masked
}

// passwordsCovered reports whether the password files are not in an overlay that can be written to.
func (o *Options) passwordsCovered(c *Caller) bool {
	covers := func(place string) bool { return place == "/" || within("/etc", place) }
	return o.dir(c.Dir) == inOverlay && covers(c.Dir) || slices.ContainsFunc(o.Binds, func(b Bind) bool { return covers(b.Path) })
}

// WriteBlanked writes a layer with copies of the password files that have no passwords: what a
// program adds to them works as ever.
func (o *Options) WriteBlanked(to io.Writer) error {
	w := tarfile.NewWriter(to)
	for _, name := range o.Blanked {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil {
			return &os.PathError{Op: "stat", Path: name, Err: err}
		}
		text = blanked(text)
		if err := w.Add(&tarfile.Header{
			Type: tarfile.File, Name: strings.TrimPrefix(name, "/"), Size: int64(len(text)), Mode: st.Mode & 0o7777,
			UID: int(st.Uid), GID: int(st.Gid), Time: time.Unix(st.Mtim.Unix()),
		}); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return w.Close()
}

// blanked locks all passwords of shadow(5) or gshadow(5), and keeps the rest.
func blanked(text []byte) []byte {
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		name, rest, ok := strings.Cut(line, ":")
		password, more, whole := strings.Cut(rest, ":")
		if ok && whole && strings.Trim(password, "!*x") != "" {
			line = name + ":*:" + more
		}
		b.WriteString(line)
	}
	return []byte(b.String())
}
