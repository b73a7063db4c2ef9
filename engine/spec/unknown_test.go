package spec

import (
	"strings"
	"testing"
)

func TestUnknownKeys(t *testing.T) {
	const config = `{"ociVersion":"1.2.0","proces":{"args":["x"]},"windows":{"x":1},"solaris":{},"annotations":{"limt":"1"},
		"process":{"cwd":"/","user":{"uid":0,"gid":0,"gids":[1]},"rlimits":[{"type":"RLIMIT_NOFILE","soft":1,"hard":1,"max":1}]},
		"linux":{"sysctl":{"a.b":"1"},"resources":{"memory":{"limt":1},"unified":{"limt":"1"},"pids":{"limit":5}},"xyzzy":true}}`
	var got []string
	for _, c := range UnknownKeys([]byte(config)) {
		got = append(got, c.Error())
	}
	want := `/proces: is not in the specification, and is ignored (did you mean process?)
/process/user/gids: is not in the specification, and is ignored (did you mean gid?)
/process/rlimits/0/max: is not in the specification, and is ignored
/linux/resources/memory/limt: is not in the specification, and is ignored (did you mean limit?)
/linux/xyzzy: is not in the specification, and is ignored`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if _, err := Parse([]byte(config)); err != nil {
		t.Errorf("a config with them is refused: %v", err)
	}
	resources := UnknownResourceKeys([]byte(`{"cpu":{"share":2},"pids":{"limit":1}}`))
	if len(resources) != 1 || resources[0].Pointer != "/cpu/share" {
		t.Errorf("%v", resources)
	}
}
