package bootstrap

import (
	"fmt"
	"io"

	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// stdinLimit is more than any options have; what is longer is no bootstrap.
const stdinLimit = 10 << 20

// params are what came on standard input, in either form.
type params struct {
	// modern says that they came as BootstrapParams, and want an answer in kind.
	modern    bool
	message   wire.BootstrapParams
	options   *options.Options
	socketDir string
}

func readStdin(in io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(in, stdinLimit+1))
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	if len(b) > stdinLimit {
		return nil, fmt.Errorf("standard input is longer than %d bytes", stdinLimit)
	}
	return b, nil
}

// parseParams tells the two forms apart by what they name: an Any parses as
// BootstrapParams too, with its type URL for an instance id.
func parseParams(b []byte, a *Args) (*params, error) {
	p := new(params)
	err := wire.Unmarshal(b, &p.message)
	if err == nil && p.message.InstanceID == a.ID && p.message.Namespace == a.Namespace && a.ID != "" {
		p.modern = true
		if p.message.SocketDir != nil {
			p.socketDir = *p.message.SocketDir
		}
		p.options, err = optionsOf(p.message.Extensions)
		return p, err
	}
	p.message = wire.BootstrapParams{}
	var bare wire.Any
	if err := wire.Unmarshal(b, &bare); err != nil {
		return nil, fmt.Errorf("standard input is neither bootstrap parameters nor options: %w", err)
	}
	p.options, err = options.Parse(&bare)
	return p, err
}

// optionsOf finds the runtime options among extensions of other types.
func optionsOf(extensions []*wire.Extension) (*options.Options, error) {
	for _, e := range extensions {
		if v := e.Value; v != nil && (v.Is(wire.RuncOptionsURL) || v.Is(wire.RuntimeOptionsURL) || v.Is(wire.BerthOptionsURL)) {
			return options.Parse(v)
		}
	}
	return new(options.Options), nil
}
