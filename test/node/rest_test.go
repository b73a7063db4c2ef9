package node

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"golang.org/x/sys/unix"
)

// resting is a daemon that has nothing to do, on a machine with containers.
type resting struct {
	testing.TB
	pid    int
	socket string
}

const containers = 200

// rest starts a daemon beside 200 containers: units of systemd where that is the init
// system, else cgroups of the test's own. Nothing that others use is changed.
func rest(t testing.TB) *resting {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making cgroups at the top takes root")
	}
	dir := t.TempDir()
	r := &resting{TB: t, socket: filepath.Join(dir, "http")}
	args := []string{"watch", "--state-dir=" + dir + "/state", "--listen=unix:" + r.socket, "--kernel-parameters=check", "--berth-parent=off", "--pods-enforce=cpu"}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		args = append(args, "--cgroup-root=/"+unitContainers(t))
	} else {
		args = append(args, "--cgroup-root="+plainContainers(t))
	}
	r.start(exec.Command(program(t), args...))
	if text := r.get("/metrics"); !strings.Contains(text, fmt.Sprintf("berth_node_containers{qos=\"workloads\"} %d\n", containers)) {
		t.Fatalf("it does not see %d containers:\n%s", containers, text)
	}
	return r
}

// start runs a daemon until the end of the test, and waits until it listens.
func (r *resting) start(cmd *exec.Cmd) {
	t := r.TB
	t.Helper()
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.pid = cmd.Process.Pid
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // strace passes it on
		cmd.Wait()
		if t.Failed() {
			t.Logf("it said: %s", &said)
		}
	})
	for until := time.Now().Add(90 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("unix", r.socket); err == nil { // that it is there says nothing: it is bound before listen(2)
			conn.Close()
			break
		}
		if time.Now().After(until) {
			t.Fatal("the daemon does not listen")
		}
	}
}

// topGroup makes a cgroup at the top, which is gone with all below it after the test.
func topGroup(t testing.TB, name string) (*cgroup.Host, string) {
	t.Helper()
	host, err := cgroup.Detect()
	if err != nil {
		t.Skip(err)
	}
	top := fmt.Sprintf("/berth-node-%s-%d", name, os.Getpid())
	g, err := host.Create(top)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := g.Purge(); err != nil {
			t.Error(err)
		}
	})
	return host, top
}

// plainContainers makes cgroups with a process each, and gives the one above them.
func plainContainers(t testing.TB) string {
	t.Helper()
	host, top := topGroup(t, "rest")
	for i := range containers {
		one, err := host.Create(fmt.Sprintf("%s/work/%d", top, i))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sleep", "900")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
		err = one.Join(cmd.Process.Pid)
		one.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	return top + "/work"
}

// unitContainers starts services in a slice of their own, and gives its path.
func unitContainers(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("berthnoderest%d", os.Getpid())
	t.Cleanup(func() { exec.Command("systemctl", "stop", name+".slice").Run() })
	script := `for i in $(seq "$2"); do systemd-run --quiet --no-block --collect --slice="$1" sleep 900 || exit 1; done
until [ "$(ls -d /sys/fs/cgroup/pids/"$1"/*.service /sys/fs/cgroup/"$1"/*.service 2> /dev/null | wc -l)" -ge "$2" ]; do sleep 0.1; done`
	if out, err := exec.Command("sh", "-c", script, "sh", name+".slice", strconv.Itoa(containers)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return name
}

func (r *resting) get(path string) string {
	r.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", r.socket)
	}, DisableKeepAlives: true}}
	answer, err := client.Get("http://node" + path)
	if err != nil {
		r.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

// memory gives what the daemon has in memory and what it had at most, in bytes.
func (r *resting) memory() (now, most int64) {
	r.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.pid))
	if err != nil {
		r.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			now = n << 10
		case "VmHWM":
			most = n << 10
		}
	}
	if now == 0 || most == 0 {
		r.Fatalf("the kernel does not say how much memory it has:\n%s", text)
	}
	return now, most
}

// processor gives the processor time of the daemon, of all its threads, to the nanosecond.
func (r *resting) processor() time.Duration {
	r.Helper()
	var now unix.Timespec
	// The clock of a process, as clock_getcpuclockid(3) makes it.
	if err := unix.ClockGettime(int32(^r.pid<<3|2), &now); err != nil {
		r.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// With 200 containers the daemon stays below 20 MiB, whatever it is asked.
func TestDaemonIsSmall(t *testing.T) {
	r := rest(t)
	for range 20 {
		r.get("/metrics")
		r.get("/healthz")
		if err := syscall.Kill(r.pid, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	now, most := r.memory()
	t.Logf("%.1f MiB, at most %.1f MiB", float64(now)/(1<<20), float64(most)/(1<<20))
	if most >= 20<<20 {
		t.Errorf("it had %d bytes in memory", most)
	}
}

// BenchmarkDaemonAtRest measures for two minutes what the daemon takes of a processor,
// and its memory, with 200 containers: with looks at everything each minute only, and
// with a scrape each 15 seconds besides.
func BenchmarkDaemonAtRest(b *testing.B) {
	for name, scrape := range map[string]bool{"unasked": false, "scraped": true} {
		b.Run(name, func(b *testing.B) {
			r := rest(b)
			used, began := r.processor(), time.Now()
			for b.Loop() {
				for range 8 {
					time.Sleep(15 * time.Second)
					if scrape {
						r.get("/metrics")
					}
				}
			}
			used = r.processor() - used
			now, _ := r.memory()
			b.ReportMetric(100*used.Seconds()/time.Since(began).Seconds(), "%core")
			b.ReportMetric(float64(now)/(1<<20), "MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}
