package image

type callSite struct {
	at, next uint64
}

// CallSite returns the address of the call instruction that a return address
// belongs to.
func (s *Store) CallSite(l Loc) Addr {
	a := s.Addr(l)
	if a.Return && a.Offset > 0 {
		a.Offset--
	}
	a.Return = false
	return a
}
