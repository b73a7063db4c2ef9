package cluster

import (
	"fmt"
	"strings"
)

// deployment is one of pods that serve their version over HTTP, under a runtime.
func deployment(name, runtime, version string, replicas int) string {
	class := ""
	if runtime != "runc" {
		class = "runtimeClassName: " + runtime
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[4]d
  selector: {matchLabels: {app: %[1]s}}
  strategy: {rollingUpdate: {maxSurge: 5, maxUnavailable: 5}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      %[2]s
      terminationGracePeriodSeconds: 2
      containers:
      - name: web
        image: IMAGE
        command: ["sh", "-c", "mkdir /www; echo %[3]s > /www/version; exec httpd -f -p 8080 -h /www"]
        ports: [{containerPort: 8080}]
        resources: {requests: {cpu: 10m, memory: 8Mi}, limits: {memory: 64Mi}}
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 5}
`, name, class, version, replicas)
}

func (p *Part) rolledOut(names ...string) {
	p.T.Helper()
	for _, name := range names {
		p.Kubectl("rollout", "status", "deployment/"+name, "--timeout", patience.String())
	}
}

// Twenty pods of Berth's beside twenty of runc's: rolled out, scaled, changed, rolled back, and
// reached through a Service from both.
func testDeployment(p *Part) {
	for _, runtime := range []string{"berth", "runc"} {
		p.Apply(deployment(runtime, runtime, "one", 20))
		p.Kubectl("expose", "deployment/"+runtime, "--port", "80", "--target-port", "8080")
	}
	p.rolledOut("berth", "runc")
	p.T.Log("\n" + p.Kubectl("get", "pods", "-o", "wide"))
	p.Pod("client", `
containers:
- name: main
  image: IMAGE
  command: ["sleep", "86400"]
`)
	versions := func() string {
		// Not wget: that of a static busybox crashes without the C library's files for host names.
		return p.Sh("client", `for host in "$BERTH_SERVICE_HOST" "$RUNC_SERVICE_HOST"; do printf 'GET /version HTTP/1.0\r\n\r\n' | nc -w 60 "$host" 80 | tail -n 1; done`)
	}
	p.Expect("through the Services", versions(), "one\none")
	for _, runtime := range []string{"berth", "runc"} {
		p.Kubectl("scale", "deployment/"+runtime, "--replicas", "4")
	}
	p.rolledOut("berth", "runc")
	for _, runtime := range []string{"berth", "runc"} {
		p.Apply(deployment(runtime, runtime, "two", 4))
	}
	p.rolledOut("berth", "runc")
	p.gone()
	p.Expect("after the change", versions(), "two\ntwo")
	for _, runtime := range []string{"berth", "runc"} {
		p.Kubectl("rollout", "undo", "deployment/"+runtime)
	}
	p.rolledOut("berth", "runc")
	p.gone()
	p.Expect("rolled back", versions(), "one\none")
}

// gone waits until no pod is on its way out: until then a Service may lead to one.
func (p *Part) gone() {
	p.T.Helper()
	p.WaitIn(p.T, "no pod ending", func() (string, bool) {
		out, err := p.Try("get", "pods", "-o", `jsonpath={range .items[?(@.metadata.deletionTimestamp)]}{.metadata.name} {end}`)
		return out, err == nil && strings.TrimSpace(out) == ""
	})
}

// A node is drained of a Deployment's pods, which come up on the other, and is taken back.
func testDrain(p *Part) {
	p.Apply(deployment("web", "berth", "one", 6))
	p.rolledOut("web")
	node := p.Nodes[1]
	p.Kubectl("drain", node.Name, "--ignore-daemonsets", "--timeout", patience.String())
	p.rolledOut("web")
	on := func() string {
		return p.Kubectl("get", "pods", "--selector", "app=web", "-o", `jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}`)
	}
	p.Expect("where the pods are", on(), strings.Repeat(p.Nodes[0].Name+"\n", 6))
	p.Expect("what Berth has left", p.Exec(p.T, node, "bash", "-c", remains), "")
	p.Kubectl("uncordon", node.Name)
	p.Kubectl("scale", "deployment/web", "--replicas", "12")
	p.rolledOut("web")
	if !strings.Contains(on(), node.Name) {
		p.T.Errorf("%s is back, and no pod went there:\n%s", node.Name, on())
	}
}

// A CronJob has its Job run, whose pod ends well, and one that does not is tried again.
func testCronJob(p *Part) {
	p.Apply(`apiVersion: batch/v1
kind: CronJob
metadata: {name: each-minute}
spec:
  schedule: "* * * * *"
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      template:
        spec:
          runtimeClassName: berth
          restartPolicy: Never
          containers: [{name: main, image: IMAGE, command: ["sh", "-c", "echo done"]}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: fails}
spec:
  backoffLimit: 1
  template:
    spec:
      runtimeClassName: berth
      restartPolicy: Never
      containers: [{name: main, image: IMAGE, command: ["sh", "-c", "exit 3"]}]
`)
	p.WaitIn(p.T, "a Job of the CronJob's ending", func() (string, bool) {
		out, err := p.Try("get", "jobs", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.succeeded}{"\n"}{end}`)
		return out, err == nil && strings.Contains(out, "=1")
	})
	p.Kubectl("wait", "--for=condition=Failed", "job/fails", "--timeout", patience.String())
	p.Expect("the status", p.Kubectl("get", "pods", "--selector", "job-name=fails", "-o", `jsonpath={range .items[*]}{.status.containerStatuses[0].state.terminated.exitCode} {end}`), "3 3")
}
