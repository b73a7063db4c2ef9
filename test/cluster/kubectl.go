package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long anything may take. A guest's system calls take twenty times as long as this
// machine's, so it says nothing of how long things do take.
const patience = 10 * time.Minute

// kubectl is the command, as the cluster's administrator.
func (c *Cluster) kubectl(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, c.program("kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(c.work, "admin.kubeconfig"), "KUBECACHEDIR="+filepath.Join(c.work, "kubectl"))
	return cmd
}

// try runs kubectl and gives what it printed.
func (c *Cluster) try(args ...string) (string, error) {
	cmd := c.kubectl(args...)
	var out, warnings bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &warnings
	if err := cmd.Run(); err != nil {
		return out.String() + warnings.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, &warnings)
	}
	return out.String(), nil
}

// Kubectl runs kubectl, which has to succeed, and gives what it printed.
func (c *Cluster) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.try(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Apply creates or changes the objects of a manifest.
func (c *Cluster) Apply(t testing.TB, manifest string) {
	t.Helper()
	cmd := c.kubectl("apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v\n%s\n%s", err, out, manifest)
	}
}

// Wait asks until it is so.
func (c *Cluster) Wait(what string, done func() (said string, ok bool)) {
	c.t.Helper()
	c.WaitIn(c.t, what, done)
}

// WaitIn is Wait for a test within the test.
func (c *Cluster) WaitIn(t testing.TB, what string, done func() (said string, ok bool)) {
	t.Helper()
	said := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		var ok bool
		if said, ok = done(); ok {
			return
		}
	}
	t.Fatalf("%s: not within %v; at last: %s", what, patience, said)
}
