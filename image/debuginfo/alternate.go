package debuginfo

// alternate returns the supplementary file that dwz moved common parts to
// (DWARF 5, section 7.3.6), nil if there is none.
func (f *File) alternate() *File {
	if f.altDone {
		return f.alt
	}
	f.altDone = true
	if f.src.Alternate == nil {
		return nil
	}
	src := f.src.Alternate()
	if src == nil {
		return nil
	}
	alt, err := open(*src, "", f.budget)
	if err != nil {
		return nil
	}
	alt.altDone = true // such a file has none itself
	alt.readUnits(secInfo)
	alt.infoEnd = len(alt.units)
	f.alt = alt
	return alt
}
