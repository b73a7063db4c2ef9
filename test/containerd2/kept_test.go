package containerd2

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The shims of pods have keepers. They take a new program every second and are killed at random
// between, while a container writes its log, others come and go, and programs are executed in it.
func TestKilledShimsOfPods(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("there are keepers on amd64 alone")
	}
	t.Setenv("BERTH_SHIM_KEEPER", "1")
	t.Run("podsandbox", func(t *testing.T) { onNodes(t, killedShimsOfPods) })
	t.Run("shim", func(t *testing.T) { killedShimsOfPods(t, sandboxerNode(t, ownOptions)) })
}

func killedShimsOfPods(t *testing.T, n *node) {
	pods, period := 3, 6*time.Second
	if os.Getenv("BERTH_SOAK") != "" {
		pods, period = 60, 10*time.Minute
	}
	type one struct {
		*pod
		writes *container
		done   chan int
	}
	var all []one
	stop := make(chan struct{})
	for i := range pods {
		p := one{pod: n.runPod(), done: make(chan int, 1)}
		p.writes = p.run(fmt.Sprintf("trap s=1 TERM; i=0; while [ -z \"$s\" ]; do i=$((i+1)); echo $i; sleep 0.02; done; exit %d", i%50+10))
		all = append(all, p)
		go func() {
			count := 0
			defer func() { p.done <- count }()
			for ; ; count++ {
				select {
				case <-stop:
					return
				default:
				}
				r, err := n.ExecSync(n.ctx(), &cri.ExecSyncRequest{ContainerId: p.writes.id, Cmd: []string{"sh", "-c", fmt.Sprintf("echo o%d; exit %d", count, count%100)}, Timeout: 60})
				if err != nil || int(r.ExitCode) != count%100 || string(r.Stdout) != fmt.Sprintf("o%d\n", count) {
					t.Errorf("exec %d: %v, %v", count, r, err)
					return
				}
			}
		}()
	}
	kills, upgrades := n.Disturb(period)
	close(stop)
	execs := 0
	for i, p := range all {
		execs += <-p.done
		if _, err := n.StopContainer(n.ctx(), &cri.StopContainerRequest{ContainerId: p.writes.id, Timeout: 60}); err != nil {
			t.Errorf("stop: %v", err)
		}
		if got := p.writes.ended(); int(got.ExitCode) != i%50+10 {
			t.Errorf("status %v, want %d", got, i%50+10)
		}
		log, err := os.ReadFile(p.writes.log)
		if err != nil {
			t.Error(err)
		}
		lines := 0
		for line := range strings.Lines(string(log)) {
			lines++
			if want := fmt.Sprintf(" stdout F %d\n", lines); !strings.HasSuffix(line, want) {
				t.Errorf("line %d of pod %d is %q", lines, i, line)
				break
			}
		}
		if lines == 0 {
			t.Errorf("pod %d has written nothing", i)
		}
		p.remove()
	}
	t.Logf("%d kills, %d upgrades, %d execs between them", kills, upgrades, execs)
}
