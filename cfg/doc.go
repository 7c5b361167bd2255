// Package cfg recovers the control flow of machine code: from the bytes of a
// function to its instructions, basic blocks, edges and calls, and to what the
// estimators need of them: which blocks run equally often.
//
// Build decodes one function, once, following its jumps from the entry. What
// cannot be followed with certainty, an indirect jump whose table was not
// recognised above all, makes the graph untrusted: its blocks and calls are
// still right, its edges and classes may not be.
//
// Addresses are link-time addresses. Only x86-64 is known today.
package cfg
