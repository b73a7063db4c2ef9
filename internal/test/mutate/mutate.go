package mutate

import (
	stdjson "encoding/json"
	"math/rand/v2"
	"strings"
)

// Document changes some entries of a JSON document, keeping it JSON. Numbers are to be
// json.Number, so that large ones stay what they are.
func Document(r *rand.Rand, doc any, times int) any {
	for range times {
		doc = one(r, doc)
	}
	return doc
}

func one(r *rand.Rand, v any) any {
	if r.IntN(4) == 0 {
		return odd(r)
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return odd(r)
		}
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		key := keys[r.IntN(len(keys))]
		if r.IntN(12) == 0 {
			delete(v, key)
			return v
		}
		v[key] = one(r, v[key])
		return v
	case []any:
		if len(v) == 0 {
			return append(v, odd(r))
		}
		i := r.IntN(len(v))
		if r.IntN(12) == 0 {
			return append(v, v[i])
		}
		v[i] = one(r, v[i])
		return v
	}
	return odd(r)
}

// odd returns a value that is wrong in most places.
func odd(r *rand.Rand) any {
	values := []any{
		nil, true, false, "", "x", "/", "/a/../b", "..", "a\x00b", "a\nb", "é", "0-3,7", "3-1", "RLIMIT_NOFILE", "user", "bind",
		"SCMP_ACT_NOTIFY", "SCHED_DEADLINE", "10.20.30", "1.9.0-rc.1", "a=b", "lo", "L3:0=f\nMB:0=1", strings.Repeat("y", 300),
		stdjson.Number("0"), stdjson.Number("-1"), stdjson.Number("1"), stdjson.Number("65536"), stdjson.Number("4294967295"),
		stdjson.Number("4294967296"), stdjson.Number("9223372036854775807"), stdjson.Number("18446744073709551615"),
		stdjson.Number("1e3"), stdjson.Number("1.5"), stdjson.Number("-0"),
		[]any{}, []any{nil}, []any{"a", "a"}, map[string]any{}, map[string]any{"": ""}, map[string]any{"type": "user", "path": "x"},
		map[string]any{"a/b": map[string]any{"limit": stdjson.Number("-5")}},
	}
	return values[r.IntN(len(values))]
}
