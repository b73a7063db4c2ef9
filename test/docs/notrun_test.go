package docs

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notRun are the commands and files that the README, the tutorial and the how-tos show without a
// test that runs them as they stand: each page's, by its first line, and why.
var notRun = map[string]map[string]string{
	"README.md": {
		"    config.json: /mounts/3: ": "no command, but an error as an example",
	},
	"docs/tutorial.md": {
		"```yaml apiVersion: node.k8s.io/v1": "test/containerd2 makes a pod of it, as a kubelet does: there is no Kubernetes in Debian",
		"```yaml apiVersion: v1":             "the same",
		"    hello from process 1":           "what the pod says: the same test looks for it",
	},
	"docs/howto/rootless.md": {
		"    sudo apt install uidmap":                      "changes the machine's users",
		"    systemd-run --user --scope -p Delegate=yes":   "needs a user manager of systemd: test/guests/test runs the tests of an ordinary user by this command",
		"    mkdir -p /etc/systemd/system/user@.service.d": "changes the machine's systemd: test/guests/make-image does it to the guests",
	},
}

// What people are told to type is run by a test, or stands in the list above with the reason.
func TestNothingElseIsNotRun(t *testing.T) {
	pages, err := filepath.Glob("../../docs/howto/*.md")
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	for _, file := range append(pages, "../../README.md", "../../docs/tutorial.md") {
		name := filepath.ToSlash(strings.TrimPrefix(file, "../../"))
		why := notRun[name]
		for _, first := range shownOnly(read(t, file)) {
			known := slices.ContainsFunc(slices.Collect(maps.Keys(why)), func(words string) bool { return strings.HasPrefix(first, words) })
			if !known {
				t.Errorf("%s: no test runs this, and no reason is given: %q", name, first)
			} else {
				used++
			}
		}
	}
	listed := 0
	for _, why := range notRun {
		listed += len(why)
	}
	if used != listed {
		t.Errorf("%d of the %d blocks that are listed as not run are there", used, listed)
	}
}

// shownOnly gives the first line of each block of a page that is no script and not what one prints.
// That of a fenced one stands behind its fence, and an indented one's has its spaces.
func shownOnly(text string) []string {
	var blocks []string
	lines := strings.Split(text, "\n")
	indented, run := false, false
	for i := 0; i < len(lines); i++ {
		language, fence := strings.CutPrefix(lines[i], "```")
		if fence {
			if language != "sh" && !(language == "text" && run) && i+1 < len(lines) {
				blocks = append(blocks, lines[i]+" "+lines[i+1])
			}
			run = language == "sh"
			for i++; i < len(lines) && lines[i] != "```"; i++ {
			}
			indented = false
			continue
		}
		if now := strings.HasPrefix(lines[i], "    "); now != indented {
			if indented = now; indented {
				blocks = append(blocks, lines[i])
			}
		}
		run = run && strings.TrimSpace(lines[i]) == ""
	}
	return blocks
}

func TestShownOnly(t *testing.T) {
	got := shownOnly("words\n```sh\n    ls\n```\n\n```text\nout\n```\nwords\n\n    shown\n    more\n\n```text\nlonely\n```\n```toml\nx\n```\n")
	if want := []string{"    shown", "```text lonely", "```toml x"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
