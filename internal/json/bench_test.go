package json

import (
	"strings"
	"testing"
)

// BenchmarkStrings reads and skips what most of a config.json is: strings.
func BenchmarkStrings(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"short", `"CAP_NET_BIND_SERVICE"`},
		{"long", `"` + strings.Repeat("lowerdir=/var/lib/layers/", 40) + `"`},
		{"escaped", `"` + strings.Repeat(`PS1=\\u@\\h:\"\\w\"\t`, 10) + `"`},
		{"foreign", `"` + strings.Repeat("größe=ä", 10) + `"`},
	} {
		doc := []byte("[" + strings.Repeat(c.text+",", 99) + c.text + "]")
		b.Run("read/"+c.name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				d := NewDecoder(doc)
				for d.Array(); d.Next(); {
					_ = d.String()
				}
				if err := d.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("skip/"+c.name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				d := NewDecoder(doc)
				d.Skip()
				if err := d.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
