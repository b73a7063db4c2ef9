package resource

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Name{
		"cpu": CPU, "memory": Memory, "pids": PIDs, "ephemeral-storage": EphemeralStorage,
		"hugepages-2Mi": "hugepages-2Mi", "hugepages-2048Ki": "hugepages-2Mi", "hugepages-1Gi": HugePages(1 << 30),
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "CPU", "pid", "hugepages-", "hugepages-x", "hugepages-10%", "hugepages-0", "storage"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		name        Name
		amount      int64
		exact, read string
	}{
		{CPU, 1500, "1500m", "1.50"},
		{CPU, 2000, "2", "2.00"},
		{Memory, 3 << 29, "1536Mi", "1.5Gi"},
		{Memory, 1000, "1000", "1000"},
		{Memory, 0, "0", "0"},
		{Memory, 1<<30 - 1, "1073741823", "1.0Gi"},
		{PIDs, 2048, "2048", "2048"},
		{"hugepages-2Mi", 4 << 20, "4Mi", "4.0Mi"},
	} {
		if got := c.name.Format(c.amount); got != c.exact {
			t.Errorf("%s %d: %s, want %s", c.name, c.amount, got, c.exact)
		}
		if got := c.name.Human(c.amount); got != c.read {
			t.Errorf("%s %d: %s, want %s", c.name, c.amount, got, c.read)
		}
	}
}

func TestOrder(t *testing.T) {
	got := List{EphemeralStorage: 1, "hugepages-1Gi": 1, PIDs: 1, "hugepages-2Mi": 1, Memory: 1, CPU: 1}.Names()
	want := []Name{CPU, Memory, "hugepages-2Mi", "hugepages-1Gi", PIDs, EphemeralStorage}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
