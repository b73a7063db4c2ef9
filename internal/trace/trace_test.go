package trace

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// example is a Trace with known times.
func example() *Trace {
	t := New(`berth run "a<b>&c"`)
	made := t.Begin("make")
	t.Begin("plan").End()
	t.Begin("left open by an error")
	made.End()
	made.End() // again is nothing
	t.Begin("delete").End()
	for i, c := range []Call{
		{Name: "mount", Text: "mount \"proc\" on /proc", Pointer: "/mounts/0"},
		{Name: "openat2", Text: "mount \"proc\" on /proc", Pointer: "/mounts/0"},
		{Name: "setuid", Text: "a control character: \x01"},
	} {
		c.Start, c.Took = t.began.Add(time.Duration(i)*time.Microsecond), time.Microsecond
		t.Calls([]Call{c})
	}
	return t
}

func TestPhasesNest(t *testing.T) {
	tr := example()
	tr.end()
	depths := []int{0, 1, 1, 0}
	if len(tr.phases) != len(depths) || len(tr.open) != 0 {
		t.Fatalf("%+v", tr)
	}
	for i, p := range tr.phases {
		if p.depth != depths[i] {
			t.Errorf("%s is at depth %d, not %d", p.name, p.depth, depths[i])
		}
	}
	made, left := tr.phases[0], tr.phases[2]
	if left.start < made.start || left.start+left.took != made.start+made.took {
		t.Errorf("%+v does not end with %+v", left, made)
	}
}

// What is off costs nothing and breaks nothing.
func TestOff(t *testing.T) {
	var off *Trace
	file := filepath.Join(t.TempDir(), "none.json")
	n := testing.AllocsPerRun(10, func() {
		off.Begin("phase").End()
		off.Calls(nil)
	})
	if n != 0 || off.On() {
		t.Errorf("%v allocations, on %v", n, off.On())
	}
	if err := off.Write(file); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it wrote a file: %v", err)
	}
}

func TestJSON(t *testing.T) {
	var got struct {
		OtherData   struct{ Command string }
		TraceEvents []struct {
			Ph, Name string
			Tid      int
			TS, Dur  float64
			Args     map[string]string
		}
	}
	if err := json.Unmarshal(example().JSON(), &got); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range got.TraceEvents {
		names = append(names, e.Ph+" "+e.Name)
	}
	const want = `M thread_name, M thread_name, X berth run "a<b>&c", X make, X plan, X left open by an error, X delete, X mount, X openat2, X setuid`
	if s := strings.Join(names, ", "); s != want {
		t.Errorf("%s\nnot %s", s, want)
	}
	if e := got.TraceEvents[8]; e.TS != 1 || e.Dur != 1 || e.Args["config"] != "/mounts/0" {
		t.Errorf("%+v", e)
	}
}

func TestSVG(t *testing.T) {
	d := xml.NewDecoder(strings.NewReader(string(example().SVG())))
	bars, text := 0, ""
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "g" {
				bars++
			}
		case xml.CharData:
			text += string(token)
		}
	}
	if bars != 1+4+3 || !strings.Contains(text, `berth run "a<b>&c"`) || !strings.Contains(text, "2.00 µs  mount \"proc\" on /proc (/mounts/0)") {
		t.Errorf("%d bars, %s", bars, text)
	}
}

func TestWriteByEnding(t *testing.T) {
	for name, want := range map[string][]string{"a.json": {"a.json"}, "a.svg": {"a.svg"}, "a": {"a.json", "a.svg"}} {
		dir := t.TempDir()
		if err := example().Write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) != len(want) {
			t.Fatalf("%s made %q, %v", name, files, err)
		}
		for i, file := range files {
			if filepath.Base(file) != want[i] {
				t.Errorf("%s made %s", name, file)
			}
		}
	}
	if err := example().Write("/nowhere/at/all.json"); err == nil || !strings.Contains(err.Error(), "--trace") {
		t.Error(err)
	}
}

func TestFormat(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.00 µs", 1234: "1.23 µs", 56789: "56.8 µs", 999 * time.Microsecond: "999 µs",
		12345 * time.Microsecond: "12.3 ms", 90 * time.Second: "90.0 s",
	} {
		if got := Format(d); got != want {
			t.Errorf("%d: %q, not %q", d, got, want)
		}
	}
}

// What is told as it goes: phases, and calls that failed and were tolerated.
func TestTelling(t *testing.T) {
	var told []string
	tr := Telling(func(line string) { told = append(told, line) })
	tr.Begin("serve the init")
	tr.Calls([]Call{
		{Name: "openat2", Text: "mask /proc/none", Pointer: "/linux/maskedPaths/0", Tolerated: syscall.ENOENT},
		{Name: "close", Text: "close it"},
		{Name: "prctl", Text: "what no entry asks for", Tolerated: syscall.EINVAL},
	})
	want := []string{
		"serve the init …",
		"tolerated: mask /proc/none: openat2: no such file or directory (config.json: /linux/maskedPaths/0)",
		"tolerated: what no entry asks for: prctl: invalid argument",
	}
	if !slices.Equal(told, want) {
		t.Errorf("%q, not %q", told, want)
	}
	dir := t.TempDir()
	if err := tr.Write(filepath.Join(dir, "trace")); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("it wrote %v, %v", files, err)
	}
}
