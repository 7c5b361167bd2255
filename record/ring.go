package record

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is a ring buffer the kernel writes records into: one for each CPU,
// shared by all events opened on it (PERF_EVENT_IOC_SET_OUTPUT).
type ring struct {
	cpu  int
	fd   int // of the event it was made with
	mem  []byte
	data []byte
	page *unix.PerfEventMmapPage
	tail uint64 // read up to here
}

// newRing maps a ring of size bytes, a power of two and whole pages, for the
// event fd (Documentation of perf_mmap in kernel/events/core.c: one page of
// control data in front).
func newRing(fd, cpu, size int) (*ring, error) {
	pageSize := unix.Getpagesize()
	mem, err := unix.Mmap(fd, 0, pageSize+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("ring buffer of %d KiB: %w", size>>10, err)
	}
	return &ring{
		cpu: cpu, fd: fd, mem: mem, data: mem[pageSize:],
		page: (*unix.PerfEventMmapPage)(unsafe.Pointer(&mem[0])),
	}, nil
}

// pending returns what has been written and not released: two parts, since
// the buffer is a ring.
//
// The kernel writes data_head behind a barrier once the records are complete;
// an atomic load pairs with it (perf_output_put_handle in
// kernel/events/ring_buffer.c).
func (r *ring) pending() (a, b []byte) {
	head := atomic.LoadUint64(&r.page.Data_head)
	n := head - r.tail
	if n == 0 {
		return nil, nil
	}
	mask := uint64(len(r.data) - 1)
	from := r.tail & mask
	if from+n <= uint64(len(r.data)) {
		return r.data[from : from+n], nil
	}
	return r.data[from:], r.data[:from+n-uint64(len(r.data))]
}

// release gives n bytes back to the kernel.
func (r *ring) release(n int) {
	r.tail += uint64(n)
	atomic.StoreUint64(&r.page.Data_tail, r.tail)
}

func (r *ring) close() { unix.Munmap(r.mem) }
