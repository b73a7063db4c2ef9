package compile_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/engine/program/refinterp"
	"github.com/berth-runtime/berth/engine/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write the golden files anew")

// theHost is a host that no test depends on being.
var theHost = &host.Host{Layout: ledger.Layout{Unified: []string{"cpu", "memory", "pids"}}, SELinux: true}

// planOf plans a config of testdata.
func planOf(t testing.TB, config []byte) *plan.Plan {
	t.Helper()
	s, _, err := spec.ParseChecked(config)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(s, theHost, plan.Options{ID: "demo", Bundle: "/bundle"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// factsOf are facts as a runtime with the host's rights would have them.
func factsOf(p *plan.Plan) *compile.Facts {
	f := &compile.Facts{Report: 3, Gate: 4, LastCap: 40, OpenFiles: 1024, Sources: make([]compile.Source, len(p.Mounts)),
		CgroupDirs: []compile.CgroupDir{{Path: "/sys/fs/cgroup/demo"}}}
	for i := range f.Sources {
		f.Sources[i].Dir = true
	}
	f.MapIDs = p.Makes(specs.UserNamespace)
	if p.Makes(specs.TimeNamespace) {
		f.Fork, f.NewNamespaces = true, unix.CLONE_NEWTIME|unix.CLONE_NEWPID
	}
	return f
}

// ownTreeOf are the facts of a runtime on a kernel that has kernel.TreeNamespace, where that can be
// used.
func ownTreeOf(p *plan.Plan) (f *compile.Facts, usable bool) {
	f = factsOf(p)
	f.OwnTree = p.Namespace(specs.UserNamespace) == nil && !f.Fork && p.Root.Propagation&unix.MS_SHARED == 0
	return f, f.OwnTree
}

// programsOf compiles a config for each kind of kernel.
func programsOf(t testing.TB, config []byte) map[string]*program.Program {
	t.Helper()
	all := map[string]*program.Program{"": compileConfig(t, config)}
	p := planOf(t, config)
	if f, usable := ownTreeOf(p); usable {
		code, err := compile.Container(p, f)
		if err != nil {
			t.Fatal(err)
		}
		all[".owntree"] = code
	}
	return all
}

func compileConfig(t testing.TB, config []byte) *program.Program {
	t.Helper()
	p := planOf(t, config)
	code, err := compile.Container(p, factsOf(p))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// TestGolden compares whole Programs. A difference is to be read line by line
// before it is accepted with -update.
func TestGolden(t *testing.T) {
	onAMD64(t)
	configs, err := filepath.Glob("testdata/*.json")
	if err != nil || len(configs) == 0 {
		t.Fatalf("no configs: %v", err)
	}
	for _, name := range configs {
		t.Run(filepath.Base(name), func(t *testing.T) {
			config, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for kind, code := range programsOf(t, config) {
				compareGolden(t, strings.TrimSuffix(name, ".json")+kind+".golden", code)
			}
		})
	}
}

func compareGolden(t *testing.T, golden string, code *program.Program) {
	t.Helper()
	got := code.String()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the Program differs from %s:\n%s", golden, difference(string(want), got))
	}
}

func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			line := func(l []string) string {
				if i < len(l) {
					return l[i]
				}
				return "(end)"
			}
			return "want " + line(w) + "\ngot  " + line(g)
		}
	}
	return ""
}

// TestProgramsRun runs each Program over a kernel where all goes well: it ends in
// the user's execve, having asked for the start exactly once.
func TestProgramsRun(t *testing.T) {
	configs, _ := filepath.Glob("testdata/*.json")
	for _, name := range configs {
		t.Run(filepath.Base(name), func(t *testing.T) {
			config, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, code := range programsOf(t, config) {
				runs(t, code)
			}
		})
	}
}

func runs(t *testing.T, code *program.Program) {
	t.Helper()
	talk := code.Talk()
	kernel := &refinterp.Fake{FDs: []int{0, 1, 2, 3, 4}, Answer: func(c refinterp.Call, mem *refinterp.Memory) (int64, bool) {
		hears(t, talk, c, mem)
		return inTheChild(c, mem)
	}}
	result, err := refinterp.Run(code.Segment(), kernel)
	if err != nil {
		t.Fatal(err)
	}
	if result.Failure != nil || !result.Gone {
		t.Fatalf("it ended with %+v after\n%s", result.Failure, strings.Join(kernel.Texts(), "\n"))
	}
	last := kernel.Calls[len(kernel.Calls)-1]
	if last.Nr != unix.SYS_EXECVE {
		t.Errorf("its last call is %s", last.Text)
	}
	accepts := 0
	for _, c := range kernel.Calls {
		if c.Nr == unix.SYS_ACCEPT4 {
			accepts++
		}
	}
	if accepts != 1 {
		t.Errorf("it passed the gate %d times", accepts)
	}
}

// hears has what a Program says read as the runtime does.
func hears(t *testing.T, talk *program.Talk, c refinterp.Call, mem *refinterp.Memory) {
	t.Helper()
	record, descriptors := c.Args[1], 0
	switch c.Nr {
	case unix.SYS_SENDTO:
	case unix.SYS_SENDMSG:
		message, _ := mem.Uint64(c.Args[1] + 16)
		record, _ = mem.Uint64(message)
		descriptors = 1
	default:
		return
	}
	text, _ := mem.Bytes(record, program.RecordLen)
	if _, _, err := talk.Hear(text, descriptors); err != nil {
		t.Errorf("%s: %v", c.Text, err)
	}
}

// inTheChild lets a clone return in the child, where the Program goes on.
func inTheChild(c refinterp.Call, _ *refinterp.Memory) (int64, bool) {
	return 0, c.Nr == unix.SYS_CLONE
}

// TestEveryCallIsExplained makes sure that each call that may fail says what it
// is for.
func TestEveryCallIsExplained(t *testing.T) {
	configs, _ := filepath.Glob("testdata/*.json")
	for _, name := range configs {
		config, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for kind, code := range programsOf(t, config) {
			for _, l := range code.Lines() {
				if l.Note.Text == "" {
					t.Errorf("%s%s: op %d (%s) has no note", name, kind, l.Index, l.Call)
				}
			}
		}
	}
}

// TestNothingIsOpenedByPathBelowTheRoot holds the rule that content of the root
// file system never leads a call elsewhere: every path of the container is
// resolved by openat2 inside the root, or is a single name in a directory that was.
func TestNothingIsOpenedByPathBelowTheRoot(t *testing.T) {
	config, err := os.ReadFile("testdata/full.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range compileConfig(t, config).Lines() {
		switch l.Call {
		case "mkdirat", "mknodat", "symlinkat", "fchownat":
			for _, arg := range l.Args[1:2] {
				if strings.Contains(strings.Trim(arg, `"`), "/") && l.Call != "symlinkat" {
					t.Errorf("op %d: %s takes the path %s", l.Index, l.Call, arg)
				}
			}
		case "openat2":
			if !strings.Contains(l.String(), "open_how") && len(l.Args) != 4 {
				t.Errorf("op %d: %s", l.Index, l)
			}
		case "openat":
			if strings.Contains(l.Args[1], "rootfs") {
				t.Errorf("op %d opens %s by path", l.Index, l.Args[1])
			}
		}
	}
}

func BenchmarkContainer(b *testing.B) {
	config, err := os.ReadFile("testdata/full.json")
	if err != nil {
		b.Fatal(err)
	}
	p := planOf(b, config)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := compile.Container(p, factsOf(p)); err != nil {
			b.Fatal(err)
		}
	}
}
