// Package unwind turns what a sample holds of the stack into frames, leaf
// first. There are several kinds of evidence, one file each:
//
//   - a callchain collected by the kernel, by frame pointers or by its own
//     unwinder (Callchain);
//   - user registers and a copy of the top of the stack, unwound here with the
//     call frame information of the images;
//   - the branch records of a PMU in call-stack mode.
//
// A stack is only as good as its end: every unwinder says by an Outcome why
// it stopped, so that cut and broken stacks are known as such and can be
// counted.
//
// The first frame of each mode (the kernel's, the user's) is an instruction
// pointer, the address of an instruction that was being executed. All others
// are return addresses, which name the instruction after a call. The two are
// different kinds of address (image.Addr says why), and Frame keeps them apart.
package unwind
