package watch

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/machine/fake"
)

// lines are what a daemon says, for a test to wait for.
type lines struct {
	mu   sync.Mutex
	text string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(b)
	return len(b), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

// running is a daemon on a fake machine.
type running struct {
	t      *testing.T
	m      *fake.Machine
	said   *lines
	told   *lines // to the service manager
	hup    chan os.Signal
	socket string
	end    func() error
	d      *Daemon

	mu     sync.Mutex
	text   string
	killed []string // cgroups
}

const wanted = `
system-reserved: {cpu: 500m, memory: 1Gi}
system-reserved-enforce: true
pods-enforce: true
kernel-parameters: set
`

func start(t *testing.T, text string) *running {
	t.Helper()
	return startOn(fake.New(t, "unified", true), t, text)
}

func startOn(m *fake.Machine, t *testing.T, text string) *running {
	t.Helper()
	r := &running{t: t, m: m, said: &lines{}, told: &lines{}, hup: make(chan os.Signal, 1), text: text}
	dir := t.TempDir()
	r.socket = filepath.Join(dir, "http")
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := notify.Read(buf)
			if err != nil {
				return
			}
			r.told.Write(append(buf[:n:n], '\n'))
		}
	}()
	env := map[string]string{"NOTIFY_SOCKET": filepath.Join(dir, "notify"), "WATCHDOG_USEC": "300000"}
	d := &Daemon{Machine: r.m.Machine, Kill: r.kill, Reload: r.hup, Out: r.said, Getenv: func(key string) string { return env[key] },
		Load: func() (*config.Config, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return config.Parse("node.yaml", r.text, []config.Override{{Key: "state-dir", Value: r.m.Dir + "/state"}, {Key: "listen", Value: "unix:" + r.socket}})
		}}
	r.d = d
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	r.end = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		r.end()
		notify.Close() // not before: what was told last may not have been read yet
	})
	return r
}

// kill stands for the kernel's way to end a container.
func (r *running) kill(cgroup string) error {
	r.m.Write("/sys/fs/cgroup"+cgroup+"/cgroup.procs", "")
	r.m.Write("/sys/fs/cgroup"+cgroup+"/cgroup.events", "populated 0\nfrozen 0\n")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed = append(r.killed, cgroup)
	return nil
}

// await waits until something is so; the deadline is for a machine that is very busy.
func (r *running) await(what string, is func() bool) {
	r.t.Helper()
	for until := time.Now().Add(60 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			r.t.Fatalf("%s: not so; it said:\n%s\nand told:\n%s", what, r.said, r.told)
		}
	}
}

func (r *running) awaitSaid(text string) {
	r.t.Helper()
	r.await("says "+text, func() bool { return strings.Contains(r.said.String(), text) })
}

func (r *running) get(path string) (int, string) {
	r.t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", r.socket)
	}, DisableKeepAlives: true}}
	answer, err := client.Get("http://node" + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (r *running) configure(text string) {
	r.mu.Lock()
	r.text = text
	r.mu.Unlock()
	r.hup <- syscall.SIGHUP
}

func (r *running) awaitReady() {
	r.t.Helper()
	r.await("is ready", func() bool { return strings.Contains(r.told.String(), "READY=1") })
}

// echo is what a shell does to write to a file of the kernel's: at once. A plain file it would
// empty first, and a daemon that looks just then takes one change for two; so it writes over what
// is there, with a value of the same length.
func (r *running) echo(value, path string) string {
	return "echo " + value + " 1<> " + r.m.Dir + path
}

// byHand writes to a file as another process, since the daemon passes over its own.
func (r *running) byHand(value, path string) {
	r.t.Helper()
	if out, err := exec.Command("sh", "-c", r.echo(value, path)).CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
}

const limit = "/sys/fs/cgroup/system.slice/memory.max"

func TestDriftIsMended(t *testing.T) {
	r := start(t, wanted)
	r.awaitReady()
	if got := r.m.Read(limit); got != "1073741824" {
		t.Fatalf("the limit is %s", got)
	}
	// By another process, which stays for a moment, as a shell does.
	hand := exec.Command("sh", "-c", r.echo("5000000000", limit)+"; read wait")
	in, err := hand.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hand.Start(); err != nil {
		t.Fatal(err)
	}
	r.awaitSaid("system.slice MemoryMax is 5000000000 where node.yaml:2: system-reserved.memory wants 1073741824; changed ")
	r.awaitSaid("system.slice MemoryMax is 1073741824 again")
	if got := r.m.Read(limit); got != "1073741824" {
		t.Errorf("the limit is %s", got)
	}
	switch said := r.said.String(); {
	case strings.Contains(said, "past systemd, by an unknown process"):
		t.Log("without fanotify nobody knows who it was")
	case !strings.Contains(said, fmt.Sprintf("(pid %d", hand.Process.Pid)):
		t.Errorf("that it was process %d is not said: %s", hand.Process.Pid, said)
	}
	in.Close()
	hand.Wait()

	r.byHand("30", "/proc/sys/kernel/panic")
	r.awaitSaid("kernel.panic is 30 where node.yaml:5: kernel-parameters wants 10")
	r.await("is mended", func() bool { return r.m.Read("/proc/sys/kernel/panic") == "10" })
	r.await("counts", func() bool {
		_, text := r.get("/metrics")
		return strings.Contains(text, "berth_node_mended_total 2\n") && strings.Contains(text, `berth_node_drifts_total{target="system.slice",setting="MemoryMax"} 1`)
	})
	if status, text := r.get("/healthz"); status != 200 || text != "ok\n" {
		t.Errorf("%d: %s", status, text)
	}
	r.await("watches over itself", func() bool { return strings.Contains(r.told.String(), "WATCHDOG=1") })
	if err := r.end(); err != nil {
		t.Error(err)
	}
	// What has been sent may not have been read yet.
	r.await("tells of its end", func() bool { return strings.Contains(r.told.String(), "STOPPING=1") })
	if got := r.m.Read(limit); got != "1073741824" {
		t.Errorf("at the end the limit is %s", got)
	}
}

func TestReload(t *testing.T) {
	r := start(t, wanted)
	r.awaitReady()
	r.configure("system-reservd: {}")
	r.awaitSaid("the configuration was rejected, the previous one stays in effect: node.yaml:1: there is no key system-reservd: is it system-reserved?")
	r.await("complains", func() bool { status, _ := r.get("/healthz"); return status == http.StatusServiceUnavailable })
	r.await("tells of it", func() bool { return strings.Contains(r.told.String(), "RELOADING=1\nMONOTONIC_USEC=") })
	r.configure(strings.Replace(wanted, "1Gi", "2Gi", 1))
	r.awaitSaid("the configuration was read again")
	if got := r.m.Read(limit); got != "2147483648" {
		t.Errorf("the limit is %s", got)
	}
	r.await("is content", func() bool { status, _ := r.get("/healthz"); return status == 200 })
	r.configure(wanted + "listen: 127.0.0.1:1\nstate-dir: /elsewhere\n")
	r.await("reloads", func() bool { return strings.Count(r.said.String(), "the configuration was read again") == 2 })
}

func TestProblemsEndTheStart(t *testing.T) {
	r := start(t, "system-container: /nosuch")
	r.awaitEnd("there is no cgroup /nosuch.slice")
	r = start(t, "x: 1")
	r.awaitEnd("there is no key x")
}

func (r *running) awaitEnd(want string) {
	r.t.Helper()
	// It ends by itself: being told to is no error.
	r.await("ends", func() bool { return !strings.Contains(r.told.String(), "READY") })
	if err := r.end(); err == nil || !strings.Contains(err.Error(), want) {
		r.t.Errorf("%v, want something of %q", err, want)
	}
}

func TestOneAtATime(t *testing.T) {
	r := start(t, wanted)
	r.awaitReady()
	second := &Daemon{Machine: r.m.Machine, Out: io.Discard, Getenv: func(string) string { return "" }, Load: func() (*config.Config, error) {
		return config.Parse("node.yaml", "", []config.Override{{Key: "state-dir", Value: r.m.Dir + "/state"}})
	}}
	if err := second.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "is at work") {
		t.Errorf("%v", err)
	}
}
