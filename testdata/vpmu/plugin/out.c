// The event stream: one buffered writer, used only by the thread that has the
// virtual CPU.
#define _GNU_SOURCE
#include "vpmu.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint8_t buf[1 << 20];
static size_t used;
static int fd = -1;

void out_open(const char *path)
{
	int low = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	// A high number, so that the guest's own descriptors stay what they would be.
	fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, 500);
	if (fd < 0) {
		fprintf(stderr, "vpmu: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	close(low);
}

static void flush(void)
{
	for (size_t at = 0; at < used;) {
		ssize_t n = write(fd, buf + at, used - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			fprintf(stderr, "vpmu: writing events: %s\n", strerror(errno));
			_exit(1);
		}
		at += n;
	}
	used = 0;
}

void out_bytes(const void *p, size_t n)
{
	while (n) {
		size_t k = sizeof buf - used < n ? sizeof buf - used : n;
		memcpy(buf + used, p, k);
		used += k, n -= k, p = (const char *)p + k;
		if (used == sizeof buf)
			flush();
	}
}

void out_u8(uint8_t v) { out_bytes(&v, 1); }
void out_u32(uint32_t v) { out_bytes(&v, 4); }
void out_u64(uint64_t v) { out_bytes(&v, 8); }

void out_str(const char *s)
{
	out_u32(strlen(s));
	out_bytes(s, strlen(s));
}

void out_lanes(lanes v)
{
	for (int i = 0; i < LANES; i++)
		out_u64(v[i] / UNIT);
}

void out_close(void)
{
	flush();
	close(fd);
	fd = -1;
}

// out_forget drops what a forked child inherited.
void out_forget(void)
{
	used = 0;
	close(fd);
	fd = -1;
}
