// Package record makes recordings: it opens events with perf_event_open(2),
// copies what the kernel writes into its ring buffers to a perfdata.Writer and
// adds what the kernel does not say.
//
// In the order of a recording:
//
//	Machine   what the machine has: PMUs, formats, aliases (sysfs)
//	Parse     events as perf writes them -> groups of events
//	Probe     what the kernel lets this process open -> Capabilities
//	Plan      Capabilities and what was asked for -> groups, and one line about them
//	Run       opens them, drains the rings, ends with a complete recording
//
// The package prints nothing: what is to be said is returned or handed to
// Config.Say.
package record
