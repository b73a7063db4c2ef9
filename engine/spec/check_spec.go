package spec

import (
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func (c *checker) spec(s *specs.Spec) {
	var top place
	c.version(top.at("ociVersion"), s.Version)
	if s.Root == nil {
		c.bad(top.at("root"), "is required, but missing")
	} else {
		c.root(top.at("root"), s.Root)
	}
	if s.Process != nil { // it is required for start only (config.md, process)
		c.process(top.at("process"), s.Process)
	}
	linux := s.Linux
	if linux == nil {
		linux = new(specs.Linux)
	}
	if s.Root != nil && s.Root.Readonly && !has(linux, specs.MountNamespace) {
		root := top.at("root")
		c.hint(root.at("readonly"), "needs a mount namespace: the host's file system would become read-only", `add {"type": "mount"} to /linux/namespaces`)
	}
	c.names(top, s, linux)
	c.mounts(top.at("mounts"), s.Mounts, linux)
	if s.Hooks != nil {
		c.hooks(top.at("hooks"), s.Hooks)
	}
	c.annotations(top.at("annotations"), s.Annotations)
	c.linux(top.at("linux"), linux)
	c.mapped(top, s.Process, linux)
}

// version checks ociVersion: SemVer 2.0.0, within the major version whose
// meaning is known.
func (c *checker) version(p place, version string) {
	major, minor, ok := semver(version)
	switch {
	case version == "":
		c.hint(p, "is empty, expected a version", "this runtime implements "+specs.Version)
	case !ok:
		c.hint(p, "expected a version like 1.3.0, found "+quote(version), "this runtime implements "+specs.Version)
	case major != 1:
		c.hint(p, "expected a version 1.x, found "+quote(version), "this runtime implements "+specs.Version)
	case minor > specs.VersionMinor:
		c.warn(p, "is newer than "+specs.Version+", which this runtime implements: entries that came later are ignored")
	}
}

// semver splits a version of SemVer 2.0.0: three numbers without leading zeros,
// then a pre-release after a hyphen and build data after a plus sign.
func semver(version string) (major, minor int, ok bool) {
	core, build, hasBuild := strings.Cut(version, "+")
	core, pre, hasPre := strings.Cut(core, "-")
	if hasBuild && !identifiers(build, false) || hasPre && !identifiers(pre, true) {
		return 0, 0, false
	}
	parts := strings.Split(core, ".")
	if len(parts) != 3 {
		return 0, 0, false
	}
	var n [3]int
	for i, part := range parts {
		if part == "" || len(part) > 9 || len(part) > 1 && part[0] == '0' {
			return 0, 0, false
		}
		for _, digit := range []byte(part) {
			if digit < '0' || digit > '9' {
				return 0, 0, false
			}
			n[i] = n[i]*10 + int(digit-'0')
		}
	}
	return n[0], n[1], true
}

// identifiers checks the dotted words of a pre-release or of build data. In a
// pre-release, a number has no leading zero.
func identifiers(s string, pre bool) bool {
	for word := range strings.SplitSeq(s, ".") {
		if word == "" {
			return false
		}
		number := true
		for _, b := range []byte(word) {
			switch {
			case '0' <= b && b <= '9':
			case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', b == '-':
				number = false
			default:
				return false
			}
		}
		if pre && number && len(word) > 1 && word[0] == '0' {
			return false
		}
	}
	return true
}

// root checks the rootfs. A relative path is relative to the bundle; that it
// may leave the bundle by ".." is harmless, since an absolute one may as well.
func (c *checker) root(p place, root *specs.Root) {
	if root.Path == "" {
		c.hint(p.at("path"), "is empty", "name the directory with the root file system, by convention rootfs")
		return
	}
	c.text(p.at("path"), root.Path)
}

// names checks the host and domain name against the kernel's __NEW_UTS_LEN.
func (c *checker) names(top place, s *specs.Spec, linux *specs.Linux) {
	const longest = 64
	for _, n := range [2]struct{ key, value string }{{"hostname", s.Hostname}, {"domainname", s.Domainname}} {
		if n.value == "" {
			continue
		}
		p := top.at(n.key)
		switch {
		case !has(linux, specs.UTSNamespace):
			c.hint(p, "needs a uts namespace: it would rename the host", `add {"type": "uts"} to /linux/namespaces`)
		case len(n.value) > longest:
			c.bad(p, "is longer than 64 bytes, the kernel's limit")
		default:
			c.line(p, n.value)
		}
	}
	if other, ok := linux.Sysctl["kernel.domainname"]; ok && s.Domainname != "" && other != s.Domainname {
		c.bad(top.at("domainname"), "contradicts /linux/sysctl/kernel.domainname, which is "+quote(other))
	}
}

func (c *checker) annotations(p place, annotations map[string]string) {
	if _, ok := annotations[""]; ok {
		c.bad(p, "has an empty key")
	}
}

func (c *checker) hooks(p place, hooks *specs.Hooks) {
	//lint:ignore SA1019 prestart hooks are deprecated, and still what Docker's network uses
	c.hookList(p.at("prestart"), hooks.Prestart)
	c.hookList(p.at("createRuntime"), hooks.CreateRuntime)
	c.hookList(p.at("createContainer"), hooks.CreateContainer)
	c.hookList(p.at("startContainer"), hooks.StartContainer)
	c.hookList(p.at("poststart"), hooks.Poststart)
	c.hookList(p.at("poststop"), hooks.Poststop)
}

func (c *checker) hookList(list place, hooks []specs.Hook) {
	for i := range hooks {
		p, hook := list.nth(i), &hooks[i]
		c.absolute(p.at("path"), hook.Path)
		c.texts(p.at("args"), hook.Args)
		c.env(p.at("env"), hook.Env)
		if hook.Timeout != nil && *hook.Timeout <= 0 {
			c.hint(p.at("timeout"), "must be greater than zero", "leave it out for no limit")
		}
	}
}
