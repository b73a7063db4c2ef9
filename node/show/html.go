package show

import "time"

func HTML(n *Node, at time.Time) []byte { return nil }
