package docs

import (
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/berth-runtime/berth/"

// The table of imports in docs/architecture.md is what the code has: no arrow that it does not
// draw, none that it draws for nothing, and none that closes a circle.
func TestArrows(t *testing.T) {
	drawn := arrowsOfThePage(t)
	found := arrowsOfTheCode(t)
	for _, from := range slices.Sorted(maps.Keys(found)) {
		for _, to := range slices.Sorted(maps.Keys(found[from])) {
			if !drawn[from][to] {
				t.Errorf("%s imports %s (in %s), which docs/architecture.md has no arrow for", from, to, found[from][to])
			}
		}
	}
	for _, from := range slices.Sorted(maps.Keys(drawn)) {
		for _, to := range slices.Sorted(maps.Keys(drawn[from])) {
			if found[from][to] == "" {
				t.Errorf("docs/architecture.md has an arrow from %s to %s, and nothing there imports that", from, to)
			}
			if drawn[to][from] {
				t.Errorf("docs/architecture.md has arrows from %s to %s and back", from, to)
			}
		}
	}
}

// arrowsOfThePage reads the rows of the table whose header is "from" and "to".
func arrowsOfThePage(t *testing.T) map[string]map[string]bool {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| from | to |\n| --- | --- |\n")
	if !found {
		t.Fatal("docs/architecture.md has no table of imports")
	}
	arrows := map[string]map[string]bool{}
	for line := range strings.Lines(table) {
		names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			break
		}
		from := names[0][1]
		arrows[from] = map[string]bool{}
		for _, to := range names[1:] {
			arrows[from][to[1]] = true
		}
	}
	return arrows
}

// arrowsOfTheCode asks the go command, and says for each arrow which package has it.
func arrowsOfTheCode(t *testing.T) map[string]map[string]string {
	list := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...")
	list.Dir, list.Stderr = "../..", os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal("go list: ", err)
	}
	arrows := map[string]map[string]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		from := strings.TrimPrefix(words[0], module)
		if r := room(from); r == "test" || r == "build" {
			continue // what is not shipped may look at everything
		}
		for _, to := range words[1:] {
			to, ours := strings.CutPrefix(to, module)
			if !ours {
				continue
			}
			a, b := room(from), room(to)
			if a == b && a == "engine" {
				a, b = inEngine(from), inEngine(to)
			}
			if a == b {
				continue
			}
			if arrows[a] == nil {
				arrows[a] = map[string]string{}
			}
			arrows[a][b] = from
		}
	}
	return arrows
}

func room(pkg string) string { return strings.SplitN(pkg, "/", 2)[0] }

func inEngine(pkg string) string { return path.Join(strings.SplitN(pkg+"/", "/", 3)[:2]...) }

// Each package says in a doc.go of its own what lives there.
func TestEveryPackageHasADoc(t *testing.T) {
	list := exec.Command("go", "list", "-f", "{{.Dir}} {{.Doc}}", "./...")
	list.Dir, list.Stderr = "../..", os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal("go list: ", err)
	}
	for line := range strings.Lines(string(out)) {
		dir, doc, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, err := os.Stat(path.Join(dir, "doc.go")); err != nil {
			t.Error(err)
		}
		if doc == "" {
			t.Errorf("%s: its doc.go says nothing", dir)
		}
	}
}
