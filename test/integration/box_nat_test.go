package integration

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// freePort is a TCP port of this host that nothing has.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// ask makes a request as soon as there is an answer.
func ask(r *harness.Running, port int) string {
	for !r.Ended() {
		c, err := net.Dial("tcp4", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = c.Write([]byte("GET /told HTTP/1.0\r\n\r\n"))
		var answer [4096]byte
		n := 0
		for {
			more, err := c.Read(answer[n:])
			n += more
			if err != nil {
				break
			}
		}
		c.Close()
		if n > 0 {
			return string(answer[:n])
		}
	}
	return ""
}

// eachNat runs a test with each program that connects a box, as root and as an ordinary user.
func eachNat(t *testing.T, test func(t *testing.T, b *harness.Box, path string)) {
	t.Helper()
	for _, program := range []string{"pasta", "slirp4netns"} {
		for _, who := range []string{"root", "ordinary user"} {
			t.Run(program+", "+who, func(t *testing.T) {
				real := harness.NeedTool(t, program, map[string]string{"pasta": "passt"}[program]+strings.TrimPrefix(program, "pasta"))
				harness.NeedFile(t, "/dev/net/tun", "the kernel's module tun")
				b := harness.New(t)
				if who != "root" {
					b.AsOrdinaryUser(t, 0)
					// Everywhere else all users may open it.
					node := b.Path("tun")
					if err := unix.Mknod(node, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200))); err != nil {
						t.Fatal(err)
					}
					if err := os.Chmod(node, 0o666); err != nil {
						t.Fatal(err)
					}
					b.Wrap[2] += ",/dev/net/tun=" + node
				}
				for _, name := range []string{"mount", "sh"} {
					found, err := exec.LookPath(name)
					if err == nil {
						err = os.MkdirAll(b.Path("path"), 0o755)
					}
					if err == nil {
						err = os.Symlink(found, b.Path("path/"+name))
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if err := os.Symlink(real, b.Path("path/"+program)); err != nil {
					t.Fatal(err)
				}
				test(t, b, "PATH="+b.Path("path"))
			})
		}
	}
}

// A server in a box is reached by the port that was published, and by no other; the box has a
// resolver that its network knows, and no way to what listens on the host's loopback.
func TestBoxNat(t *testing.T) {
	python := "/usr/bin/python3"
	harness.NeedFile(t, python, "the package python3")
	eachNat(t, func(t *testing.T, b *harness.Box, path string) {
		b.WriteFile("www/told", "told by the box\n", 0o644)
		secret, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer secret.Close()
		port := freePort(t)
		c := box(b, "--net", "nat", "-p", fmt.Sprintf("127.0.0.1:%d:8000", port), "--ro", "www:/usr/share", "-w", "/usr/share", "--", python, "-u", "-m", "http.server", "8000")
		c.Env = []string{path}
		server := c.Start()
		if got := ask(server, port); !strings.HasSuffix(got, "\r\n\r\ntold by the box\n") {
			t.Errorf("%q", got)
		}
		server.Signal(os.Interrupt)
		if r := server.Wait(); !strings.Contains(r.Stdout+r.Stderr, "Keyboard interrupt") {
			t.Errorf("%+v", r)
		}
		if l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
			t.Errorf("the port is still taken: %v", err)
		} else {
			l.Close()
		}
		gateway := "" // pasta has the host's
		if _, err := os.Lstat(b.Path("path/slirp4netns")); err == nil {
			gateway = "10.0.2.2" // slirp4netns stands for the host's loopback by it, unless told otherwise
		}
		c = box(b, "--net", "nat", "--", "/bin/bash", "-c", fmt.Sprintf(`/bin/cat /etc/resolv.conf
			for host in 127.0.0.1 %s; do (echo > /dev/tcp/$host/%d) 2>/dev/null && echo $host reached the host; done
			while read dev gateway rest; do [[ $gateway == 00000000 ]] && echo routed; done < /proc/net/route; exit 0`, gateway, secret.Addr().(*net.TCPAddr).Port))
		c.Env = []string{path}
		r := c.Run().OK(t)
		if !strings.HasPrefix(r.Stdout, "nameserver 169.254.1.1\n") && !strings.HasPrefix(r.Stdout, "nameserver 10.0.2.3\n") || strings.Contains(r.Stdout, "reached") || !strings.Contains(r.Stdout, "routed") {
			t.Errorf("%q, %s", r.Stdout, r.Stderr)
		}
		natLeftNothing(t, b)
	})
}

func natLeftNothing(t *testing.T, b *harness.Box) {
	t.Helper()
	for _, dir := range []string{"/run", os.TempDir(), "/tmp"} {
		if left, _ := filepath.Glob(dir + "/berth-nat-*"); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
}

// A port that is taken is an error, and a box that is killed takes its program with it: the leak
// check looks.
func TestBoxNatEnds(t *testing.T) {
	eachNat(t, func(t *testing.T, b *harness.Box, path string) {
		l, err := net.Listen("tcp4", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		c := box(b, "-p", fmt.Sprintf("%d:80", port), "--", "/bin/true")
		c.Env = []string{path}
		if r := c.Run().Exits(t, 125); !strings.HasPrefix(r.Stderr, "berth box: --net nat: ") || !strings.Contains(r.Stderr, strconv.Itoa(port)) || strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("%q", r.Stderr)
		}
		free := freePort(t)
		b.WriteFile("out/.keep", "", 0o644)
		if err := os.Chmod(b.Path("out"), 0o777); err != nil {
			t.Fatal(err)
		}
		c = box(b, "-p", fmt.Sprintf("%d:80", free), "--rw", "out", "--", "/bin/sh", "-c", "echo > out/begun; exec /bin/sleep 1000")
		c.Env = []string{path}
		r := c.Start()
		for !r.Ended() {
			if _, err := os.Stat(b.Path("out/begun")); err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		ids := strings.Fields(b.Berth("list", "-q").OK(t).Stdout)
		if len(ids) != 1 {
			t.Fatalf("%q", ids)
		}
		var state struct{ Pid int }
		harness.Decode(t, b.Berth("state", ids[0]).OK(t).Stdout, &state)
		r.Signal(os.Kill)
		r.Wait()
		// The test is their parent now. The namespace's first process ends after all others.
		if _, err := unix.Wait4(state.Pid, nil, 0, nil); err != nil {
			t.Fatal(err)
		}
		b.WaitLeavers()
		if l, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", free)); err != nil {
			t.Errorf("the port is still taken: %v", err)
		} else {
			l.Close()
		}
		b.ReapOrphans()
		b.Berth("delete", "--force", ids[0]).OK(t)
	})
}
