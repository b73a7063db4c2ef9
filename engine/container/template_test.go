package container

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/atomicfile"
)

// What exec does to the process that Template gives is not done to the config that it
// plans by, which is read once for both.
func TestTemplateIsACopy(t *testing.T) {
	dir, err := unix.Open(t.TempDir(), unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &Container{Record: Record{ID: "c"}, runtime: &Runtime{}, dir: dir}
	defer c.Close()
	config := `{"ociVersion":"1.2.0","process":{"cwd":"/","args":["a"],"env":["A=1"],"user":{"uid":1,"gid":2,"additionalGids":[3]},
		"capabilities":{"bounding":["CAP_KILL"],"effective":["CAP_KILL"],"permitted":["CAP_KILL"]}},"root":{"path":"rootfs"}}`
	if err := atomicfile.Write(dir, configFile, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := c.Template()
	if err != nil {
		t.Fatal(err)
	}
	process.Args = []string{"b"}
	process.Env = append(process.Env, "B=2")
	process.User.AdditionalGids = append(process.User.AdditionalGids, 4)
	process.Capabilities.Bounding = append(process.Capabilities.Bounding, "CAP_CHOWN")
	if err := unix.Unlinkat(dir, configFile, 0); err != nil {
		t.Fatal(err)
	}
	p, err := c.plan()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Process.Args, []string{"a"}) || slices.Contains(p.Process.Env, "B=2") || !slices.Equal(p.Process.Groups, []uint32{3}) {
		t.Errorf("the plan is %+v", p.Process)
	}
	if c.parsed != nil {
		t.Error("the config is kept for longer")
	}
	if _, err := c.plan(); err == nil {
		t.Error("a second plan did not read the config again")
	}
}
