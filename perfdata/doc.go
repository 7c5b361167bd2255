// Package perfdata turns the bytes of a perf.data recording into records and
// records into bytes.
//
// Reading is one path for every kind of recording:
//
//  1. a source delivers bytes: the data section of a file, a pipe, the data
//     files of a directory (perf record --threads), or the zstd stream inside
//     COMPRESSED records (perf record -z);
//  2. the framer cuts raw records out of them, checking every size against
//     what is left;
//  3. the sorter puts raw records in time order, a FINISHED_ROUND at a time;
//  4. the decoder turns each raw record into one of the structs of this
//     package, with the Event it belongs to.
//
// What perf says about the recording as a whole (events, host, build IDs...)
// is Meta. In a file it is known before the first record, in a pipe it
// arrives as records and is complete only when the first sample is seen.
//
// The formats follow include/uapi/linux/perf_event.h (kernel records),
// tools/lib/perf/include/perf/event.h (records 64-86 of perf itself) and
// tools/perf/Documentation/perf.data-file-format.txt, Linux 6.18.
package perfdata
