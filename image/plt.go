package image

func (e *elfFile) addPLT(b *symtabBuilder) error { return nil }
