package integration

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/berth-runtime/berth/test/harness"
)

// What looks at the tree takes it as it is: names that are no text, cgroups that come and go
// meanwhile, and paths longer than the kernel takes.
func TestCgroupToolsTakeAnyTree(t *testing.T) {
	b := harness.New(t)
	path := demo(b)
	odd := []string{"a b", "tab\there", "\x1b[31mred", "\xff\xfe", "-n", "k=v", "a:b", "*", "$(id)", strings.Repeat("ä", 127)}
	dirs := []string{}
	for _, mount := range cgroupMounts(b) {
		dirs = append(dirs, filepath.Join(mount, path))
	}
	for _, dir := range dirs {
		for _, name := range odd {
			if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	// On version 2 one of them gives a controller to its children, so that controllers names it.
	for _, dir := range dirs {
		words, _ := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		if name, _, _ := strings.Cut(strings.TrimSpace(string(words)), " "); name != "" {
			for _, giver := range []string{dir, filepath.Join(dir, "\x1b[31mred")} {
				if err := os.WriteFile(filepath.Join(giver, "cgroup.subtree_control"), []byte("+"+name), 0); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	end := make(chan struct{})
	var churn sync.WaitGroup
	for _, dir := range dirs {
		churn.Add(1)
		go func() {
			defer churn.Done()
			for {
				select {
				case <-end:
					return
				default:
				}
				inner := filepath.Join(dir, "comes", "and goes")
				if err := os.MkdirAll(inner, 0o755); err != nil {
					t.Error(err)
					return
				}
				os.Remove(inner)
				os.Remove(filepath.Dir(inner))
			}
		}()
	}
	for range 3 {
		for _, args := range [][]string{{"list"}, {"list", "--json"}, {"list", path}, {"controllers"}, {"controllers", "--json"},
			{"tree", path}, {"tree", "--json", path}, {"top", "-n", "1", "-d", "0.1", path}, {"get", "-a", path + "/comes"}} {
			r := tool(b, args...)
			if args[0] == "get" && r.Code != 0 { // it was gone
				r.Fails(t, "no such")
				continue
			}
			r.OK(t)
			if strings.Contains(r.Stdout, "\x1b") || !utf8.ValidString(r.Stdout) {
				t.Errorf("%q writes what is no text, or for the terminal: %q", args, r.Stdout)
			}
			if args[0] != "controllers" && args[0] != "get" && !strings.Contains(r.Stdout, "k=v") {
				t.Errorf("%q leaves out what is there", args)
			}
		}
	}
	close(end)
	churn.Wait()
}

// cgroupMounts are the mount points of the hierarchies, as the engine finds them.
func cgroupMounts(b *harness.Box) (list []string) {
	b.T.Helper()
	for line := range strings.Lines(tool(b, "controllers", "-m").OK(b.T).Stdout) {
		_, mount, _ := strings.Cut(strings.TrimSpace(line), " ")
		list = append(list, mount)
	}
	return list
}
