package cfg

import "github.com/perfcorrect/perfcorrect/image"

// ImageCode shows an image as Code. Names of functions that never return are
// known; what is found out about others can be added to Ends.
type ImageCode struct {
	Image *image.Image
	// Ends has the entries (link-time addresses) of functions that were found
	// never to return.
	Ends map[uint64]bool
}

// Bytes returns code or read-only data at a link-time address.
func (c *ImageCode) Bytes(addr uint64, n int) []byte {
	off, ok := c.Image.FileOffset(addr)
	if !ok {
		return nil
	}
	return c.Image.Text(off, n)
}

// Function returns the function that covers a link-time address.
func (c *ImageCode) Function(addr uint64) (entry, end uint64, name string, ok bool) {
	off, ok := c.Image.FileOffset(addr)
	if !ok {
		return 0, 0, "", false
	}
	f := c.Image.FunctionAt(off)
	if f == nil {
		return 0, 0, "", false
	}
	return addr - (off - f.Entry), addr + (f.End - off), f.System, true
}

// NoReturn reports whether the function entered at addr is known not to return.
func (c *ImageCode) NoReturn(addr uint64) bool {
	if c.Ends[addr] {
		return true
	}
	entry, _, name, ok := c.Function(addr)
	return ok && entry == addr && neverReturns(name)
}

// neverReturns knows the functions of C, C++, Rust and Go run-time libraries
// that compilers know never to return. What a program adds to them is found by
// the code behind their calls.
func neverReturns(name string) bool {
	for len(name) > 4 && name[len(name)-4:] == "@plt" {
		name = name[:len(name)-4]
	}
	return noReturnNames[name]
}

var noReturnNames = map[string]bool{
	"abort": true, "exit": true, "_exit": true, "_Exit": true, "quick_exit": true, "pthread_exit": true,
	"__assert_fail": true, "__assert": true, "__assert_perror_fail": true, "__stack_chk_fail": true, "__fortify_fail": true,
	"__chk_fail": true, "__libc_fatal": true, "longjmp": true, "_longjmp": true, "siglongjmp": true, "__longjmp_chk": true,
	"__cxa_throw": true, "__cxa_rethrow": true, "__cxa_bad_cast": true, "__cxa_bad_typeid": true, "__cxa_throw_bad_array_new_length": true,
	"__cxa_pure_virtual": true, "__cxa_call_unexpected": true, "__cxa_call_terminate": true, "_Unwind_Resume": true, "_ZSt9terminatev": true,
	"_ZSt20__throw_length_errorPKc": true, "_ZSt19__throw_logic_errorPKc": true, "_ZSt20__throw_out_of_rangePKc": true,
	"_ZSt24__throw_out_of_range_fmtPKcz": true, "_ZSt17__throw_bad_allocv": true, "_ZSt16__throw_bad_castv": true,
	"_ZSt25__throw_bad_function_callv": true, "_ZSt28__throw_bad_array_new_lengthv": true, "_ZSt24__throw_invalid_argumentPKc": true,
	"__libc_start_main": true, "__libc_start_call_main": true,
	"runtime.gopanic": true, "runtime.throw": true, "runtime.fatal": true, "runtime.panicIndex": true, "runtime.panicIndexU": true,
	"runtime.panicSliceAlen": true, "runtime.panicSliceAcap": true, "runtime.panicSliceB": true, "runtime.panicSliceBU": true,
	"runtime.panicSliceAlenU": true, "runtime.panicSliceAcapU": true, "runtime.panicSlice3Alen": true, "runtime.panicSlice3Acap": true,
	"runtime.panicdivide": true, "runtime.panicshift": true, "runtime.panicdottypeE": true, "runtime.panicdottypeI": true,
	"runtime.panicnil": true, "runtime.panicwrap": true, "runtime.panicunsafeslicelen": true, "runtime.goexit0": true, "runtime.fatalthrow": true,
	"runtime.panicmakeslicelen": true, "runtime.panicmakeslicecap": true, "runtime.goPanicIndex": true, "runtime.goPanicSliceAlen": true,
}
