package doctor

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/kernel"
)

// machine makes one of files. A directory ends with a slash.
func machine(t *testing.T, uid int, files map[string]string) *Machine {
	t.Helper()
	m := &Machine{Root: t.TempDir(), UID: uid, Env: func(string) string { return "" }, Program: "/usr/bin/berth"}
	for name, text := range files {
		path := m.path(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m.Name = m.userName()
	return m
}

const (
	v2Mount = "30 1 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
	debian  = "PRETTY_NAME=\"Debian\"\nID=debian\n"
	passwd  = "root:x:0:0:root:/root:/bin/sh\nkim:x:1000:1000:Kim:/home/kim:/bin/sh\n"
	all     = "cpuset cpu io memory hugetlb pids rdma misc\n"
)

// with joins files, the later ones on top.
func with(maps ...map[string]string) map[string]string {
	files := map[string]string{}
	for _, m := range maps {
		for name, text := range m {
			files[name] = text
		}
	}
	return files
}

// modern is an ordinary Debian with systemd, on which nothing is missing.
var modern = map[string]string{
	"proc/self/mountinfo": v2Mount, "sys/fs/cgroup/cgroup.controllers": all, "etc/os-release": debian, "etc/passwd": passwd, "etc/default/grub": "",
	"run/systemd/system/": "", "var/lib/systemd/linger/kim": "", "proc/sys/kernel/osrelease": "6.12.0-1-amd64\n", "proc/filesystems": "nodev\toverlay\n",
	"sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.controllers": "cpuset cpu io memory pids\n",
	"sys/fs/cgroup/user.slice/memory.swap.max":                                      "max\n", "sys/kernel/security/lsm": "lockdown,capability,landlock,apparmor\n",
	"etc/subuid": "kim:100000:65536\n", "etc/subgid": "kim:100000:65536\n", "proc/sys/user/max_user_namespaces": "31000\n",
	"proc/self/status": "Name:\tx\nCapEff:\t000001ffffffffff\n", "run/user/1000/": "",
}

// find gives the one finding of a check that has a state; nil if there is none.
func find(findings []Finding, check string, state State) *Finding {
	for i := range findings {
		if findings[i].Check == check && findings[i].State == state {
			return &findings[i]
		}
	}
	return nil
}

func steps(f *Finding) string {
	var all []string
	for _, fix := range f.Fix {
		if fix.File != "" {
			all = append(all, fix.File+": "+fix.Content)
		} else {
			all = append(all, fix.Run)
		}
	}
	return strings.Join(all, "; ")
}

func setuid(t *testing.T, m *Machine, names ...string) {
	t.Helper()
	for _, name := range names {
		path := m.path("usr/bin/" + name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil {
			t.Fatal(err)
		}
	}
}

func TestModernMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make files that are root's")
	}
	for _, uid := range []int{0, 1000} {
		m := machine(t, uid, modern)
		m.Env = func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": "/run/user/1000"}[name] }
		setuid(t, m, "newuidmap", "newgidmap")
		for _, f := range m.Examine() {
			if f.State == Gap {
				t.Errorf("uid %d: %+v", uid, f)
			}
		}
	}
}

func TestGaps(t *testing.T) {
	const user, root = 1000, 0
	for _, test := range []struct {
		name  string
		uid   int
		files map[string]string
		check string
		whom  Audience
		found string
		fix   string // a part of it
	}{
		{"no cgroups", root, map[string]string{"proc/self/mountinfo": "1 0 0:1 / / rw - ext4 x rw\n"}, "cgroup layout", Everyone, "no cgroup", "mount -t cgroup2"},
		{"hybrid with systemd", user, with(modern, map[string]string{"proc/self/mountinfo": "30 1 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n31 1 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/unified/cgroup.controllers": ""}), "cgroup layout", User, "hybrid", "/etc/default/grub.d/berth.cfg: GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX systemd.unified_cgroup_hierarchy=1\"\n; sudo update-grub; sudo reboot"},
		{"read-only cgroups", root, with(modern, map[string]string{"proc/self/mountinfo": "30 1 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"}), "cgroup mounts", Everyone, "/sys/fs/cgroup is read-only", "--privileged"},
		{"memory switched off", root, with(modern, map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io pids\n", "proc/cgroups": "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t0\t1\t0\n"}),
			"cgroup controllers", Root, "missing: memory", "cgroup_enable=memory"},
		{"io not built", root, with(modern, map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpuset cpu memory pids\n"}), "cgroup controllers", Root, "missing: io", "use a kernel"},
		{"little delegated", user, with(modern, map[string]string{"sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.controllers": "memory pids\n"}),
			"delegated controllers", User, "user@1000.service has memory pids", "/etc/systemd/system/user@.service.d/delegate.conf: [Service]\nDelegate=cpu cpuset io memory pids\n; sudo systemctl daemon-reload; sudo systemctl restart user@1000.service"},
		{"little delegated, told to root", root, with(modern, map[string]string{"sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.controllers": ""}),
			"delegated controllers", User, "user@1000.service has none", "Delegate=cpu cpuset io memory pids"},
		{"no linger", user, with(modern, map[string]string{"etc/passwd": "lee:x:1000:1000::/:/bin/sh\n"}), "linger", User, "off", "sudo loginctl enable-linger lee"},
		{"no runtime dir", user, modern, "XDG_RUNTIME_DIR", User, "not set", "export XDG_RUNTIME_DIR=/run/user/1000"},
		{"no subordinate ids", user, with(modern, map[string]string{"etc/subuid": "", "etc/subgid": ""}), "subordinate ids", User, "0 uids, 0 gids", "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 kim"},
		{"ids of others", user, with(modern, map[string]string{"etc/subuid": "lee:100000:65536\nmax:300000:1000\n", "etc/subgid": "lee:100000:65536\n"}), "subordinate ids", User, "0 uids", "--add-subuids 301000-366535 --add-subgids 301000-366535 kim"},
		{"too few gids", user, with(modern, map[string]string{"etc/subgid": "1000:100000:1000\n"}), "subordinate ids", User, "65536 uids, 1000 gids", "sudo usermod --add-subgids 165536-231071 kim"},
		{"no newuidmap", user, modern, "newuidmap", User, "not installed", "sudo apt-get install uidmap"},
		{"no newuidmap on Fedora", root, with(modern, map[string]string{"etc/os-release": "ID=fedora\n"}), "newuidmap", User, "not installed", "dnf install shadow-utils"},
		{"no newuidmap on Rocky", root, with(modern, map[string]string{"etc/os-release": "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"}), "newgidmap", User, "not installed", "dnf install shadow-utils"},
		{"no newuidmap elsewhere", user, with(modern, map[string]string{"etc/os-release": "ID=odd\n"}), "newuidmap", User, "not installed", "install the package that is called uidmap on Debian"},
		{"no user namespaces", user, with(modern, map[string]string{"proc/sys/user/max_user_namespaces": "0\n"}), "namespace limits", User, "user.max_user_namespaces is 0", "/etc/sysctl.d/99-user.max_user_namespaces.conf: user.max_user_namespaces = 31000\n; sudo sysctl --system"},
		{"no net namespaces", root, with(modern, map[string]string{"proc/sys/user/max_net_namespaces": "0\n"}), "namespace limits", Everyone, "user.max_net_namespaces is 0", "user.max_net_namespaces = 31000"},
		{"Debian's switch", user, with(modern, map[string]string{"proc/sys/kernel/unprivileged_userns_clone": "0\n"}), "user namespaces", User, "unprivileged_userns_clone is 0", "kernel.unprivileged_userns_clone = 1"},
		{"Ubuntu's switch", user, with(modern, map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}), "user namespaces", User, "apparmor_restrict_unprivileged_userns is 1", "profile berth /usr/bin/berth flags=(unconfined) {\n  userns,"},
		{"kernel without user namespaces", user, with(modern, map[string]string{"proc/self/ns/mnt": ""}), "user namespaces", User, "none", "CONFIG_USER_NS"},
		{"no overlay", root, with(modern, map[string]string{"proc/filesystems": "nodev\tproc\n\text4\n"}), "overlay file system", Everyone, "not loaded", "modprobe overlay; /etc/modules-load.d/overlay.conf: overlay\n"},
		{"old kernel", root, with(modern, map[string]string{"proc/sys/kernel/osrelease": "5.4.0-150-generic\n"}), "kernel", Everyone, "5.4.0", "5.10"},
		{"poor root", root, with(modern, map[string]string{"proc/self/status": "CapEff:\t000001ffffdfffff\n"}), "capabilities", Root, "without CAP_SYS_ADMIN", "--privileged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := machine(t, test.uid, test.files)
			findings := m.Examine()
			f := find(findings, test.check, Gap)
			if f == nil {
				t.Fatalf("no gap is found: %+v", findings)
			}
			if f.For != test.whom || !strings.Contains(f.Found, test.found) || f.Without == "" {
				t.Errorf("%+v", f)
			}
			if got := steps(f); !strings.Contains(got, test.fix) {
				t.Errorf("fix %q, want %q", got, test.fix)
			}
			if Healthy(findings, test.whom) {
				t.Error("the machine counts as healthy")
			}
		})
	}
}

func TestNoGaps(t *testing.T) {
	for _, test := range []struct {
		name  string
		uid   int
		files map[string]string
		check string
	}{
		{"ids by number", 1000, with(modern, map[string]string{"etc/subuid": "1000:1:65536\n", "etc/subgid": "kim:5:40000\nkim:50000:40000\n"}), "subordinate ids"},
		{"ids from elsewhere", 1000, with(modern, map[string]string{"etc/subuid": "", "etc/nsswitch.conf": "passwd: files\nsubid: sss\n"}), "subordinate ids"},
		{"ids of root", 0, with(modern, map[string]string{"etc/subuid": ""}), "subordinate ids"},
		{"AppArmor with a profile", 1000, with(modern, map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", "etc/apparmor.d/usr.bin.berth": ""}), "user namespaces"},
		{"Debian's switch is on", 1000, with(modern, map[string]string{"proc/sys/kernel/unprivileged_userns_clone": "1\n"}), "user namespaces"},
		{"blkio on cgroup v1", 0, with(modern, map[string]string{"proc/self/mountinfo": "31 1 0:27 / /sys/fs/cgroup/a rw - cgroup cgroup rw,cpu,cpuset,memory,pids,blkio\n"}), "cgroup controllers"},
		{"kernel 5.10", 0, with(modern, map[string]string{"proc/sys/kernel/osrelease": "5.10\n"}), "kernel"},
		{"without systemd", 1000, map[string]string{"proc/self/mountinfo": v2Mount, "sys/fs/cgroup/cgroup.controllers": all}, "systemd"},
		{"nobody is there", 0, map[string]string{"proc/self/mountinfo": v2Mount, "sys/fs/cgroup/cgroup.controllers": all, "run/systemd/system/": ""}, "delegated controllers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if f := find(machine(t, test.uid, test.files).Examine(), test.check, Gap); f != nil {
				t.Errorf("%+v", f)
			}
		})
	}
}

// The programs that write id maps need their rights, by either of two ways.
func TestMapPrograms(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make files that are root's")
	}
	m := machine(t, 1000, modern)
	setuid(t, m, "newuidmap", "newgidmap")
	if f := find(mapPrograms(m), "newuidmap", Fine); f == nil || f.Found != "/usr/bin/newuidmap" {
		t.Errorf("setuid: %+v", f)
	}
	path := m.path("usr/bin/newuidmap")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if f := find(mapPrograms(m), "newuidmap", Gap); f == nil || steps(f) != "sudo setcap cap_setuid+ep /usr/bin/newuidmap" {
		t.Errorf("without rights: %+v", f)
	}
	// struct vfs_cap_data: version 2, effective; permitted CAP_SETUID (7).
	value := []byte{1, 0, 0, 2, 1 << 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(path, "security.capability", value, 0); err != nil {
		t.Skipf("this file system holds no capabilities: %v", err)
	}
	if f := find(mapPrograms(m), "newuidmap", Fine); f == nil {
		t.Error("a file capability is not seen")
	}
	// Another one does not help.
	value[4] = 1 << 6
	if err := unix.Setxattr(path, "security.capability", value, 0); err != nil {
		t.Fatal(err)
	}
	if f := find(mapPrograms(m), "newuidmap", Gap); f == nil {
		t.Error("CAP_SETGID is taken for CAP_SETUID")
	}
}

func TestFeature(t *testing.T) {
	m := machine(t, 1000, modern)
	for _, test := range []struct {
		name  string
		f     feature
		state State
		fix   string
	}{
		{"there", feature{of: &kernel.Feature{Least: "5.1"}, try: func() error { return nil }, required: true}, Fine, ""},
		{"missing, with another way", feature{of: &kernel.Feature{Least: "5.1"}, try: func() error { return unix.ENOSYS }, without: "x"}, Note, ""},
		{"missing, needed", feature{of: &kernel.Feature{Least: "5.1"}, try: func() error { return unix.ENOSYS }, without: "x", required: true}, Gap, "use Linux 5.1 or newer"},
		{"not to be known", feature{of: &kernel.Feature{Least: "5.1"}, try: func() error { return errForbidden }, required: true}, Note, ""},
		{"root's to try", feature{of: &kernel.Feature{Least: "5.1"}, try: func() error { t.Error("it is tried"); return nil }, needs: Root, required: true}, Note, ""},
		{"with advice", feature{of: &kernel.Feature{Least: "5.1"}, try: func() error { return unix.EACCES }, required: true, fix: func(_ *Machine, err error) []Fix { return []Fix{{Run: "do: " + err.Error()}} }}, Gap, "do: permission denied"},
	} {
		got := test.f.examine(m)
		if got.State != test.state || !strings.Contains(steps(&got), test.fix) || test.fix == "" && got.Fix != nil {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

// The probes change nothing, leave nothing open, and find on this kernel what all tests here rely
// on.
func TestFeaturesOfThisKernel(t *testing.T) {
	before := openFDs(t)
	for _, f := range features() {
		if err := f.try(); err != nil && f.required && !errors.Is(err, errForbidden) {
			t.Errorf("%s: %v", f.name, err)
		} else if err != nil {
			t.Logf("%s: %v", f.name, err)
		}
	}
	if after := openFDs(t); !slices.Equal(before, after) {
		t.Errorf("descriptors before %q, after %q", before, after)
	}
}

func openFDs(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.HasPrefix(target, "/proc/") && !strings.HasPrefix(target, "anon_inode:[event") {
			list = append(list, e.Name()+" "+target)
		}
	}
	return list
}

func TestHere(t *testing.T) {
	m := Here()
	if m.UID != os.Geteuid() || !filepath.IsAbs(m.Program) {
		t.Errorf("%+v", m)
	}
	if findings := m.Examine(); find(findings, "kernel", Fine) == nil && find(findings, "kernel", Gap) == nil {
		t.Errorf("nothing of the kernel: %+v", findings)
	}
}

var someFindings = []Finding{
	{Check: "a", For: User, State: Gap, Found: "is off", Without: "nothing works", Fix: []Fix{{File: "/etc/x.conf", Content: "[A]\nb=c\n"}, {Run: "reload"}}},
	{Check: "b", For: Everyone, Found: "fine"},
	{Check: "c", For: Root, State: Note, Found: "odd"},
}

func TestText(t *testing.T) {
	const want = `ok   b: fine
note c: odd
gap  a: is off
     so: nothing works
     write /etc/x.conf:
         [A]
         b=c
     do: reload
`
	if got := string(Text(someFindings, User, false)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	forRoot := string(Text(someFindings, Root, false))
	if !strings.Contains(forRoot, "hint a: is off (for users)\n") || !strings.Contains(forRoot, "Nothing is missing for containers of root.") {
		t.Errorf("for root:\n%s", forRoot)
	}
	coloured := string(Text(someFindings, User, true))
	if !strings.Contains(coloured, "\x1b[31mgap  \x1b[0ma: is off") || !strings.Contains(coloured, "\x1b[32mok   \x1b[0mb") {
		t.Errorf("coloured: %q", coloured)
	}
	if strings.Contains(forRoot, "\x1b") {
		t.Error("colours where none were asked for")
	}
}

func TestJSON(t *testing.T) {
	var doc struct {
		Healthy  bool
		For      string
		Findings []struct {
			Check, For, State, Found, Without string
			Fix                               []struct{ Run, File, Content string }
		}
	}
	if err := json.Unmarshal(JSON(someFindings, User), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Healthy || doc.For != "users" || len(doc.Findings) != 3 {
		t.Fatalf("%+v", doc)
	}
	first := doc.Findings[0]
	if first.Check != "a" || first.State != "gap" || first.Without != "nothing works" || len(first.Fix) != 2 || first.Fix[0].File != "/etc/x.conf" || first.Fix[0].Content != "[A]\nb=c\n" || first.Fix[1].Run != "reload" {
		t.Errorf("%+v", first)
	}
	if err := json.Unmarshal(JSON(someFindings, Root), &doc); err != nil || !doc.Healthy || doc.Findings[0].State != "hint" {
		t.Errorf("for root: %+v, %v", doc, err)
	}
}
