package wire

// Messages of io.containerd.cgroups.v1.

type V1Metrics struct {
	Hugetlb          []*V1HugetlbStat
	Pids             *PidsStat
	CPU              *V1CPUStat
	Memory           *V1MemoryStat
	Blkio            *V1BlkIOStat
	Rdma             *RdmaStat
	Network          []*V1NetworkStat
	CgroupStats      *V1CgroupStats
	MemoryOOMControl *V1MemoryOomControl
}

func (m *V1Metrics) fields(c *codec) {
	messages(c, 1, &m.Hugetlb)
	message(c, 2, &m.Pids)
	message(c, 3, &m.CPU)
	message(c, 4, &m.Memory)
	message(c, 5, &m.Blkio)
	message(c, 6, &m.Rdma)
	messages(c, 7, &m.Network)
	message(c, 8, &m.CgroupStats)
	message(c, 9, &m.MemoryOOMControl)
}

type V1HugetlbStat struct {
	Usage    uint64
	Max      uint64
	Failcnt  uint64
	Pagesize string
}

func (m *V1HugetlbStat) fields(c *codec) {
	c.uint64(1, &m.Usage)
	c.uint64(2, &m.Max)
	c.uint64(3, &m.Failcnt)
	c.string(4, &m.Pagesize)
}

type V1CPUStat struct {
	Usage      *V1CPUUsage
	Throttling *V1Throttle
}

func (m *V1CPUStat) fields(c *codec) {
	message(c, 1, &m.Usage)
	message(c, 2, &m.Throttling)
}

type V1CPUUsage struct {
	Total  uint64
	Kernel uint64
	User   uint64
	PerCPU []uint64
}

func (m *V1CPUUsage) fields(c *codec) {
	c.uint64(1, &m.Total)
	c.uint64(2, &m.Kernel)
	c.uint64(3, &m.User)
	c.uint64s(4, &m.PerCPU)
}

type V1Throttle struct {
	Periods          uint64
	ThrottledPeriods uint64
	ThrottledTime    uint64
}

func (m *V1Throttle) fields(c *codec) {
	c.uint64(1, &m.Periods)
	c.uint64(2, &m.ThrottledPeriods)
	c.uint64(3, &m.ThrottledTime)
}

type V1MemoryStat struct {
	Cache                   uint64
	RSS                     uint64
	RSSHuge                 uint64
	MappedFile              uint64
	Dirty                   uint64
	Writeback               uint64
	PgPgIn                  uint64
	PgPgOut                 uint64
	PgFault                 uint64
	PgMajFault              uint64
	InactiveAnon            uint64
	ActiveAnon              uint64
	InactiveFile            uint64
	ActiveFile              uint64
	Unevictable             uint64
	HierarchicalMemoryLimit uint64
	HierarchicalSwapLimit   uint64
	TotalCache              uint64
	TotalRSS                uint64
	TotalRSSHuge            uint64
	TotalMappedFile         uint64
	TotalDirty              uint64
	TotalWriteback          uint64
	TotalPgPgIn             uint64
	TotalPgPgOut            uint64
	TotalPgFault            uint64
	TotalPgMajFault         uint64
	TotalInactiveAnon       uint64
	TotalActiveAnon         uint64
	TotalInactiveFile       uint64
	TotalActiveFile         uint64
	TotalUnevictable        uint64
	Usage                   *V1MemoryEntry
	Swap                    *V1MemoryEntry
	Kernel                  *V1MemoryEntry
	KernelTCP               *V1MemoryEntry
}

func (m *V1MemoryStat) fields(c *codec) {
	c.uint64(1, &m.Cache)
	c.uint64(2, &m.RSS)
	c.uint64(3, &m.RSSHuge)
	c.uint64(4, &m.MappedFile)
	c.uint64(5, &m.Dirty)
	c.uint64(6, &m.Writeback)
	c.uint64(7, &m.PgPgIn)
	c.uint64(8, &m.PgPgOut)
	c.uint64(9, &m.PgFault)
	c.uint64(10, &m.PgMajFault)
	c.uint64(11, &m.InactiveAnon)
	c.uint64(12, &m.ActiveAnon)
	c.uint64(13, &m.InactiveFile)
	c.uint64(14, &m.ActiveFile)
	c.uint64(15, &m.Unevictable)
	c.uint64(16, &m.HierarchicalMemoryLimit)
	c.uint64(17, &m.HierarchicalSwapLimit)
	c.uint64(18, &m.TotalCache)
	c.uint64(19, &m.TotalRSS)
	c.uint64(20, &m.TotalRSSHuge)
	c.uint64(21, &m.TotalMappedFile)
	c.uint64(22, &m.TotalDirty)
	c.uint64(23, &m.TotalWriteback)
	c.uint64(24, &m.TotalPgPgIn)
	c.uint64(25, &m.TotalPgPgOut)
	c.uint64(26, &m.TotalPgFault)
	c.uint64(27, &m.TotalPgMajFault)
	c.uint64(28, &m.TotalInactiveAnon)
	c.uint64(29, &m.TotalActiveAnon)
	c.uint64(30, &m.TotalInactiveFile)
	c.uint64(31, &m.TotalActiveFile)
	c.uint64(32, &m.TotalUnevictable)
	message(c, 33, &m.Usage)
	message(c, 34, &m.Swap)
	message(c, 35, &m.Kernel)
	message(c, 36, &m.KernelTCP)
}

type V1MemoryEntry struct {
	Limit   uint64
	Usage   uint64
	Max     uint64
	Failcnt uint64
}

func (m *V1MemoryEntry) fields(c *codec) {
	c.uint64(1, &m.Limit)
	c.uint64(2, &m.Usage)
	c.uint64(3, &m.Max)
	c.uint64(4, &m.Failcnt)
}

type V1MemoryOomControl struct {
	OOMKillDisable uint64
	UnderOOM       uint64
	OOMKill        uint64
}

func (m *V1MemoryOomControl) fields(c *codec) {
	c.uint64(1, &m.OOMKillDisable)
	c.uint64(2, &m.UnderOOM)
	c.uint64(3, &m.OOMKill)
}

type V1BlkIOStat struct {
	IOServiceBytesRecursive []*V1BlkIOEntry
	IOServicedRecursive     []*V1BlkIOEntry
	IOQueuedRecursive       []*V1BlkIOEntry
	IOServiceTimeRecursive  []*V1BlkIOEntry
	IOWaitTimeRecursive     []*V1BlkIOEntry
	IOMergedRecursive       []*V1BlkIOEntry
	IOTimeRecursive         []*V1BlkIOEntry
	SectorsRecursive        []*V1BlkIOEntry
}

func (m *V1BlkIOStat) fields(c *codec) {
	messages(c, 1, &m.IOServiceBytesRecursive)
	messages(c, 2, &m.IOServicedRecursive)
	messages(c, 3, &m.IOQueuedRecursive)
	messages(c, 4, &m.IOServiceTimeRecursive)
	messages(c, 5, &m.IOWaitTimeRecursive)
	messages(c, 6, &m.IOMergedRecursive)
	messages(c, 7, &m.IOTimeRecursive)
	messages(c, 8, &m.SectorsRecursive)
}

type V1BlkIOEntry struct {
	Op     string
	Device string
	Major  uint64
	Minor  uint64
	Value  uint64
}

func (m *V1BlkIOEntry) fields(c *codec) {
	c.string(1, &m.Op)
	c.string(2, &m.Device)
	c.uint64(3, &m.Major)
	c.uint64(4, &m.Minor)
	c.uint64(5, &m.Value)
}

type V1NetworkStat struct {
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

func (m *V1NetworkStat) fields(c *codec) {
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

type V1CgroupStats struct {
	NrSleeping        uint64
	NrRunning         uint64
	NrStopped         uint64
	NrUninterruptible uint64
	NrIOWait          uint64
}

func (m *V1CgroupStats) fields(c *codec) {
	c.uint64(1, &m.NrSleeping)
	c.uint64(2, &m.NrRunning)
	c.uint64(3, &m.NrStopped)
	c.uint64(4, &m.NrUninterruptible)
	c.uint64(5, &m.NrIOWait)
}
