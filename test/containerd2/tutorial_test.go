package containerd2

import (
	"os"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	"go.yaml.in/yaml/v3"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The pod at the end of the tutorial says what the page says, made as a kubelet makes it.
func TestTutorialPod(t *testing.T) {
	docs := readPage(t, "tutorial.md")
	var pod struct {
		Metadata struct{ Name string }
		Spec     struct {
			RuntimeClassName string `yaml:"runtimeClassName"`
			Containers       []struct{ Command []string }
		}
	}
	if err := yaml.Unmarshal([]byte(docs.block(t, "yaml", "apiVersion: v1\nkind: Pod\n")), &pod); err != nil {
		t.Fatal(err)
	}
	handler := documentedHandler(t, docs)
	if len(pod.Spec.Containers) != 1 || pod.Spec.RuntimeClassName != handler {
		t.Fatalf("%+v, handler %q", pod, handler)
	}
	onNodes(t, func(t *testing.T, n *node) {
		if handler != n.handler {
			t.Errorf("the tutorial's handler is %q, that of docs/kubernetes.md %q", handler, n.handler)
		}
		p := n.runPod(func(c *cri.PodSandboxConfig) { c.Metadata.Name = pod.Metadata.Name })
		c := p.run("", func(c *cri.ContainerConfig) { c.Command = pod.Spec.Containers[0].Command })
		wait.Until(t, "the log", func() bool {
			log, _ := os.ReadFile(c.log)
			_, said, _ := strings.Cut(strings.TrimSpace(string(log)), " stdout F ")
			return said != "" && strings.Contains(string(docs), "\n    "+said+"\n")
		})
		p.remove()
	})
}
