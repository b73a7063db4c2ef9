package containerd2

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/containerd"
)

// The commands of docs/containerd.md do what the page says, from an image that
// containerd has unpacked.
func TestDocumentedCommands(t *testing.T) {
	containerd.Each(t, func(t *testing.T, r containerd.Release) {
		shims := filepath.Dir(containerd.BuildShim(t))
		d := containerd.New(t, r, containerd.Config{Env: []string{"PATH=" + shims + ":" + os.Getenv("PATH")}})
		d.Image(containerd.Namespace, image, "sh")
		docs := readPage(t, "containerd.md")
		for _, words := range []string{"ctr run --rm --runtime io.containerd.berth.v2", "ctr run --rm --runtime $PWD/bin"} {
			command := substitute(t, docs.block(t, "sh", words), "$IMAGE", image)
			command = strings.Replace(command, "$PWD/bin", shims, 1)
			command = substitute(t, command, "ctr run", r.Ctr+" --address "+d.Dir+"/c.sock --namespace "+containerd.Namespace+" run")
			cmd := exec.Command("sh", "-c", command)
			var warnings bytes.Buffer // such as that this host's cgroups are of version 1
			cmd.Stderr = &warnings
			if out, err := cmd.Output(); err != nil || string(out) != "Hello from a container\n" {
				t.Errorf("%s: %v\n%s%s", command, err, out, &warnings)
			}
		}
		if t.Failed() {
			t.Log(d.Log())
		}
		// This run has not said where the engine keeps its state, so that is looked for here.
		left, _ := filepath.Glob("/run/containerd/berth/" + containerd.Namespace + "/hello")
		if len(left) != 0 {
			t.Errorf("left: %q", left)
		}
	})
}
