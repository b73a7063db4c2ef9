package cluster

// parts are what is tried, in turn.
var parts = []struct {
	name string
	test func(*Part)
}{
	{"Pod", testPod},
	{"Probes", testProbes},
	{"CronJob", testCronJob},
	{"Sidecar", testSidecar},
	{"UserNamespace", testUserNamespace},
	{"Privileged", testPrivileged},
	{"Bidirectional", testBidirectional},
	{"Volumes", testVolumes},
	{"Lifecycle", testLifecycle},
	{"Commands", testCommands},
	{"Ephemeral", testEphemeral},
	{"OutOfMemory", testOutOfMemory},
	{"Restarts", testRestarts},
	{"Upgrade", testUpgrade},
	{"Drain", testDrain},
	{"Deployment", testDeployment},
	{"Reservations", testReservations},
	{"Package", testPackage}, // the last: it takes the installer off the nodes
}
