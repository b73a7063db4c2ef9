package integration

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// noneInRoot looks for cgroups of the test's directly below the root of each hierarchy.
func noneInRoot(b *harness.Box) {
	b.T.Helper()
	for _, h := range harness.Hierarchies(b.T) {
		entries, err := os.ReadDir(h.Dir)
		if err != nil {
			b.T.Fatal(err)
		}
		for _, e := range entries {
			if strings.Contains(e.Name(), b.Tag) {
				b.T.Errorf("%s is in the root of %s", e.Name(), h.Dir)
			}
		}
	}
}

// unplaced is a container whose config leaves its place to the runtime.
func unplaced(b *harness.Box, path string, args ...string) *harness.Container {
	b.T.Helper()
	c := b.Container(args...)
	c.Spec.Linux.CgroupsPath = path
	c.Spec.Linux.Resources = &specs.LinuxResources{}
	if os.Geteuid() != 0 {
		harness.Rootless(c.Spec)
	}
	return c
}

// Without systemd there is one cgroup of ours, which goes with the last that is in it.
func TestPlaceWithoutSystemd(t *testing.T) {
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		harness.Skip(t, "systemd is the init system")
	}
	b := harness.New(t)
	for path, want := range map[string]string{"": "/berth/ID", b.Tag + "/deep": "/berth/" + b.Tag + "/deep"} {
		c := unplaced(b, path, "sleep", "600")
		c.RunDetached()
		want = strings.Replace(want, "ID", c.ID, 1)
		for _, h := range harness.Hierarchies(t) {
			if _, err := os.Stat(filepath.Join(h.Dir, want)); err != nil {
				t.Error(err)
			}
		}
		noneInRoot(b)
		c.Delete("--force")
	}
	// Other tests may have theirs in it just now.
	for _, h := range harness.Hierarchies(t) {
		wait.Until(t, h.Dir+"/berth is removed, or in use", func() bool {
			entries, err := os.ReadDir(filepath.Join(h.Dir, "berth"))
			return err != nil || slices.ContainsFunc(entries, fs.DirEntry.IsDir)
		})
	}
}

// placeOf is a process's cgroup in the hierarchy in which systemd has its units.
func placeOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	place := ""
	for line := range strings.Lines(string(text)) {
		if _, path, ok := strings.Cut(strings.TrimSpace(line), ":name=systemd:"); ok && place == "" {
			place = path
		}
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			place = path
		}
	}
	return place
}

// inService has berth called in a service of its own, which is delegated to it or not.
func inService(b *harness.Box, more ...string) {
	b.T.Helper()
	b.Wrap = append([]string{harness.NeedTool(b.T, "systemd-run", "systemd"), "--wait", "--pipe", "--quiet", "--collect",
		// What berth leaves running is not the service's to kill.
		"-p", "KillMode=process"}, more...)
	if os.Geteuid() != 0 {
		b.Wrap = append(b.Wrap, "--user")
	}
	b.Wrap = append(b.Wrap, "--")
}

// ourSlice is where units are that name no slice, of root and of an ordinary user.
func ourSlice() string {
	if os.Geteuid() != 0 {
		return fmt.Sprintf("/user.slice/user-%d.slice/user@%d.service/user.slice", os.Geteuid(), os.Geteuid())
	}
	return "/machine.slice"
}

// Where systemd is the init system, what names no place is a scope below one slice.
func TestPlaceUnderSystemd(t *testing.T) {
	b := withSystemd(t)
	b.Globals = []string{"--root", b.Root} // and no word of the driver
	inService(b)
	slice := path.Base(ourSlice())
	deep := strings.TrimSuffix(slice, ".slice") + "-" + strings.ReplaceAll(b.Tag, "-", `\x2d`) + ".slice"
	for named, want := range map[string]string{
		"":              ourSlice() + "/berth-ID.scope",
		b.Tag + "/deep": ourSlice() + "/" + deep + "/berth-deep.scope",
	} {
		c := unplaced(b, named, "sleep", "600")
		c.RunDetached()
		want = strings.Replace(want, "ID", c.ID, 1)
		if got := placeOf(t, c.State().Pid); got != want {
			t.Errorf("%q is at %s, want %s", named, got, want)
		}
		c.Exec(nil, "true").OK(t)
		b.Berth("inspect", c.ID).OK(t)
		b.Berth("pause", c.ID).OK(t)
		b.Berth("resume", c.ID).OK(t)
		c.Delete("--force")
		if state := property(t, path.Base(want), "ActiveState"); state != "inactive" {
			t.Errorf("%s is %s", want, state)
		}
	}
	// A limit that is asked for is set.
	c := unplaced(b, "", "sleep", "600")
	limit := int64(33)
	c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: &limit}
	c.RunDetached()
	if got := property(t, "berth-"+c.ID+".scope", "TasksMax"); got != "33" {
		t.Errorf("TasksMax=%s, want 33", got)
	}
	c.Delete("--force")
	// An absolute path is the client's choice: an ordinary user may not use it, so it is left out.
	if os.Geteuid() == 0 {
		c = unplaced(b, "/"+b.Tag+"/chosen", "sleep", "600")
		c.RunDetached()
		if got := placeOf(t, c.State().Pid); got != "/"+b.Tag+"/chosen" {
			t.Errorf("a chosen place became %s", got)
		}
		c.Delete("--force")
	}
	// Its choice of the driver, too.
	b.Globals = append(b.Globals, "--cgroup-manager", "cgroupfs")
	if os.Geteuid() == 0 {
		c = unplaced(b, "", "sleep", "600")
		c.RunDetached()
		if got := placeOf(t, c.State().Pid); got != "/berth/"+c.ID {
			t.Errorf("with --cgroup-manager cgroupfs it is at %s", got)
		}
		c.Delete("--force")
	}
	noneInRoot(b)
}

// A box is a container like others.
func TestPlaceOfABox(t *testing.T) {
	b := withSystemd(t)
	b.Globals = []string{"--root", b.Root}
	in, hold := b.Held()
	cmd := box(b, "--", "/bin/sh", "-c", "read line; true")
	cmd.Stdin = in
	inService(b)
	running := cmd.Start()
	b.Wrap = nil
	id := ""
	wait.Until(t, "the box runs", func() bool {
		id = strings.TrimSpace(b.Berth("list", "--quiet").Stdout)
		return id != "" && strings.Contains(b.Berth("state", id).Stdout, `"running"`)
	})
	var state struct{ Pid int }
	harness.Decode(t, b.Berth("state", id).OK(t).Stdout, &state)
	if got, want := placeOf(t, state.Pid), ourSlice()+"/berth-"+id+".scope"; got != want {
		t.Errorf("it is at %s, want %s", got, want)
	}
	hold.Close()
	running.Wait().OK(t)
	noneInRoot(b)
}

// A service that is delegated to its program is the place for what that makes, also where systemd
// has not given the directory the unit's name, which may not be that of a controller's file.
func TestPlaceOnAnIsland(t *testing.T) {
	b := withSystemd(t)
	b.Globals = []string{"--root", b.Root}
	placeOnIsland(t, b, b.Tag+".service")
	placeOnIsland(t, b, "cpu."+b.Tag+".service") // a directory _cpu.…, but for older ones
}

func placeOnIsland(t *testing.T, b *harness.Box, unit string) {
	t.Helper()
	c := unplaced(b, "", "sh", "-c", "read line; true")
	in, hold := b.Held()
	limit := int64(33)
	c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: &limit}
	cmd := c.Command("run", nil)
	cmd.Stdin = in
	inService(b, "--unit="+unit, "-p", "Delegate=yes")
	running := cmd.Start()
	b.Wrap = nil
	wait.Until(t, "the container runs", func() bool { return strings.Contains(b.Berth("state", c.ID).Stdout, `"running"`) })
	got := placeOf(t, c.State().Pid)
	if at := property(t, unit, "ControlGroup"); got != at+"/berth/"+c.ID {
		t.Errorf("it is at %s, want below %s", got, at)
	}
	hold.Close()
	running.Wait().OK(t)
}

// What berth cgroup makes by a relative path is below one cgroup, or where the unit is delegated,
// in that.
func TestPlaceOfCgroupTools(t *testing.T) {
	b := withSystemd(t)
	b.Globals = []string{"--root", b.Root}
	inService(b)
	if os.Geteuid() != 0 {
		harness.Skip(t, "needs root outside of a delegated unit")
	}
	const home = "/berth"
	tool(b, "create", b.Tag+"/a").OK(t)
	tool(b, "set", "pids.limit=33", b.Tag+"/a").OK(t)
	if got := tool(b, "get", "-r", "pids.limit", b.Tag+"/a").OK(t).Stdout; !strings.Contains(got, "33") {
		t.Errorf("pids.limit: %s", got)
	}
	if got := tool(b, "list", b.Tag).OK(t).Stdout; !strings.Contains(got, home+"/"+b.Tag+"/a\n") {
		t.Errorf("%s/%s/a is not listed:\n%s", home, b.Tag, got)
	}
	place := func(args ...string) string {
		out := tool(b, append(append([]string{"run"}, args...), "cat", "/proc/self/cgroup")...).OK(t).Stdout
		return out
	}
	if got := place("--pids", "20"); !regexp.MustCompile(`:/machine\.slice/berth-run-(\d+)\.scope/run-\d+\n`).MatchString(got) || strings.Contains(got, home+"/") {
		t.Errorf("berth cgroup run is in %s, want a scope in machine.slice", got)
	}
	if got := place("--pids", "20", "--path", b.Tag+"/b"); !strings.Contains(got, ":"+home+"/"+b.Tag+"/b\n") {
		t.Errorf("berth cgroup run is in %s, want %s/%s/b", got, home, b.Tag)
	}
	tool(b, "delete", "-r", b.Tag).OK(t)
	tool(b, "tree", "init.scope").Fails(t, "write /init.scope")
	inService(b, "--unit="+b.Tag+".service", "-p", "Delegate=yes")
	if got := place("--pids", "20", "--path", "rel1"); !strings.Contains(got, "/"+b.Tag+".service/rel1") {
		t.Errorf("in a delegated service, berth cgroup run is in %s", got)
	}
	noneInRoot(b)
}

// The host's settings are read by every command, and options win.
func TestHostSettings(t *testing.T) {
	b := harness.New(t)
	set := func(text string) { b.WriteFile("etc/berth/berth.toml", text, 0o644) }
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		inService(b) // in a delegated one, that is the place
	}
	settled(t, b, "")
	set("cgroup-driver = \"cgroupfs\"\ncgroup-parent = \"/" + b.Tag + "\"\nroot = \"" + b.Path("elsewhere") + "\"\n")
	c := unplaced(b, "", "sleep", "600")
	c.RunDetached()
	h := harness.Hierarchies(t)[0]
	if _, err := os.Stat(filepath.Join(h.Dir, b.Tag, c.ID)); err != nil {
		t.Error(err)
	}
	c.Delete("--force")
	for name, want := range map[string]string{"cgroup-parnt = \"/a\"": "line 1: cgroup-parnt: unknown key, is it cgroup-parent?", "cgroup-parent = \"/\"": "belongs to the init system"} {
		set(name)
		b.Berth("list").Fails(t, "/etc/berth/berth.toml", want)
	}
	set("root = \"" + b.Path("elsewhere") + "\"")
	b.Globals = nil
	b.Berth("list").OK(t)
	b.Berth("state", "none").Fails(t, b.Path("elsewhere"))
	b.Berth("--root", b.Root, "state", "none").Fails(t, b.Root)
}
