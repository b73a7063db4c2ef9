package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// guests is the directory of the commands for guests.
const guests = "../guests"

// A Node is a guest.
type Node struct {
	Name    string
	Address string
	number  int
	guest   string // its name among the guests of this machine
}

// boot starts the guests, one after the other, and makes nodes of them.
func (c *Cluster) boot() {
	c.t.Helper()
	for _, n := range c.Nodes {
		started := time.Now()
		c.start(n)
		c.t.Logf("%s is there after %v", n.Name, time.Since(started).Round(time.Second))
		c.Exec(c.t, n, "/share/node", n.Name, strconv.Itoa(n.number), strconv.Itoa(len(c.Nodes)))
	}
}

// start boots the node's guest, which ends with this process.
func (c *Cluster) start(n *Node) {
	c.t.Helper()
	c.command(guests+"/start", "--name", n.guest, "--guest", "trixie-v2", "--kernel", "kernel-cluster", "--share", c.parts,
		"--owner", strconv.Itoa(os.Getpid()), "--memory", "3072",
		"--append", fmt.Sprintf("vec0:transport=raw,ifname="+guestEndForm+",depth=128,mac=02:00:00:00:00:%02x", n.number, n.number))
	c.t.Cleanup(func() { exec.Command(guests+"/stop", "--name", n.guest).Run() })
}

// Exec runs a command on a node as root; it has to succeed.
func (c *Cluster) Exec(t testing.TB, n *Node, args ...string) string {
	t.Helper()
	out, err := c.TryExec(n, args...)
	if err != nil {
		t.Fatalf("%s: %q: %v\n%s", n.Name, args, err, out)
	}
	return out
}

// TryExec is Exec for a command that may fail.
func (c *Cluster) TryExec(n *Node, args ...string) (string, error) {
	cmd := exec.Command(guests+"/exec", append([]string{"--name", n.guest, "--timeout", strconv.Itoa(int(patience.Seconds())), "--"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
