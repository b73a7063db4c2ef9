package cluster

import (
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/test/containerd"
)

// The images that the nodes have. All are of one root file system with busybox, besides the
// installer's, which is what build/deploy/Dockerfile makes over that.
const toolsImage = "cluster.test/tools:1"

// images writes the archives that node has containerd import.
func (c *Cluster) images() {
	c.t.Helper()
	for file, image := range map[string]struct {
		root, name string
		entrypoint []string
	}{
		"pause":     {"tools", "cluster.test/pause:1", []string{"/bin/sleep", "infinity"}},
		"tools":     {"tools", toolsImage, nil},
		"installer": {"installer", "docker.io/library/berth-installer:latest", nil},
	} {
		archive := containerd.Archive(c.t, filepath.Join(c.parts, "roots", image.root), image.name, image.entrypoint)
		if err := os.WriteFile(filepath.Join(c.parts, "images", file+".tar"), archive, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}
