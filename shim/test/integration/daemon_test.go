package integration

import (
	"os/exec"
	"testing"
	"time"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	events "github.com/containerd/containerd/api/services/events/v1"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"

	"github.com/berth-runtime/berth/test/containerd"
)

func TestMain(m *testing.M) { containerd.Main(m) }

// daemon is a containerd, and the clients of its services.
type daemon struct{ *containerd.Daemon }

func newDaemon(t testing.TB, release containerd.Release, env ...string) *daemon {
	t.Helper()
	return &daemon{containerd.New(t, release, containerd.Config{Env: env})}
}

func (d *daemon) tasks() tasks.TasksClient { return tasks.NewTasksClient(d.Conn) }
func (d *daemon) containers() containers.ContainersClient {
	return containers.NewContainersClient(d.Conn)
}
func (d *daemon) events() events.EventsClient { return events.NewEventsClient(d.Conn) }

// lookFor gives the path of a program, or skips the test.
func lookFor(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// patience is how long something may take on a busy machine that takes no time
// on another.
const patience = time.Minute
