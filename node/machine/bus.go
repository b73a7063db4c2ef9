package machine

import (
	"context"
	"time"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/node/config"
)

// bus is the Units of this machine's systemd.
type bus struct{ *systemd.Manager }

func newBus() *bus { return &bus{systemd.New(systemd.Options{Timeout: 30 * time.Second})} }

func (b *bus) Set(ctx context.Context, unit string, lasting config.Lasting, properties []ledger.Property) error {
	if lasting == config.Persistent {
		return b.Keep(ctx, unit, systemd.Resources(properties))
	}
	return b.Manager.Set(ctx, unit, systemd.Resources(properties))
}
