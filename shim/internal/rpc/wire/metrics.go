package wire

// Messages that io.containerd.cgroups.v1 and v2 both have, with the same fields.

type PidsStat struct {
	Current uint64
	Limit   uint64
}

func (m *PidsStat) fields(c *codec) {
	c.uint64(1, &m.Current)
	c.uint64(2, &m.Limit)
}

type RdmaStat struct {
	Current []*RdmaEntry
	Limit   []*RdmaEntry
}

func (m *RdmaStat) fields(c *codec) {
	messages(c, 1, &m.Current)
	messages(c, 2, &m.Limit)
}

type RdmaEntry struct {
	Device     string
	HCAHandles uint32
	HCAObjects uint32
}

func (m *RdmaEntry) fields(c *codec) {
	c.string(1, &m.Device)
	c.uint32(2, &m.HCAHandles)
	c.uint32(3, &m.HCAObjects)
}
