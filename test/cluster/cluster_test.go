package cluster

import (
	"os"
	"os/exec"
	"testing"
)

// All of it is one test, as the cluster takes minutes to start. The parts don't depend on each
// other, and each works in a namespace of Kubernetes of its own.
func TestCluster(t *testing.T) {
	c := New(t, 2)
	installed := t.Run("Install", c.install)
	// A shell is wanted most where the installation failed.
	if os.Getenv(shellVariable) != "" {
		cmd := exec.Command("bash")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.Env = append(c.kubectl().Env, "PATH="+c.program("")+":"+os.Getenv("PATH"), shellVariable+"=")
		t.Logf("the shell: %v", cmd.Run())
		return
	}
	if !installed {
		t.FailNow()
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) { c.part(t, part.name, part.test) })
	}
}
