package cgrouptool

// Join moves processes into cgroups, one after the other; pid 0 is this process.
func (t *Tools) Join(targets []Target, pids []int) error {
	for _, target := range targets {
		g, err := t.Open(target)
		if err != nil {
			return err
		}
		defer g.Close()
		if err := t.mayChange("put a process into", g); err != nil {
			return err
		}
		for _, pid := range pids {
			if err := g.Join(pid); err != nil {
				return err
			}
		}
	}
	return nil
}
