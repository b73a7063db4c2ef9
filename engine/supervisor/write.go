package supervisor

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/json"
)

// JSON writes a profile in the form of linux.seccomp of config.json.
func JSON(p *specs.LinuxSeccomp) []byte {
	w := json.NewWriter(nil, "  ")
	w.Object()
	w.Key("defaultAction").String(string(p.DefaultAction))
	if p.DefaultErrnoRet != nil {
		w.Key("defaultErrnoRet").Uint(uint64(*p.DefaultErrnoRet))
	}
	w.Key("architectures").Strings(texts(p.Architectures))
	w.Key("syscalls").Array()
	for _, s := range p.Syscalls {
		w.Object()
		w.Key("names").Strings(s.Names)
		w.Key("action").String(string(s.Action))
		if s.ErrnoRet != nil {
			w.Key("errnoRet").Uint(uint64(*s.ErrnoRet))
		}
		if len(s.Args) > 0 {
			w.Key("args").Array()
			for _, a := range s.Args {
				w.Object()
				w.Key("index").Uint(uint64(a.Index))
				w.Key("value").Uint(a.Value)
				w.Key("valueTwo").Uint(a.ValueTwo)
				w.Key("op").String(string(a.Op))
				w.End()
			}
			w.End()
		}
		w.End()
	}
	w.End()
	w.End()
	return append(w.Bytes(), '\n')
}

func texts[T ~string](list []T) []string {
	var out []string
	for _, v := range list {
		out = append(out, string(v))
	}
	return out
}
