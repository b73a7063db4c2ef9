package integration

import (
	"os"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// refused runs the bundle by both commands that take one: each has to fail with one line that has
// the words. That nothing is left behind is the Box's to see.
func refused(t *testing.T, c *harness.Container, words ...string) {
	t.Helper()
	c.TryCreate().Fails(t, words...)
	c.Run().Fails(t, words...)
	c.Box.Berth("state", c.ID).Fails(t, "container does not exist")
}

func TestNoConfig(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.WriteConfig("")
	if err := os.Remove(c.Dir + "/config.json"); err != nil {
		t.Fatal(err)
	}
	refused(t, c, "config.json", "no such file or directory")
}

func TestNoBundle(t *testing.T) {
	b := harness.New(t)
	b.Berth("run", "--bundle", b.Path("nowhere"), "x").Fails(t, b.Path("nowhere"), "no such file or directory")
	b.Berth("run", "--bundle", b.WriteFile("file", "", 0o644), "x").Fails(t, b.Path("file"), "not a directory")
}

func TestConfigIsAFolder(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.WriteConfig("")
	remake(t, c.Dir+"/config.json")
	refused(t, c, "config.json")
}

func TestBrokenConfig(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		words []string
	}{
		"empty":              {"", []string{"config.json"}},
		"blanks":             {" \n\t ", []string{"config.json"}},
		"null":               {"null", []string{"config.json"}},
		"a list":             {"[]", []string{"config.json"}},
		"cut off":            {`{"ociVersion": "1.0.2", "process": {`, []string{"config.json"}},
		"a comma too many":   {`{"ociVersion": "1.0.2",}`, []string{"config.json"}},
		"text after the end": {`{"ociVersion": "1.0.2"} {}`, []string{"config.json"}},
		"binary":             {"\x7fELF\x00\x01", []string{"config.json"}},
		"a wrong type":       {`{"ociVersion": "1.0.2", "process": {"args": "sh"}}`, []string{"/process/args"}},
		"a number too big":   {`{"ociVersion": "1.0.2", "process": {"user": {"uid": 4294967296}}}`, []string{"/process/user/uid"}},
		"a negative number":  {`{"ociVersion": "1.0.2", "process": {"user": {"uid": -1}}}`, []string{"/process/user/uid"}},
		"half a surrogate":   {`{"ociVersion": "1.0.2", "hostname": "\ud800"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/true")
			c.WriteConfig(test.text)
			refused(t, c, test.words...)
		})
	}
}

// Nesting must not use up the stack, nor the memory.
func TestDeeplyNestedConfig(t *testing.T) {
	for name, text := range map[string]string{
		"arrays":        strings.Repeat("[", 20_000_000),
		"unknown field": `{"ociVersion": "1.0.2", "x": ` + strings.Repeat("[", 20_000_000),
		"objects":       strings.Repeat(`{"a":`, 5_000_000),
		"complete":      `{"ociVersion": "1.0.2", "x": ` + strings.Repeat("[", 5_000_000) + strings.Repeat("]", 5_000_000) + "}",
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/true")
			c.WriteConfig(text)
			refused(t, c, "config.json")
		})
	}
}

// A file that never ends, or gives nothing, is no config.
func TestConfigThatIsNoFile(t *testing.T) {
	for _, target := range []string{"/dev/zero", "/dev/null", "/dev/full"} {
		b := harness.New(t)
		c := b.Container("/bin/true")
		c.WriteConfig("")
		replaceWithLink(t, c.Dir+"/config.json", target)
		refused(t, c, "config.json")
	}
}

func TestWrongValues(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *specs.Spec)
		words  []string
	}{
		"no version":         {func(s *specs.Spec) { s.Version = "" }, []string{"/ociVersion"}},
		"a version to come":  {func(s *specs.Spec) { s.Version = "2.0.0" }, []string{"/ociVersion", "2.0.0"}},
		"no version at all":  {func(s *specs.Spec) { s.Version = "one" }, []string{"/ociVersion"}},
		"no root":            {func(s *specs.Spec) { s.Root = nil }, []string{"/root"}},
		"an empty root":      {func(s *specs.Spec) { s.Root.Path = "" }, []string{"/root/path"}},
		"no arguments":       {func(s *specs.Spec) { s.Process.Args = nil }, []string{"/process/args"}},
		"empty arguments":    {func(s *specs.Spec) { s.Process.Args = []string{} }, []string{"/process/args"}},
		"an empty program":   {func(s *specs.Spec) { s.Process.Args = []string{""} }, []string{"/process/args/0"}},
		"no cwd":             {func(s *specs.Spec) { s.Process.Cwd = "" }, []string{"/process/cwd"}},
		"a relative cwd":     {func(s *specs.Spec) { s.Process.Cwd = "tmp" }, []string{"/process/cwd"}},
		"a zero byte in env": {func(s *specs.Spec) { s.Process.Env = []string{"A=b\x00c"} }, []string{"/process/env/0"}},
		"a zero byte in arg": {func(s *specs.Spec) { s.Process.Args = []string{"/bin/true", "a\x00"} }, []string{"/process/args/1"}},
		"no destination": {func(s *specs.Spec) {
			s.Mounts = append(s.Mounts, specs.Mount{Type: "tmpfs"})
		}, []string{"/mounts/6/destination"}},
		"mount namespace missing": {func(s *specs.Spec) { harness.WithoutNamespace(s, specs.MountNamespace) }, []string{"/linux/namespaces"}},
		"a scheduler of no kind": {func(s *specs.Spec) {
			s.Process.Scheduler = &specs.Scheduler{Policy: "SCHED_FAST"}
		}, []string{"/process/scheduler/policy"}},
		"a personality of no kind": {func(s *specs.Spec) {
			s.Linux.Personality = &specs.LinuxPersonality{Domain: "WINDOWS"}
		}, []string{"/linux/personality/domain"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/true")
			test.change(c.Spec)
			refused(t, c, test.words...)
		})
	}
}

// Who has three mistakes is told of three, in the one line.
func TestAllComplaintsAtOnce(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Process.Cwd = "relative"
	c.Spec.Linux.RootfsPropagation = "sometimes"
	c.Spec.Process.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NOSUCH"}}
	refused(t, c, "/process/cwd", "/linux/rootfsPropagation", "/process/rlimits/0/type")
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Linux.CgroupsPath = "/" + c.ID
	c.Write()
	text := readFile(t, c.Dir+"/config.json")
	c.WriteConfig(`{"tomorrow": {"a": [1, 2.5e10, null, true, "x"]}, "linux2": {},` + strings.TrimPrefix(text, "{"))
	c.Run().OK(t)
}
