package cgroup

import (
	"testing"
)

func TestResolvePath(t *testing.T) {
	host := fakeHost(t, map[string]string{"proc/self/mountinfo": unifiedTable, "proc/self/cgroup": "0::/user.slice/a.scope\n",
		"sys/fs/cgroup/cgroup.controllers": "cpu\n"})
	if !host.privileged() {
		t.Skip("the fake tree is not writable")
	}
	tests := []struct{ path, id, want string }{
		{"/docker/x", "x", "/docker/x"},
		{"/docker//x/", "x", "/docker/x"},
		{"", "x", "/berth/x"},
		{"", "cpu.shares", "/berth/_cpu.shares"},
		{"machine/x", "x", "/machine/x"},
		{"../x", "x", ""},
		{"/a/../../x", "x", ""},
		{"system.slice:berth:x", "x", ""},
	}
	for _, test := range tests {
		got, err := host.ResolvePath(test.path, test.id)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: %q, %v; want %q", test.path, got, err, test.want)
		}
	}
}
