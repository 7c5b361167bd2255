// Package vpmu is the virtual PMU of the accuracy lab: it runs an unmodified
// x86-64 program under QEMU's user-mode emulation with a plugin that sees
// every block executed, writes recordings of the run as perf_event_open would
// give them on a machine with a full PMU, and the exact truth of the same
// run. README.md states the model and every convention of the truth.
//
//	Config -> plugin (plugin/*.c) -> event stream -> recordings (perf.data)
//	                                              -> truth (JSON lines)
//
// It belongs to the test data: nothing of the product imports it.
package vpmu
