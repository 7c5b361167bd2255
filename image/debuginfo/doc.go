// Package debuginfo answers three questions about addresses of an ELF file
// from its DWARF (versions 2 to 5): which line, which calls were inlined
// there, and where the function around it is declared.
//
//	.debug_info headers -> units whose code was asked about
//	  -> their entries, skipped by the sizes of their forms
//	       -> subprogram, inlined calls -> abstract instance -> name, line
//	  -> their line programs -> position
//
// It is no general reader: types, variables and locations are stepped over,
// units nobody asked about are not read but for their first entry, and a
// section that is not compressed stays in the file. debug/dwarf builds a
// structure of every entry, which takes ten times as long and much memory.
//
// Input is hostile: every offset and length is checked, what is allocated is
// bounded by what the file holds, and the work by a multiple of it.
package debuginfo
