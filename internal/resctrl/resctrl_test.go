package resctrl

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// fake is a directory that looks like resctrl: no machine at hand has the hardware.
// Directories made in it lack the files that the kernel would put there, so the
// tests put them where the rules say that a directory is to be.
func fake(t *testing.T, classes ...string) string {
	t.Helper()
	mount := t.TempDir()
	for _, class := range append(classes, ".") {
		dir := filepath.Join(mount, class)
		if err := os.MkdirAll(filepath.Join(dir, "mon_groups"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"schemata": "    L3:0=7ff;1=7ff\n    MB:0=100;1=100\n", "tasks": ""} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return mount
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFind(t *testing.T) {
	const table = "20 1 0:5 / /sys rw - sysfs sysfs rw\n30 20 0:26 / /sys/fs/resctrl rw,relatime - resctrl resctrl rw\n"
	if mount, err := Find(mountinfo.Parse(table)); err != nil || mount != "/sys/fs/resctrl" {
		t.Errorf("%q, %v", mount, err)
	}
	if _, err := Find(mountinfo.Parse("20 1 0:5 / /resctrl rw - sysfs resctrl rw\n")); !errors.Is(err, ErrNotMounted) {
		t.Errorf("no resctrl: %v", err)
	}
}

// TestPreparedClass: closID alone joins a class that is there.
func TestPreparedClass(t *testing.T) {
	mount := fake(t, "gold")
	g, err := Create(mount, "c1", &specs.LinuxIntelRdt{ClosID: "gold"})
	if err != nil {
		t.Fatal(err)
	}
	if g.Dir != filepath.Join(mount, "gold") || len(g.Made) != 0 {
		t.Errorf("%+v", g)
	}
	if err := g.Join(4711); err != nil || read(t, filepath.Join(mount, "gold", "tasks")) != "4711" {
		t.Errorf("join: %v", err)
	}
	if got := read(t, filepath.Join(mount, "gold", "schemata")); !strings.HasPrefix(got, "    L3:0=7ff") || strings.Count(got, "\n") != 2 {
		t.Errorf("the schemata were written: %q", got)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(g.Dir); err != nil {
		t.Errorf("a class of others was removed: %v", err)
	}
}

func TestClassThatIsMissing(t *testing.T) {
	mount := fake(t)
	_, err := Create(mount, "c1", &specs.LinuxIntelRdt{ClosID: "gold"})
	var field *FieldError
	if !errors.As(err, &field) || field.Pointer != "/closID" {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(mount, "gold")); err == nil {
		t.Error("it was made all the same")
	}
}

func TestDefaultClass(t *testing.T) {
	mount := fake(t)
	g, err := Create(mount, "c1", &specs.LinuxIntelRdt{ClosID: "/"})
	if err != nil || g.Dir != mount {
		t.Fatalf("%+v, %v", g, err)
	}
	if err := g.Join(1); err != nil || read(t, filepath.Join(mount, "tasks")) != "1" {
		t.Errorf("join: %v", err)
	}
}

// TestExistingClassIsCompared, and never changed.
func TestExistingClassIsCompared(t *testing.T) {
	for name, c := range map[string]struct {
		config  specs.LinuxIntelRdt
		pointer string // "" is accepted
	}{
		"the same":         {specs.LinuxIntelRdt{L3CacheSchema: "L3:0=7ff;1=7ff", MemBwSchema: "MB:0=100;1=100"}, ""},
		"part of it":       {specs.LinuxIntelRdt{L3CacheSchema: "L3:1=07FF"}, ""},
		"another mask":     {specs.LinuxIntelRdt{L3CacheSchema: "L3:0=f;1=7ff"}, "/l3CacheSchema"},
		"another share":    {specs.LinuxIntelRdt{MemBwSchema: "MB:0=20"}, "/memBwSchema"},
		"another resource": {specs.LinuxIntelRdt{Schemata: []string{"L2:0=f"}}, "/schemata/0"},
	} {
		t.Run(name, func(t *testing.T) {
			mount := fake(t, "gold")
			c.config.ClosID = "gold"
			before := read(t, filepath.Join(mount, "gold", "schemata"))
			_, err := Create(mount, "c1", &c.config)
			var field *FieldError
			if c.pointer == "" && err != nil || c.pointer != "" && (!errors.As(err, &field) || field.Pointer != c.pointer) {
				t.Errorf("%v, want %q", err, c.pointer)
			}
			if read(t, filepath.Join(mount, "gold", "schemata")) != before {
				t.Error("its schemata were written")
			}
		})
	}
}

// TestOrderOfSchemata: L3 first, then memory bandwidth, then the general list;
// bandwidth in the wrong entry gives way.
func TestOrderOfSchemata(t *testing.T) {
	list := schemataOf(&specs.LinuxIntelRdt{
		L3CacheSchema: "MB:0=1\nL3:0=f", MemBwSchema: "MB:0=20", Schemata: []string{"L2:0=3", "MB:0=30"},
	})
	var lines []string
	for _, s := range list {
		lines = append(lines, s.line)
	}
	if got := strings.Join(lines, " "); got != "L3:0=f MB:0=20 L2:0=3 MB:0=30" {
		t.Errorf("%s", got)
	}
	if list := schemataOf(&specs.LinuxIntelRdt{}); len(list) != 0 {
		t.Errorf("without any: %v", list)
	}
}

// TestOwnFolder: without closID the container's own directory is made and removed.
func TestOwnFolder(t *testing.T) {
	mount := fake(t)
	g, err := Create(mount, "c1", &specs.LinuxIntelRdt{})
	if err != nil {
		t.Fatal(err)
	}
	if g.Dir != filepath.Join(mount, "c1") || len(g.Made) != 1 {
		t.Errorf("%+v", g)
	}
	if err := g.Join(42); err != nil {
		t.Error(err)
	}
	tasks := filepath.Join(g.Dir, "tasks")
	if text, err := os.ReadFile(tasks); err != nil || string(text) != "42" {
		t.Errorf("tasks: %q, %v", text, err)
	}
	os.Remove(tasks) // of resctrl it goes with the directory
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(g.Dir); err == nil {
		t.Error("it is still there")
	}
}

// TestMonitoring makes a group of the container's id below its class, and takes
// only that away.
func TestMonitoring(t *testing.T) {
	mount := fake(t, "gold")
	g, err := Create(mount, "c1", &specs.LinuxIntelRdt{ClosID: "gold", EnableMonitoring: true})
	if err != nil {
		t.Fatal(err)
	}
	monitor := filepath.Join(mount, "gold", "mon_groups", "c1")
	if _, err := os.Stat(monitor); err != nil {
		t.Fatal(err)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(monitor); err == nil {
		t.Error("the monitoring group is still there")
	}
	if _, err := os.Stat(g.Dir); err != nil {
		t.Errorf("the class is gone: %v", err)
	}
}

// TestFailureUndoes: what was made goes when something behind it fails.
func TestFailureUndoes(t *testing.T) {
	mount := fake(t)
	// The directory that is made has no schemata file in this fake.
	if _, err := Create(mount, "c1", &specs.LinuxIntelRdt{L3CacheSchema: "L3:0=f"}); err == nil {
		t.Fatal("it worked without a schemata file")
	}
	if _, err := os.Stat(filepath.Join(mount, "c1")); err == nil {
		t.Error("the folder was left")
	}
}

func TestRestorer(t *testing.T) {
	dir := fake(t)
	restore, err := Restorer(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := restore(); err != nil {
		t.Error(err)
	}
	if got := read(t, dir+"/schemata"); strings.Count(got, "\n") != 2 {
		t.Errorf("what had not changed was written: %q", got)
	}
	// As the kernel would have it after a change of the one line; a fake keeps what is written to
	// it.
	if err := os.WriteFile(dir+"/schemata", []byte("    L3:0=1;1=7ff\n    MB:0=100;1=100\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := restore(); err != nil {
		t.Error(err)
	}
	if got := read(t, dir+"/schemata"); !strings.HasSuffix(got, "MB:0=100;1=100\nL3:0=7ff;1=7ff\n") {
		t.Errorf("schemata %q", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("L3:0=7f0;1=1f")
	f.Fuzz(func(t *testing.T, line string) { parse(line) })
}
