package wire

// Messages of io.containerd.cgroups.v2.

type V2Metrics struct {
	Pids         *PidsStat
	CPU          *V2CPUStat
	Memory       *V2MemoryStat
	Rdma         *RdmaStat
	IO           *V2IOStat
	Hugetlb      []*V2HugeTlbStat
	MemoryEvents *V2MemoryEvents
	Network      []*V2NetworkStat
}

func (m *V2Metrics) fields(c *codec) {
	message(c, 1, &m.Pids)
	message(c, 2, &m.CPU)
	message(c, 4, &m.Memory)
	message(c, 5, &m.Rdma)
	message(c, 6, &m.IO)
	messages(c, 7, &m.Hugetlb)
	message(c, 8, &m.MemoryEvents)
	messages(c, 9, &m.Network)
}

type V2PSIData struct {
	Avg10  float64
	Avg60  float64
	Avg300 float64
	Total  uint64
}

func (m *V2PSIData) fields(c *codec) {
	c.double(1, &m.Avg10)
	c.double(2, &m.Avg60)
	c.double(3, &m.Avg300)
	c.uint64(4, &m.Total)
}

type V2PSIStats struct {
	Some *V2PSIData
	Full *V2PSIData
}

func (m *V2PSIStats) fields(c *codec) {
	message(c, 1, &m.Some)
	message(c, 2, &m.Full)
}

type V2CPUStat struct {
	UsageUsec     uint64
	UserUsec      uint64
	SystemUsec    uint64
	NrPeriods     uint64
	NrThrottled   uint64
	ThrottledUsec uint64
	PSI           *V2PSIStats
	NrBursts      uint64
	BurstUsec     uint64
}

func (m *V2CPUStat) fields(c *codec) {
	c.uint64(1, &m.UsageUsec)
	c.uint64(2, &m.UserUsec)
	c.uint64(3, &m.SystemUsec)
	c.uint64(4, &m.NrPeriods)
	c.uint64(5, &m.NrThrottled)
	c.uint64(6, &m.ThrottledUsec)
	message(c, 7, &m.PSI)
	c.uint64(8, &m.NrBursts)
	c.uint64(9, &m.BurstUsec)
}

type V2MemoryStat struct {
	Anon                  uint64
	File                  uint64
	KernelStack           uint64
	Slab                  uint64
	Sock                  uint64
	Shmem                 uint64
	FileMapped            uint64
	FileDirty             uint64
	FileWriteback         uint64
	AnonThp               uint64
	InactiveAnon          uint64
	ActiveAnon            uint64
	InactiveFile          uint64
	ActiveFile            uint64
	Unevictable           uint64
	SlabReclaimable       uint64
	SlabUnreclaimable     uint64
	Pgfault               uint64
	Pgmajfault            uint64
	WorkingsetRefault     uint64
	WorkingsetActivate    uint64
	WorkingsetNodereclaim uint64
	Pgrefill              uint64
	Pgscan                uint64
	Pgsteal               uint64
	Pgactivate            uint64
	Pgdeactivate          uint64
	Pglazyfree            uint64
	Pglazyfreed           uint64
	ThpFaultAlloc         uint64
	ThpCollapseAlloc      uint64
	Usage                 uint64
	UsageLimit            uint64
	SwapUsage             uint64
	SwapLimit             uint64
	MaxUsage              uint64
	SwapMaxUsage          uint64
	PSI                   *V2PSIStats
}

func (m *V2MemoryStat) fields(c *codec) {
	c.uint64(1, &m.Anon)
	c.uint64(2, &m.File)
	c.uint64(3, &m.KernelStack)
	c.uint64(4, &m.Slab)
	c.uint64(5, &m.Sock)
	c.uint64(6, &m.Shmem)
	c.uint64(7, &m.FileMapped)
	c.uint64(8, &m.FileDirty)
	c.uint64(9, &m.FileWriteback)
	c.uint64(10, &m.AnonThp)
	c.uint64(11, &m.InactiveAnon)
	c.uint64(12, &m.ActiveAnon)
	c.uint64(13, &m.InactiveFile)
	c.uint64(14, &m.ActiveFile)
	c.uint64(15, &m.Unevictable)
	c.uint64(16, &m.SlabReclaimable)
	c.uint64(17, &m.SlabUnreclaimable)
	c.uint64(18, &m.Pgfault)
	c.uint64(19, &m.Pgmajfault)
	c.uint64(20, &m.WorkingsetRefault)
	c.uint64(21, &m.WorkingsetActivate)
	c.uint64(22, &m.WorkingsetNodereclaim)
	c.uint64(23, &m.Pgrefill)
	c.uint64(24, &m.Pgscan)
	c.uint64(25, &m.Pgsteal)
	c.uint64(26, &m.Pgactivate)
	c.uint64(27, &m.Pgdeactivate)
	c.uint64(28, &m.Pglazyfree)
	c.uint64(29, &m.Pglazyfreed)
	c.uint64(30, &m.ThpFaultAlloc)
	c.uint64(31, &m.ThpCollapseAlloc)
	c.uint64(32, &m.Usage)
	c.uint64(33, &m.UsageLimit)
	c.uint64(34, &m.SwapUsage)
	c.uint64(35, &m.SwapLimit)
	c.uint64(36, &m.MaxUsage)
	c.uint64(37, &m.SwapMaxUsage)
	message(c, 38, &m.PSI)
}

type V2MemoryEvents struct {
	Low          uint64
	High         uint64
	Max          uint64
	OOM          uint64
	OOMKill      uint64
	OOMGroupKill uint64
}

func (m *V2MemoryEvents) fields(c *codec) {
	c.uint64(1, &m.Low)
	c.uint64(2, &m.High)
	c.uint64(3, &m.Max)
	c.uint64(4, &m.OOM)
	c.uint64(5, &m.OOMKill)
	c.uint64(6, &m.OOMGroupKill)
}

type V2IOStat struct {
	Usage []*V2IOEntry
	PSI   *V2PSIStats
}

func (m *V2IOStat) fields(c *codec) {
	messages(c, 1, &m.Usage)
	message(c, 2, &m.PSI)
}

type V2IOEntry struct {
	Major  uint64
	Minor  uint64
	Rbytes uint64
	Wbytes uint64
	Rios   uint64
	Wios   uint64
}

func (m *V2IOEntry) fields(c *codec) {
	c.uint64(1, &m.Major)
	c.uint64(2, &m.Minor)
	c.uint64(3, &m.Rbytes)
	c.uint64(4, &m.Wbytes)
	c.uint64(5, &m.Rios)
	c.uint64(6, &m.Wios)
}

type V2HugeTlbStat struct {
	Current  uint64
	Max      uint64
	Pagesize string
	Failcnt  uint64
}

func (m *V2HugeTlbStat) fields(c *codec) {
	c.uint64(1, &m.Current)
	c.uint64(2, &m.Max)
	c.string(3, &m.Pagesize)
	c.uint64(4, &m.Failcnt)
}

type V2NetworkStat struct {
	Name      string
	RxBytes   uint64
	RxPackets uint64
	RxErrors  uint64
	RxDropped uint64
	TxBytes   uint64
	TxPackets uint64
	TxErrors  uint64
	TxDropped uint64
}

func (m *V2NetworkStat) fields(c *codec) {
	c.string(1, &m.Name)
	c.uint64(2, &m.RxBytes)
	c.uint64(3, &m.RxPackets)
	c.uint64(4, &m.RxErrors)
	c.uint64(5, &m.RxDropped)
	c.uint64(6, &m.TxBytes)
	c.uint64(7, &m.TxPackets)
	c.uint64(8, &m.TxErrors)
	c.uint64(9, &m.TxDropped)
}
