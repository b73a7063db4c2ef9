package cgrouptool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/internal/json"
)

// sampled measures a tree of files twice, ten seconds apart, with the counters
// of the service changed in between.
func sampled(t *testing.T) (*Tools, []Row) {
	t.Helper()
	tools := fake(t, unifiedFiles)
	m := tools.NewMeter(mustParse(t, "/"), -1)
	clock := time.Unix(1000, 0)
	m.now = func() time.Time { return clock }
	first, err := m.Sample()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range first {
		if row.CPU != nil || row.Read != nil {
			t.Errorf("%s has a rate in the first sample", row.Path)
		}
	}
	service := filepath.Join(tools.root, "sys/fs/cgroup/system.slice/ssh.service")
	for file, text := range map[string]string{
		"cpu.stat": "usage_usec 16500000\n", // 15 seconds more in 10: one and a half processors
		"io.stat":  "8:0 rbytes=11534336 wbytes=2097152 rios=1 wios=1 dbytes=0 dios=0\n",
	} {
		if err := os.WriteFile(filepath.Join(service, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// This one was removed and made anew: its counter is less than before.
	if err := os.WriteFile(filepath.Join(tools.root, "sys/fs/cgroup/system.slice/cpu.stat"), []byte("usage_usec 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(10 * time.Second)
	rows, err := m.Sample()
	if err != nil {
		t.Fatal(err)
	}
	m.AddPressure(rows)
	return tools, rows
}

func TestRates(t *testing.T) {
	_, rows := sampled(t)
	for _, row := range rows {
		switch row.Path {
		case "/system.slice/ssh.service":
			if *row.CPU != 1.5 || *row.Read != 1048576 || *row.Write != 0 {
				t.Errorf("cpu %v, read %v, write %v", *row.CPU, *row.Read, *row.Write)
			}
		case "/system.slice":
			if row.CPU != nil {
				t.Errorf("a counter that went back gives %v processors", *row.CPU)
			}
		}
	}
}

func TestSort(t *testing.T) {
	_, rows := sampled(t)
	for by, want := range map[Order]string{
		ByPath:   "/ /a name\x1b[2J /system.slice /system.slice/ssh.service",
		ByCPU:    "/system.slice/ssh.service / /system.slice /a name\x1b[2J",
		ByMemory: "/ /system.slice/ssh.service /system.slice /a name\x1b[2J",
		ByTasks:  "/ /system.slice /system.slice/ssh.service /a name\x1b[2J",
		ByIO:     "/system.slice/ssh.service / /a name\x1b[2J /system.slice",
	} {
		Sort(rows, by)
		var paths []string
		for _, row := range rows {
			paths = append(paths, row.Path)
		}
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("by %v: %q\nwant %q", by, got, want)
		}
	}
	for _, text := range []string{"cpu", "c"} {
		if o, ok := ParseOrder(text); !ok || o != ByCPU {
			t.Errorf("%q is %v, %v", text, o, ok)
		}
	}
	if _, ok := ParseOrder("x"); ok {
		t.Error("x is an order")
	}
}

func TestRankDrawn(t *testing.T) {
	tools, rows := sampled(t)
	k := tools.Ranking(ByCPU, 4)
	Sort(rows, ByCPU)
	want := `
CGROUP                     TASKS   %CPU           MEMORY           READ/s WRITE/s P.CPU P.MEM  P.IO
/system.slice/ssh.service      2  150.0 ###.....   59.0M #######.    1.0M      0B     -  30.0     -
/                            321    0.0 ........    2.0G ##......       -       -  12.5     -     -
/system.slice                  3      -            12.0M ........       -       -     -     -     -
/a name?[2J                    -      -                -                -       -     -     -     -
`
	if got := (Style{}).Rank(rows, k); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%swant%s", got, want)
	}
	for _, width := range []int{10, 20, 40, 60, 81, 120} {
		text := Style{Width: width, Height: 5, Unicode: true}.Rank(rows, k)
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if len(lines) > 5 {
			t.Errorf("%d lines on a terminal of 5", len(lines))
		}
		for _, line := range lines {
			// Below the least, where there is the name and one column, lines are cut by the
			// terminal.
			if n := len([]rune(line)); n > max(width, 27) {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
		if !strings.Contains(lines[0], "%CPU") {
			t.Errorf("width %d: the first column is missing: %q", width, lines[0])
		}
	}
}

func TestSizesAndTimes(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0B", 1023: "1023B", 1024: "1.0K", 1536: "1.5K", 1<<20 - 1: "1.0M", 64 << 20: "64.0M", 1 << 40: "1.0T", 1<<64 - 1: "16.0E",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for seconds, want := range map[float64]string{
		0: "0.00s", 1.5: "1.50s", 59.999: "59.99s", 60: "1m00s", 3599: "59m59s", 3600: "1h00m", 7384: "2h03m", 100 * 3600: "4d04h",
	} {
		if got := clock(uint64(seconds * 1e9)); got != want {
			t.Errorf("%v s: %s, want %s", seconds, got, want)
		}
	}
}

func TestStyle(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, test := range []struct {
		env  map[string]string
		want Style
	}{
		{map[string]string{"LANG": "en_US.UTF-8", "TERM": "xterm"}, Style{Unicode: true}},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "C"}, Style{}},
		{map[string]string{"LC_CTYPE": "de_DE.utf8", "LANG": "C"}, Style{Unicode: true}},
		{nil, Style{}},
	} {
		if got := StyleFor(file, func(name string) string { return test.env[name] }); got != test.want {
			t.Errorf("%v: %+v", test.env, got)
		}
	}
}

// The keys of the live view, without a terminal.
func TestKeys(t *testing.T) {
	l := Live{Ranking: Ranking{By: ByCPU}, Every: time.Second}
	for _, test := range []struct {
		key   byte
		quit  bool
		by    Order
		every time.Duration
	}{
		{'m', false, ByMemory, time.Second},
		{'x', false, ByMemory, time.Second},
		{'+', false, ByMemory, 2 * time.Second},
		{'-', false, ByMemory, time.Second},
		{'-', false, ByMemory, time.Second},
		{'p', false, ByPath, time.Second},
		{3, true, ByPath, time.Second},
		{'q', true, ByPath, time.Second},
	} {
		if quit := l.press(test.key); quit != test.quit || l.Ranking.By != test.by || l.Every != test.every {
			t.Errorf("%q: quit %v, by %v, every %v", test.key, quit, l.Ranking.By, l.Every)
		}
	}
}

func TestJSON(t *testing.T) {
	tools, rows := sampled(t)
	tree, err := tools.Tree(mustParse(t, "/"), Looking{Depth: -1, Processes: true, Parts: All})
	if err != nil {
		t.Fatal(err)
	}
	for _, write := range []func(*json.Writer){tree.JSON, func(w *json.Writer) {
		w.Array()
		for i := range rows {
			rows[i].JSON(w)
		}
		w.End()
	}} {
		w := json.NewWriter(nil, "")
		write(w)
		d := json.NewDecoder(w.Bytes())
		d.Skip()
		if err := d.Close(); err != nil {
			t.Errorf("%v in %s", err, w.Bytes())
		}
		if text := string(w.Bytes()); !strings.Contains(text, `"memoryLimit":67108864`) || !strings.Contains(text, `"memoryPressure":30`) {
			t.Errorf("what is known is missing in %s", text)
		}
	}
}

// Without a terminal nothing is cut: neither a name nor the title above short ones.
func TestRankInAPipeIsWhole(t *testing.T) {
	k := Ranking{Title: "CONTAINER"}
	for _, rows := range [][]Row{nil, {{Path: "a"}}} {
		if got := (Style{}).Rank(rows, k); !strings.HasPrefix(got, "CONTAINER ") {
			t.Errorf("%d rows: %q", len(rows), got)
		}
	}
	long := strings.Repeat("x", 300)
	if got := (Style{}).Rank([]Row{{Path: long}}, k); !strings.Contains(got, "\n"+long+" ") {
		t.Errorf("got %q", got)
	}
}
