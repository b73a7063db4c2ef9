package unit

import (
	"errors"
	"strings"
	"testing"
)

func TestAnnotations(t *testing.T) {
	properties, err := Annotations(map[string]string{
		"org.systemd.property.TimeoutStopUSec": "uint64 123456789",
		"org.systemd.property.CollectMode":     "'inactive-or-failed'",
		"org.systemd.property.RuntimeMaxSec":   "1.5",
		"org.systemd.property.TimeoutSec":      "uint32 7",
		"org.systemd.property.WatchdogSec":     "inf",
		"org.systemd.property.DeviceAllow":     "[('char-pts', 'rw')]",
		"org.example":                          "not gvariant",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		name, typ string
		value     uint64
	}{
		{"CollectMode", "s", 0}, {"DeviceAllow", "a(ss)", 0}, {"RuntimeMaxUSec", "t", 1500000}, {"TimeoutUSec", "t", 7000000},
		{"TimeoutStopUSec", "t", 123456789}, {"WatchdogUSec", "t", 1<<64 - 1},
	}
	if len(properties) != len(want) {
		t.Fatalf("got %+v", properties)
	}
	for i, w := range want {
		p := properties[i]
		if p.Name != w.name || p.Value.Type != w.typ || p.Value.Uint != w.value || !strings.HasPrefix(p.Annotation, annotationPrefix) {
			t.Errorf("got %+v, want %+v", p, w)
		}
	}
}

func TestAnnotationErrors(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{"X", "'unfinished", "column 1: the string is not terminated"},
		{"X", "yes", `column 1: unknown word "yes"`},
		{"", "5", "missing"},
		{"a/b", "5", "not the name of a property"},
		{"1a", "5", "not the name of a property"},
		{"PIDs", "@au [1]", "not for a config"},
		{"X", "@ms nothing", "no maybes"},
		{"X", "<@ms nothing>", "column 2: "},
		{"X", "handle 1", "no descriptors"},
		{"X", "{1, 2}", "in arrays only"},
		{"X", "({1, 2},)", "in arrays only"},
		{"X", "()", "no empty tuples"},
		{"X", strings.Repeat("[", 30) + "1" + strings.Repeat("]", 30), "too deep"},
		{"X", strings.Repeat("<", 30) + "1" + strings.Repeat(">", 30), "too deep"},
		{"X", "@" + strings.Repeat("a", 30) + "s []", "too deep"},
		{"TimeoutSec", "-1", "not negative"},
		{"TimeoutSec", "-0.5", "not negative"},
		{"TimeoutSec", "nan", "not negative"},
		{"TimeoutSec", "'5s'", `not of type "s"`},
		{"TimeoutSec", "uint64 18446744073709551615", "more seconds than fit"},
		{"TimeoutSec", "1e30", "more seconds than fit"},
		{"TimeoutSec", "int64 9223372036854775807", "more seconds than fit"},
	} {
		_, err := Annotations(map[string]string{annotationPrefix + c.name: c.value})
		var e *AnnotationError
		if !errors.As(err, &e) || e.Annotation != annotationPrefix+c.name || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s=%s: %v, want …%s…", c.name, c.value, err, c.says)
		}
	}
	_, err := Annotations(map[string]string{annotationPrefix + "TimeoutSec": "1", annotationPrefix + "TimeoutUSec": "uint64 1", annotationPrefix + "A~/b": "x"})
	if err == nil || !strings.Contains(err.Error(), "set twice") || !strings.Contains(err.Error(), "A~/b") {
		t.Errorf("not all errors are told: %v", err)
	}
	var e *AnnotationError
	if !errors.As(err, &e) || e.Pointer() != "/annotations/org.systemd.property.A~0~1b" {
		t.Errorf("pointer %q", e.Pointer())
	}
	if _, err := Annotations(map[string]string{annotationPrefix + "X": "{'k': <{1: 'a'}>}"}); err != nil {
		t.Errorf("a dictionary: %v", err)
	}
}
