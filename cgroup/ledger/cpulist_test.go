package ledger

import (
	"bytes"
	"testing"
)

func TestParseList(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{"", ""}, {"0", "0"}, {"0-3,7", "0-3,7"}, {"3,1,2,1", "1-3"}, {" 1 , 2\n", "1-2"}, {"1,,2,", "1-2"},
		{"63-65", "63-65"}, {"0-15:2/8", "0-1,8-9"}, {"0-4:4/4", "0-4"}, {"8191", "8191"}, {"007", "7"},
	} {
		l, err := ParseList(c.in)
		if err != nil || l.String() != c.out {
			t.Errorf("%q: %q %v, want %q", c.in, l.String(), err, c.out)
		}
	}
	for _, in := range []string{"a", "-", "1-", "-1", "3-1", "1:2/3", "0-3:0/4", "0-3:5/4", "0-3:1", "0-3:1/0", "65536", "0-99999999999", "1 2", "0x1", "+1"} {
		if l, err := ParseList(in); err == nil {
			t.Errorf("%q is taken as %q", in, l)
		}
	}
}

func TestBitmap(t *testing.T) {
	for _, c := range []struct {
		list string
		want []byte
	}{{"", nil}, {"0", []byte{1}}, {"0-3,7", []byte{0x8f}}, {"8", []byte{0, 1}}, {"9,0", []byte{1, 2}}, {"64", []byte{0, 0, 0, 0, 0, 0, 0, 0, 1}}} {
		l, err := ParseList(c.list)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Bitmap(); !bytes.Equal(got, c.want) {
			t.Errorf("%s: % x, want % x", c.list, got, c.want)
		}
		if got := ListFromBitmap(c.want).String(); got != l.String() {
			t.Errorf("% x: %s, want %s", c.want, got, l)
		}
	}
}

func FuzzParseList(f *testing.F) {
	for _, s := range []string{"0-3,7", "", "0-31:2/8", "1,,2", "65535", "3-1", "0-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseList(s)
		if err != nil {
			return
		}
		again, err := ParseList(l.String())
		if err != nil || again.String() != l.String() || again.Len() != l.Len() {
			t.Fatalf("%q is %q, which is %q (%v)", s, l, again, err)
		}
		if back := ListFromBitmap(l.Bitmap()); back.String() != l.String() {
			t.Fatalf("%q: the bitmap comes back as %q", l, back)
		}
	})
}
