package ptr

// To is a pointer to a copy of v.
func To[T any](v T) *T { return &v }
