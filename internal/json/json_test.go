package json

import (
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// decodeAny reads a whole document by the decoder's public calls, into the
// types that encoding/json uses; numbers as their text.
func decodeAny(d *Decoder) any {
	switch d.peek() {
	case '{':
		m := map[string]any{}
		for d.Object(); d.Next(); {
			key := d.Key()
			m[key] = decodeAny(d)
		}
		return m
	case '[':
		a := []any{}
		for d.Array(); d.Next(); {
			a = append(a, decodeAny(d))
		}
		return a
	case '"':
		return d.String()
	case 't', 'f':
		return d.Bool()
	case 'n':
		d.Null()
		return nil
	default:
		return stdjson.Number(d.Raw())
	}
}

func stdAny(doc string) (any, error) {
	dec := stdjson.NewDecoder(strings.NewReader(doc))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

func TestValidDocuments(t *testing.T) {
	for _, doc := range []string{
		`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `-12.5e+3`, `1E9`, `""`, ` "a" `,
		`{"a":1,"b":[true,false,null,{"c":"d"}]}`,
		"\t{ \"a\" : [ 1 , 2 ] ,\r\n \"b\" : { } }\n",
		`"\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00"`,
		`"plain é € 😀 ` + "\x7f" + `"`,
		`{"":1,"a b":2,"é":3}`,
		strings.Repeat("[", 512) + strings.Repeat("]", 512),
	} {
		want, err := stdAny(doc)
		if err != nil {
			t.Fatalf("%s: the oracle refuses it: %v", doc, err)
		}
		d := NewDecoder([]byte(doc))
		got := decodeAny(d)
		if err := d.Close(); err != nil {
			t.Errorf("%s: %v", doc, err)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, want %#v", doc, got, want)
		}
		d = NewDecoder([]byte(doc))
		d.Skip()
		if err := d.Close(); err != nil {
			t.Errorf("%s: skipped: %v", doc, err)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	deep := strings.Repeat("[", 513)
	for _, test := range []struct{ doc, want string }{
		{``, `line 1, column 1: expected a value, found the end of the document`},
		{" \n ", `line 2, column 2: expected a value, found the end of the document`},
		{`{`, `line 1, column 2: expected a key in double quotes, found the end of the document`},
		{`{]`, `line 1, column 2: expected a key in double quotes, found ']'`},
		{`[}`, `line 1, column 2: expected a value, found '}'`},
		{`{"a"}`, `line 1, column 5: expected a colon after the key, found '}'`},
		{`{"a":}`, `line 1, column 6: expected a value, found '}'`},
		{`{"a":1,}`, `line 1, column 8: expected a key in double quotes, found '}'`},
		{`{"a":1 "b":2}`, `line 1, column 8: expected a comma or '}', found '"'`},
		{`{a:1}`, `line 1, column 2: expected a key in double quotes, found 'a'`},
		{`[1,]`, `line 1, column 4: expected a value, found ']'`},
		{`[1 2]`, `line 1, column 4: expected a comma or ']', found '2'`},
		{`[01]`, `line 1, column 3: expected a comma or ']', found '1'`},
		{`[1.]`, `line 1, column 4: expected a digit after the decimal point, found ']'`},
		{`[1e]`, `line 1, column 4: expected a digit in the exponent, found ']'`},
		{`[-]`, `line 1, column 3: expected a digit, found ']'`},
		{`[+1]`, `line 1, column 2: expected a value, found '+'`},
		{`[.5]`, `line 1, column 2: expected a value, found '.'`},
		{`[NaN]`, `line 1, column 2: expected a value, found 'N'`},
		{`[nul]`, `line 1, column 2: expected a value, found 'n'`},
		{`[truE]`, `line 1, column 2: expected a value, found 't'`},
		{`['a']`, `line 1, column 2: expected a value, found '\''`},
		{"// c\n{}", `line 1, column 1: expected a value, found '/'`},
		{"\ufeff{}", `line 1, column 1: expected a value, found '\ufeff'`},
		{`{} {}`, `line 1, column 4: expected the end of the document, found '{'`},
		{`{}` + "\x00", `line 1, column 3: expected the end of the document, found '\x00'`},
		{"[\n  \"é\",\n  \"a]", `line 3, column 3: a string without closing quote`},
		{`"\`, `line 1, column 2: an escape that JSON does not have`},
		{`"\x"`, `line 1, column 2: an escape that JSON does not have`},
		{`"\u12g4"`, `line 1, column 2: an escape that JSON does not have`},
		{`"\ud800"`, `line 1, column 2: half of a UTF-16 surrogate pair`},
		{`"\ud800\ud800"`, `line 1, column 2: half of a UTF-16 surrogate pair`},
		{`"a\udc00"`, `line 1, column 3: half of a UTF-16 surrogate pair`},
		{"\"a\nb\"", `line 1, column 3: a control character in a string, write it as an escape`},
		{"\"\\n\n\"", `line 1, column 4: a control character in a string, write it as an escape`},
		{"\"a\xff\"", `line 1, column 3: a byte that is not UTF-8 in a string`},
		{"\"\\n\xc3\"", `line 1, column 4: a byte that is not UTF-8 in a string`},
		{"\"\xed\xa0\x80\"", `line 1, column 2: a byte that is not UTF-8 in a string`},
		{"\xff", `line 1, column 1: expected a value, found a byte that is not UTF-8`},
		{deep, `line 1, column 513: nested deeper than 512 levels`},
		{strings.Repeat(`{"a":`, 600), `line 1, column 2561: nested deeper than 512 levels`},
		{"[" + strings.Repeat("1,", maxValues) + "1]", `line 1, column 524290: more than 262144 values`},
	} {
		name := test.doc[:min(len(test.doc), 20)]
		d := NewDecoder([]byte(test.doc))
		decodeAny(d)
		err := d.Close()
		if err == nil || err.Error() != test.want {
			t.Errorf("%q: got %v, want %s", name, err, test.want)
		}
		if strings.HasPrefix(test.want, "line 1, column 524290") {
			continue // skipping costs no memory, so it has no such bound
		}
		d = NewDecoder([]byte(test.doc))
		d.Skip()
		if err := d.Close(); err == nil || err.Error() != test.want {
			t.Errorf("%q: skipped: got %v, want %s", name, err, test.want)
		}
	}
}

func TestSkipNeedsNoMemoryForDepth(t *testing.T) {
	doc := []byte(strings.Repeat("[", 1<<20))
	var d *Decoder
	allocs := testing.AllocsPerRun(10, func() {
		d = NewDecoder(doc)
		d.Skip()
	})
	if d.Close() == nil || allocs > 8 {
		t.Errorf("err %v, %v allocations", d.Close(), allocs)
	}
}

func TestFaults(t *testing.T) {
	long := strings.Repeat("é", 100)
	for _, test := range []struct{ doc, want string }{
		{`{"s":1}`, `/s: expected a string, found the number 1`},
		{`{"s":null}`, `/s: expected a string, found null`},
		{`{"s":{"x":[1]}}`, `/s: expected a string, found an object`},
		{`{"s":[]}`, `/s: expected a string, found an array`},
		{`{"s":true}`, `/s: expected a string, found the boolean true`},
		{`{"b":"yes"}`, `/b: expected true or false, found the string "yes"`},
		{`{"b":0}`, `/b: expected true or false, found the number 0`},
		{`{"i":"7"}`, `/i: expected an integer, found the string "7"`},
		{`{"i":1.0}`, `/i: expected an integer, found the number 1.0`},
		{`{"i":1e3}`, `/i: expected an integer, found the number 1e3`},
		{`{"i":9223372036854775808}`, `/i: expected an integer from -9223372036854775808 to 9223372036854775807, found the number 9223372036854775808`},
		{`{"i8":128}`, `/i8: expected an integer from -128 to 127, found the number 128`},
		{`{"u":-1}`, `/u: expected an unsigned integer, found the number -1`},
		{`{"u":-0}`, `/u: expected an unsigned integer, found the number -0`},
		{`{"u":"` + long + `"}`, `/u: expected an unsigned integer, found the string "` + strings.Repeat("é", 29) + `…`},
		{`{"u":18446744073709551616}`, `/u: expected an unsigned integer up to 18446744073709551615, found the number 18446744073709551616`},
		{`{"u16":65536}`, `/u16: expected an unsigned integer up to 65535, found the number 65536`},
		{`{"t":"yesterday"}`, `/t: expected a time like 2006-01-02T15:04:05Z, found the string "yesterday"`},
		{`{"t":5}`, `/t: expected a time, found the number 5`},
		{`{"l":"x"}`, `/l: expected an array, found the string "x"`},
		{`{"l":["a",5]}`, `/l/1: expected a string, found the number 5`},
		{`{"m":[]}`, `/m: expected an object, found an array`},
		{`{"m":{"a~b/c":5}}`, `/m/a~0b~1c: expected a string, found the number 5`},
		{`{"m":{"a":"1","a":"2"}}`, `/m/a: the key appears twice`},
		{`[]`, `expected an object, found an array`},
	} {
		d := NewDecoder([]byte(test.doc))
		for d.Object(); d.Next(); {
			switch d.Key() {
			case "s":
				_ = d.String()
			case "b":
				d.Bool()
			case "i":
				d.Int(64)
			case "i8":
				d.Int(8)
			case "u":
				d.Uint(64)
			case "u16":
				d.Uint(16)
			case "t":
				d.Time()
			case "l":
				d.Strings()
			case "m":
				d.StringMap()
			}
		}
		err := d.Close()
		if err == nil || err.Error() != test.want {
			t.Errorf("%.60s: got %v, want %s", test.doc, err, test.want)
		}
		if faults, more := d.Faults(); len(faults) != 1 || more != 0 {
			t.Errorf("%.60s: %d faults and %d more", test.doc, len(faults), more)
		}
	}
}

func TestManyFaultsAreCounted(t *testing.T) {
	d := NewDecoder([]byte("[" + strings.Repeat("1,", 119) + "1]"))
	d.Strings()
	if err := d.Syntax(); err != nil {
		t.Fatal(err)
	}
	faults, more := d.Faults()
	if len(faults) != 50 || more != 70 || faults[49].Pointer != "/49" {
		t.Errorf("%d faults and %d more, the last at %s", len(faults), more, faults[len(faults)-1].Pointer)
	}
}

func TestMissing(t *testing.T) {
	d := NewDecoder([]byte(`{"a":[{},{"x":1}]}`))
	for d.Object(); d.Next(); {
		for d.Array(); d.Next(); {
			found := false
			for d.Object(); d.Next(); {
				found = true
			}
			if !found {
				d.Missing("x")
			}
		}
	}
	if err := d.Close(); err == nil || err.Error() != "/a/0/x: is required, but missing" {
		t.Error(err)
	}
}

func TestNumbersAreExact(t *testing.T) {
	d := NewDecoder([]byte(`[9223372036854775807,-9223372036854775808,18446744073709551615,9007199254740993]`))
	d.Array()
	d.Next()
	if v := d.Int(64); v != 1<<63-1 {
		t.Error(v)
	}
	d.Next()
	if v := d.Int(64); v != -1<<63 {
		t.Error(v)
	}
	d.Next()
	if v := d.Uint(64); v != 1<<64-1 {
		t.Error(v)
	}
	d.Next()
	if v := d.Int(64); v != 1<<53+1 {
		t.Error(v)
	}
	if d.Next() || d.Close() != nil {
		t.Error(d.Close())
	}
}

func TestStringListsStayApart(t *testing.T) {
	d := NewDecoder([]byte(`[["a","b"],[],["c"]]`))
	var lists [][]string
	for d.Array(); d.Next(); {
		lists = append(lists, d.Strings())
	}
	lists[0] = append(lists[0], "x") // must not reach into the next list
	want := [][]string{{"a", "b", "x"}, {}, {"c"}}
	if d.Close() != nil || !reflect.DeepEqual(lists, want) {
		t.Errorf("%v %q", d.Close(), lists)
	}
}

func TestInputIsNotKept(t *testing.T) {
	data := []byte(`"abc"`)
	d := NewDecoder(data)
	s := d.String()
	copy(data, `"xyz"`)
	if s != "abc" {
		t.Errorf("the string changed with the buffer: %q", s)
	}
}

func TestWriter(t *testing.T) {
	at := time.Date(2024, 2, 29, 23, 59, 58, 123456789, time.UTC)
	write := func(w *Writer) string {
		w.Object()
		w.Key("s").String("a\"\\\n\r\t\x01\x7fé€😀<&>\xff.")
		w.Key("n").Array().Int(-5).Uint(1<<64 - 1).Bool(true).Null().End()
		w.Key("o").Object().End()
		w.Key("e").Array().End()
		w.Key("t").Time(at)
		w.Key("l").Strings([]string{"x", "y"})
		w.Key("r").Raw(`{"k": 1}`)
		return string(w.End().Bytes())
	}
	compact := write(new(Writer))
	want := `{"s":"a\"\\\n\r\t\u0001` + "\x7f" + `é€😀<&>` + "\ufffd" + `.","n":[-5,18446744073709551615,true,null],` +
		`"o":{},"e":[],"t":"2024-02-29T23:59:58.123456789Z","l":["x","y"],"r":{"k": 1}}`
	if compact != want {
		t.Errorf("got  %s\nwant %s", compact, want)
	}
	indented := write(NewWriter([]byte("> "), "  "))
	if !strings.HasPrefix(indented, "> {\n  \"s\": \"a") || !strings.Contains(indented, "\n  \"n\": [\n    -5,\n") ||
		!strings.Contains(indented, "\n  \"o\": {},\n  \"e\": [],\n") || !strings.HasSuffix(indented, "\n}") {
		t.Error(indented)
	}
	a, errA := stdAny(compact)
	b, errB := stdAny(indented[2:])
	if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%v %v: %v is not %v", errA, errB, a, b)
	}
	d := NewDecoder([]byte(compact))
	for d.Object(); d.Next(); {
		if d.Key() == "t" && !d.Time().Equal(at) {
			t.Error("the time came back changed")
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzDecoder(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"\u00e9\ud83d\ude00",null,true]}`, `"\ud800"`, `[1,]`, "\"\xff\"", `{"a":1,"a":2}`,
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t é😀\x7f\"", `{"k\n":[true,false,null,{"o":{},"a":[]}], "é" : 0.5E+7}`, "[\"a\tb\"]", `"open`, `{"a" 1}`, `[1 2]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		d := NewDecoder(doc)
		got := decodeAny(d)
		err := d.Close()
		skipper := NewDecoder(doc)
		skipper.Skip()
		if skipped := skipper.Close(); (err == nil) != (skipped == nil) && d.values <= maxValues {
			t.Fatalf("read: %v, skipped: %v", err, skipped)
		}
		if err != nil {
			return
		}
		// Whatever we take, encoding/json takes too, with the same meaning.
		if !stdjson.Valid(doc) {
			t.Fatal("accepted, but not valid JSON")
		}
		want, err := stdAny(string(doc))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %#v, want %#v (%v)", got, want, err)
		}
	})
}

func FuzzWriterString(f *testing.F) {
	f.Add("a\"\\\n\x00é\xff")
	f.Fuzz(func(t *testing.T, s string) {
		// A conversion to runes puts one U+FFFD for each bad byte, as the writer does.
		quoted := AppendString(nil, s)
		d := NewDecoder(quoted)
		got := d.String()
		if err := d.Close(); err != nil || got != string([]rune(s)) {
			t.Fatalf("%q became %s, then %q (%v)", s, quoted, got, err)
		}
	})
}
