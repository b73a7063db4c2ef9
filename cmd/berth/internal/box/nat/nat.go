package nat

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Network is that of one box, before and while it runs.
type Network struct {
	program string // its path
	ports   []Port
	dir     string // for what is needed until the box runs

	cmd   *exec.Cmd
	alive *os.File      // until this is closed
	over  chan struct{} // closed at its end
	said  strings.Builder
}

// resolvers are the addresses at which the programs answer for the host's resolver.
const (
	pastaResolver = "169.254.1.1"
	slirpResolver = "10.0.2.3"
)

// New finds a program, and writes what a box with such a network is to have as its resolv.conf.
func New(ports []Port) (n *Network, resolver string, err error) {
	for _, p := range ports {
		if err := p.free(); err != nil {
			return nil, "", err
		}
	}
	// Both shut themselves off from the host. As root slirp4netns can drop all of root's rights for
	// that, and pasta has to keep its user.
	programs, address := []string{"pasta", "slirp4netns"}, pastaResolver
	if os.Geteuid() == 0 {
		programs = []string{"slirp4netns", "pasta"}
	}
	n = &Network{ports: ports}
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			n.program = path
			break
		}
	}
	if n.program == "" {
		return nil, "", errors.New("it takes pasta (the package passt) or slirp4netns, and neither is installed")
	}
	if !n.isPasta() {
		address = slirpResolver
	}
	dir := ""
	if os.Geteuid() == 0 {
		dir = "/run" // the sandbox of slirp4netns has no other place for a socket
	}
	if n.dir, err = os.MkdirTemp(dir, "berth-nat-"); err != nil {
		return nil, "", err
	}
	resolver = filepath.Join(n.dir, "resolv.conf")
	if err = os.WriteFile(resolver, resolvConf(address), 0o644); err == nil {
		err = os.Chmod(resolver, 0o644) // whatever the umask is: all users of the box read it
	}
	if err != nil {
		n.Close()
		return nil, "", err
	}
	return n, resolver, nil
}

// Program is the path of the program.
func (n *Network) Program() string { return n.program }

func (n *Network) isPasta() bool { return filepath.Base(n.program) == "pasta" }

// resolvConf has another server than the host's, and the rest of what the host's says.
func resolvConf(address string) []byte {
	out := "nameserver " + address + "\n"
	text, _ := os.ReadFile("/etc/resolv.conf")
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && (fields[0] == "search" || fields[0] == "domain" || fields[0] == "options") {
			out += strings.Join(fields, " ") + "\n"
		}
	}
	return []byte(out)
}

// keeper runs the program until its own standard input is at its end, by which it notices even that
// berth was killed. A signal at the parent's death would be lost when the program changes its
// rights.
const keeper = `"$@" </dev/null & p=$!; exec >&- 3>&-; read x; kill -KILL $p 2>&-; wait $p`

// bound has the network namespace as a file, in the mount namespace of the program alone. pasta
// gives up most of root's rights before it opens it, and with them the right to do so below /proc.
const bound = `mount --bind "$1" "$2" && shift 2 && ` + keeper

// Connect brings up the network of a process, whose namespaces are made and whose command has not
// begun.
func (n *Network) Connect(pid int, userNamespace bool) error {
	pipes, err := pipes(3)
	if err != nil {
		return err
	}
	alive, out, ready := pipes[0], pipes[1], pipes[2]
	defer ready.r.Close()
	api, ns := filepath.Join(n.dir, "api"), "/proc/"+strconv.Itoa(pid)+"/ns/"
	// Not in the group of a terminal's keys.
	attributes := &syscall.SysProcAttr{Setsid: true}
	words := []string{"-c", keeper, "sh"}
	net, user := ns+"net", ""
	if userNamespace {
		user = ns + "user"
	} else if n.isPasta() {
		net = filepath.Join(n.dir, "net")
		err = os.WriteFile(net, nil, 0o600)
		words = []string{"-c", bound, "sh", ns + "net", net}
	}
	if !userNamespace {
		// With private mounts: the sandbox of slirp4netns 1.2 takes away what is mounted below a
		// shared root, as systemd's is, from the host as well.
		attributes.Unshareflags = unix.CLONE_NEWNS
	}
	n.cmd = exec.Command("/bin/sh", append(append(words, n.program), n.arguments(pid, net, user, api)...)...)
	n.cmd.Stdin, n.cmd.Stdout, n.cmd.Stderr, n.cmd.ExtraFiles, n.cmd.SysProcAttr = alive.r, out.w, &n.said, []*os.File{ready.w}, attributes
	if err == nil {
		err = n.cmd.Start()
	}
	alive.r.Close()
	out.w.Close()
	ready.w.Close()
	if err != nil {
		n.cmd = nil
		alive.w.Close()
		out.r.Close()
		return err
	}
	n.alive = alive.w
	tells := ready.r
	if n.isPasta() {
		tells = out.r
	}
	// Its end, if it comes before, closes the pipe.
	_, err = io.ReadFull(tells, make([]byte, 1))
	n.over = make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, out.r)
		out.r.Close()
		close(n.over)
	}()
	if err == io.EOF {
		return n.failed()
	}
	if err != nil || n.isPasta() {
		return err
	}
	for _, p := range n.ports {
		if err := n.publish(api, p); err != nil {
			return err
		}
	}
	return nil
}

type pipe struct{ r, w *os.File }

func pipes(count int) (list []pipe, err error) {
	for range count {
		r, w, err := os.Pipe()
		if err != nil {
			for _, p := range list {
				p.r.Close()
				p.w.Close()
			}
			return nil, err
		}
		list = append(list, pipe{r, w})
	}
	return list, nil
}

// arguments have the program tell when it is ready: pasta on its standard output, which is the only
// descriptor of ours that it does not close, slirp4netns on descriptor 3.
func (n *Network) arguments(pid int, net, user, api string) (list []string) {
	if !n.isPasta() {
		list = []string{"--configure", "--mtu=65520", "--disable-host-loopback", "--ready-fd=3", "--enable-seccomp"}
		if user != "" {
			list = append(list, "--userns-path="+user)
		} else {
			list = append(list, "--enable-sandbox")
		}
		if len(n.ports) > 0 {
			list = append(list, "--api-socket="+api)
		}
		return append(list, strconv.Itoa(pid), "tap0")
	}
	list = []string{"--foreground", "--quiet", "--config-net", "--no-map-gw", "--dns-forward", pastaResolver, "--pid", "/dev/stdout", "--netns", net, "--no-netns-quit"}
	if user != "" {
		list = append(list, "--userns", user)
	} else {
		list = append(list, "--runas", "0", "--netns-only")
	}
	for _, option := range []struct {
		word string
		udp  bool
	}{{"--tcp-ports", false}, {"--udp-ports", true}} {
		given := false
		for _, p := range n.ports {
			if p.UDP == option.udp {
				spec := strconv.Itoa(int(p.Host)) + ":" + strconv.Itoa(int(p.Box))
				if p.Address != "" {
					spec = p.Address + "/" + spec
				}
				list, given = append(list, option.word, spec), true
			}
		}
		if !given {
			list = append(list, option.word, "none")
		}
	}
	// What listens on the host's loopback addresses is not the box's to use.
	return append(list, "--tcp-ns", "none", "--udp-ns", "none")
}

// failed says why the program has ended. Some of what it writes is about a syslog that is missing.
func (n *Network) failed() error {
	n.end() // and with that all that it has to say is there
	why := "it ended without a word"
	for line := range strings.Lines(n.said.String()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Failed to send ") {
			why = line
		}
	}
	if unix.Access("/dev/net/tun", unix.R_OK|unix.W_OK) != nil {
		why += " (you may not open /dev/net/tun: load the module tun, or have root chmod 666 it)"
	}
	return fmt.Errorf("%s: %s", n.program, why)
}

// Close ends it.
func (n *Network) Close() {
	n.end()
	n.Settle()
}

func (n *Network) end() {
	if n.cmd != nil {
		n.alive.Close()
		_ = n.cmd.Wait()
		n.cmd = nil
	}
}

// Settle removes what is no longer needed once the box is mounted and the network is up.
func (n *Network) Settle() {
	if n.dir != "" {
		_ = os.RemoveAll(n.dir)
		n.dir = ""
	}
}

// publish asks slirp4netns to forward a port.
func (n *Network) publish(api string, p Port) error {
	f, err := n.dial(api)
	if err != nil {
		return err
	}
	defer f.Close()
	protocol, address := "tcp", p.Address
	if p.UDP {
		protocol = "udp"
	}
	if address == "" {
		address = "0.0.0.0"
	}
	_, err = fmt.Fprintf(f, `{"execute":"add_hostfwd","arguments":{"proto":%q,"host_addr":%q,"host_port":%d,"guest_port":%d}}`, protocol, address, p.Host, p.Box)
	if err == nil {
		err = os.NewSyscallError("shutdown", unix.Shutdown(int(f.Fd()), unix.SHUT_WR))
	}
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err == nil && !strings.Contains(string(answer), `"return"`) {
		err = fmt.Errorf("slirp4netns can't forward port %d of this host, which may be in use: %s", p.Host, strings.TrimSpace(string(answer)))
	}
	return err
}

// dial connects to the socket of slirp4netns, which it makes only after it has said that it is
// ready.
func (n *Network) dial(api string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), api)
	for {
		err := unix.Connect(fd, &unix.SockaddrUnix{Name: api})
		if err == nil {
			return f, nil
		}
		if err != unix.ECONNREFUSED && !errors.Is(err, fs.ErrNotExist) {
			f.Close()
			return nil, &os.PathError{Op: "connect", Path: api, Err: err}
		}
		select {
		case <-n.over:
			f.Close()
			return nil, n.failed()
		case <-time.After(2 * time.Millisecond):
		}
	}
}
