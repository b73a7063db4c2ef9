package program

// SetFuel sets how many jumps the Program may take, for tests to see the end of it.
func (b *Builder) SetFuel(jumps uint32) { b.fuel = jumps }
