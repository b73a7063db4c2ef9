package systemd

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

func TestSockets(t *testing.T) {
	got := busSockets("unix:path=/run/user/1000/bus,guid=00;tcp:host=x;unix:abstract=a%2fb;unix:dir=/tmp")
	if fmt.Sprint(got) != "[{/run/user/1000/bus false} {@a/b false}]" {
		t.Errorf("%v", got)
	}
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	if got := New(Options{User: true}).sockets(); fmt.Sprint(got) != "[{/run/user/7/bus false} {/run/user/7/systemd/private true}]" {
		t.Errorf("%v", got)
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	_, err := New(Options{User: true}).Version(context.Background())
	if err == nil || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
		t.Errorf("no bus at all: %v", err)
	}
	_, err = New(Options{Address: "unix:path=" + t.TempDir() + "/none"}).Version(context.Background())
	if err == nil || !strings.Contains(err.Error(), "is systemd running here?") {
		t.Errorf("no systemd: %v", err)
	}
}

func TestUnitPath(t *testing.T) {
	for name, want := range map[string]string{
		"berth-c1.scope": "berth_2dc1_2escope", "1.scope": "_31_2escope", `a\x2b.slice`: "a_5cx2b_2eslice",
	} {
		if got := string(unitPath(name)); got != "/org/freedesktop/systemd1/unit/"+want {
			t.Errorf("%s is %s", name, got)
		}
	}
}
func TestParseVersion(t *testing.T) {
	for text, want := range map[string]int{"257.4-1": 257, "v249": 249, "systemd 245": 245, "252~rc1": 252, "": 0, "x": 0} {
		if got, err := parseVersion(text); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
}

func TestHasWord(t *testing.T) {
	if hasWord("Cannot set MemoryMaxScale", "MemoryMax") || !hasWord("Cannot set MemoryMax.", "MemoryMax") || !hasWord("MemoryMaxScale, MemoryMax", "MemoryMax") {
		t.Error("words are not found as words")
	}
}
