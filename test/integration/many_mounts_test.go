package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// withFewDescriptors runs a container with so few descriptors as a login shell has, which the
// set-up can't raise.
func withFewDescriptors(t *testing.T, c *harness.Container) harness.Result {
	t.Helper()
	cmd := c.Command("run", nil)
	cmd.Wrap = []string{"/bin/sh", "-c", `ulimit -n 1024 && exec "$0" "$@"`}
	return cmd.Run()
}

// The descriptors that a set-up has open do not grow with the number of mounts, nor with how deep
// their targets are.
func TestManyMountsWithFewDescriptors(t *testing.T) {
	tmpfs := func(c *harness.Container, destination string, options ...string) {
		c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: destination, Type: "tmpfs", Source: "tmpfs", Options: append(options, "size=4k")})
	}
	for name, test := range map[string]struct {
		count int
		with  func(c *harness.Container, i int)
	}{
		"missing targets": {250, func(c *harness.Container, i int) { tmpfs(c, fmt.Sprintf("/missing/%d", i)) }},
		"deep targets":    {250, func(c *harness.Container, i int) { tmpfs(c, fmt.Sprintf("/%d%s", i, strings.Repeat("/d", 60))) }},
		"filled": {250, func(c *harness.Container, i int) {
			c.WriteFile(fmt.Sprintf("filled/%d/file", i), "", 0o644)
			tmpfs(c, fmt.Sprintf("/filled/%d", i), "tmpcopyup")
		}},
		"dangling": {250, func(c *harness.Container, i int) {
			if err := os.Symlink(fmt.Sprintf("/to/%d/deep/er", i), c.Path(fmt.Sprintf("etc/%d", i))); err != nil {
				t.Fatal(err)
			}
			tmpfs(c, fmt.Sprintf("/etc/%d", i))
		}},
		"each in the one before": {250, func(c *harness.Container, i int) { tmpfs(c, "/in"+strings.Repeat("/d", i)) }},
		"two and two": {1500, func(c *harness.Container, i int) {
			tmpfs(c, fmt.Sprintf("/two/%d%s", i/2, strings.Repeat("/below", i%2)))
		}},
		"devices that are there": {1000, func(c *harness.Container, i int) {
			c.Spec.Linux.Devices = append(c.Spec.Linux.Devices, specs.LinuxDevice{Path: fmt.Sprintf("/dev/%d", i/2), Type: "c", Major: 1, Minor: 3})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/grep", "-c", " ", "/proc/self/mountinfo")
			for i := range test.count {
				test.with(c, i)
			}
			withFewDescriptors(t, c).OK(t)
		})
	}
}

// A list of paths may be long, too: some engines mask what they find on the host, file by file.
func TestManyMaskedPaths(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "grep -c /masked/ /proc/self/mountinfo; cat /masked/19999; ls /masked/d; touch /masked/fixed")
	for i := range 200 {
		name := fmt.Sprintf("/masked/%d", 19999-i)
		c.WriteFile(name, "secret", 0o644)
	}
	c.WriteFile("/masked/d/secret", "secret", 0o644)
	c.WriteFile("/masked/fixed", "", 0o644)
	for i := range 20_000 {
		c.Spec.Linux.MaskedPaths = append(c.Spec.Linux.MaskedPaths, fmt.Sprintf("/masked/%d", i))
		c.Spec.Linux.ReadonlyPaths = append(c.Spec.Linux.ReadonlyPaths, fmt.Sprintf("/readonly/%d", i))
	}
	c.Spec.Linux.MaskedPaths = append(c.Spec.Linux.MaskedPaths, "/masked/d")
	c.Spec.Linux.ReadonlyPaths = append(c.Spec.Linux.ReadonlyPaths, "/masked/fixed")
	if r := withFewDescriptors(t, c); strings.TrimSpace(r.Stdout) != "202" || !strings.Contains(r.Stderr, "Read-only file system") {
		t.Errorf("%+.2000v", r)
	}
}
