package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// The addresses of the cluster. A node has machineNetwork's N+10 and the pods of podNetwork's N.
const (
	machineAddress  = "10.99.0.1"
	serviceNetwork  = "10.96.0.0/16"
	firstService    = "10.96.0.1"
	podNetworks     = "10.244.0.0/16"
	nodeAddressForm = "10.99.0.1%d"
	podNetworkForm  = "10.244.%d.0/24"
	guestEndForm    = "guest%d" // the name of an interface
)

// network makes the bridge that the guests are on. This process is in a network namespace of
// its own (run sees to it), so there is nothing to undo.
func (c *Cluster) network(nodes int) {
	c.t.Helper()
	if links, err := os.ReadDir("/sys/class/net"); err != nil || len(links) > 1 {
		// Sysfs shows the namespace that it was mounted in: only ip says what is here.
		if out := c.command("ip", "-o", "link", "show", "up"); strings.Count(out, "\n") > 1 {
			c.t.Fatalf("this is not a network namespace of the tests' own: start them by make test-cluster\n%s", out)
		}
	}
	c.command("ip", "link", "set", "lo", "up")
	c.command("ip", "link", "add", "nodes", "type", "bridge")
	c.command("ip", "addr", "add", machineAddress+"/24", "dev", "nodes")
	c.command("ip", "link", "set", "nodes", "up")
	for n := 1; n <= nodes; n++ {
		// The guest reads and writes one end of a pair. (A tap would be simpler, but with more than
		// one processor User-Mode Linux panics when one is brought up.)
		end, peer := fmt.Sprintf(guestEndForm, n), fmt.Sprintf("node%d", n)
		c.command("ip", "link", "add", end, "type", "veth", "peer", "name", peer)
		c.command("ip", "link", "set", end, "up")
		// Its driver takes no packets longer than its MTU, as the two ends hand each other
		// otherwise.
		c.command("ip", "link", "set", peer, "gso_max_segs", "1")
		c.command("ip", "link", "set", peer, "master", "nodes", "up")
		c.command("ip", "route", "add", fmt.Sprintf(podNetworkForm, n), "via", fmt.Sprintf(nodeAddressForm, n))
	}
}

// command runs a program of this machine to its end and gives what it printed.
func (c *Cluster) command(name string, args ...string) string {
	c.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// program is one of the cluster's.
func (c *Cluster) program(name string) string { return filepath.Join(c.parts, "bin", name) }

// serve starts one of the programs for the time of the tests. What it says is in work/NAME.log.
func (c *Cluster) serve(name string, args ...string) {
	c.t.Helper()
	log, err := os.Create(filepath.Join(c.work, name+".log"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(c.program(name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = c.work
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}
