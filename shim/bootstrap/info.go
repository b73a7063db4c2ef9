package bootstrap

import (
	"context"
	"fmt"
	"io"

	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// Info prints what the runtime can do, for the options on standard input.
func Info(name, version, revision string, engines Engines, in io.Reader, out io.Writer) error {
	input, err := readStdin(in)
	if err != nil {
		return err
	}
	info := &wire.RuntimeInfo{Name: name, Version: &wire.RuntimeVersion{Version: version, Revision: revision}}
	if len(input) > 0 {
		info.Options = new(wire.Any)
		if err := wire.Unmarshal(input, info.Options); err != nil {
			return fmt.Errorf("standard input is not options: %w", err)
		}
	}
	o, err := options.Parse(info.Options)
	if err != nil {
		return err
	}
	eng, err := engines(o, "")
	if err != nil {
		return err
	}
	// A runtime that cannot say what it can do is one of before the document.
	if features, err := eng.Features(context.Background()); err == nil {
		info.Features = &wire.Any{TypeURL: wire.FeaturesURL, Value: features}
	}
	_, err = out.Write(wire.Marshal(info))
	return err
}
