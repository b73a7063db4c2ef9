package config

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// docs/node.md has each key as help has it.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/node.md")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the docs are not beside this test")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Keys() {
		value := ""
		if k.Default != "" {
			value = "`" + k.Default + "`"
		}
		if row := "| `" + k.Name + "` | " + value + " | " + k.Help + " |\n"; !strings.Contains(string(text), row) {
			t.Errorf("docs/node.md lacks the row\n%s", row)
		}
	}
}
