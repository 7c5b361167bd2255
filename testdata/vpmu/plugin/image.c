// Which file each guest address shows. The guest's program and its ELF
// interpreter are mapped by the emulator before the first block runs and
// found in /proc/self/maps (guest addresses are host addresses when both are
// x86-64); everything later is seen as a system call.
#define _GNU_SOURCE
#include "vpmu.h"
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PROT_TOLD 0x100 // the guest itself said so

typedef struct { uint64_t start, end; int plt0; } Range;
typedef struct { char *path; uint64_t hash; Range plt[6]; int nplt, go; } Image;
typedef struct { uint64_t start, end, off; uint32_t image; } Map;

static Image *images;
static uint32_t nimages;
static Map *maps;
static int nmaps, capmaps;
static char *before; // /proc/self/maps when the plugin was loaded

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "re");
	char *s = NULL;
	size_t n = 0, got;
	if (!f)
		return strdup("");
	do {
		s = realloc(s, n + 65537);
		n += got = fread(s + n, 1, 65536, f);
	} while (got);
	s[n] = 0;
	fclose(f);
	return s;
}

// read_sections finds the PLT sections (as file offsets) and whether Go made
// the file.
static void read_sections(Image *im)
{
	int fd = open(im->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr)) {
		close(fd);
		return;
	}
	uint64_t size = st.st_size;
	char *m = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (m == MAP_FAILED)
		return;
	Elf64_Ehdr *eh = (void *)m;
	Elf64_Shdr *sh = (void *)(m + eh->e_shoff);
	if (memcmp(m, ELFMAG, SELFMAG) == 0 && eh->e_ident[EI_CLASS] == ELFCLASS64 && eh->e_shoff < size &&
	    eh->e_shnum <= (size - eh->e_shoff) / sizeof *sh && eh->e_shstrndx < eh->e_shnum) {
		uint64_t names = sh[eh->e_shstrndx].sh_offset;
		for (int i = 0; i < eh->e_shnum; i++) {
			if (names + sh[i].sh_name + 20 > size)
				continue;
			const char *name = m + names + sh[i].sh_name;
			if (!strcmp(name, ".gopclntab") || !strcmp(name, ".note.go.buildid"))
				im->go = 1;
			if ((!strncmp(name, ".plt", 4) || !strcmp(name, ".iplt")) && im->nplt < 6)
				im->plt[im->nplt++] = (Range){sh[i].sh_offset, sh[i].sh_offset + sh[i].sh_size,
							      !strcmp(name, ".plt")};
		}
	}
	munmap(m, size);
}

static uint32_t image_of(const char *path)
{
	for (uint32_t i = 0; i < nimages; i++)
		if (!strcmp(images[i].path, path))
			return i;
	images = realloc(images, (nimages + 1) * sizeof *images);
	Image *im = &images[nimages];
	memset(im, 0, sizeof *im);
	im->path = strdup(path);
	for (const char *p = path; *p; p++)
		im->hash = mix(im->hash ^ (unsigned char)*p);
	if (path[0] == '/' && path[1] != '/')
		read_sections(im);
	return nimages++;
}

static void insert(uint64_t start, uint64_t end, uint64_t off, uint32_t image)
{
	image_unmap(start, end - start);
	if (nmaps == capmaps)
		maps = realloc(maps, (capmaps = capmaps * 2 + 64) * sizeof *maps);
	int i = nmaps++;
	for (; i && maps[i - 1].start > start; i--)
		maps[i] = maps[i - 1];
	maps[i] = (Map){start, end, off, image};
}

void image_unmap(uint64_t addr, uint64_t len)
{
	uint64_t end = addr + len;
	for (int i = 0; i < nmaps; i++) {
		Map m = maps[i];
		if (m.end <= addr || m.start >= end)
			continue;
		memmove(&maps[i], &maps[i + 1], (--nmaps - i) * sizeof *maps);
		i--;
		if (m.start < addr)
			insert(m.start, addr, m.off, m.image);
		if (m.end > end)
			insert(end, m.end, m.off + (end - m.start), m.image);
	}
}

static void tell(uint64_t start, uint64_t end, uint64_t off, uint32_t prot, uint32_t flags, dev_t dev, uint64_t ino,
		 const char *path)
{
	out_u8('M');
	out_u32(cur ? cur->index : 0);
	out_lanes(now_wall());
	out_u64(start), out_u64(end - start), out_u64(off);
	out_u32(prot), out_u32(flags), out_u32(major(dev)), out_u32(minor(dev));
	out_u64(ino);
	out_str(path);
}

void image_init(void)
{
	image_of("//anon");
	before = slurp("/proc/self/maps");
}

// image_start takes the mappings made since image_init: program and interpreter.
void image_start(void)
{
	char *now = slurp("/proc/self/maps"), *save;
	for (char *l = strtok_r(now, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		unsigned long s, e, off, ino;
		unsigned ma, mi;
		char perm[8];
		int at = 0;
		if (sscanf(l, "%lx-%lx %7s %lx %x:%x %lu %n", &s, &e, perm, &off, &ma, &mi, &ino, &at) < 7)
			continue;
		if (strstr(before, l) || l[at] != '/' || strstr(l + at, ".so.cache"))
			continue;
		insert(s, e, off, image_of(l + at));
		// Protection as the emulator maps it, which lacks PROT_EXEC; the
		// reader takes it from the program headers.
		tell(s, e, off, 0, MAP_PRIVATE, makedev(ma, mi), ino, l + at);
	}
	free(now);
	free(before);
}

void image_map(uint64_t addr, uint64_t len, int prot, int flags, int fd, uint64_t off, int64_t ret)
{
	char link[64], path[4096];
	struct stat st = {0};
	uint64_t end = ret + ((len + 4095) & ~4095ul);
	(void)addr;
	image_unmap(ret, end - ret);
	if (!(flags & MAP_ANONYMOUS)) {
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		ssize_t n = readlink(link, path, sizeof path - 1);
		if (n <= 0 || fstat(fd, &st))
			return;
		path[n] = 0;
	} else if (prot & PROT_EXEC) {
		strcpy(path, "//anon");
		off = 0;
	} else {
		return;
	}
	if (path[0] == '/' && path[1] != '/')
		insert(ret, end, off, image_of(path));
	tell(ret, end, off, prot | PROT_TOLD, flags & (MAP_SHARED | MAP_PRIVATE), st.st_dev, st.st_ino, path);
}

void image_protect(uint64_t addr, uint64_t len, int prot)
{
	if (!(prot & PROT_EXEC))
		return;
	for (int i = 0; i < nmaps; i++)
		if (maps[i].start <= addr && addr < maps[i].end) {
			struct stat st = {0};
			const char *path = images[maps[i].image].path;
			stat(path, &st);
			tell(addr, addr + len, maps[i].off + addr - maps[i].start, prot | PROT_TOLD, MAP_PRIVATE, st.st_dev, st.st_ino, path);
			return;
		}
	tell(addr, addr + len, 0, prot | PROT_TOLD, MAP_PRIVATE, 0, 0, "//anon");
}

// image_at says which image shows at vaddr and where in its file; code that
// belongs to no file is image 0 with its address as offset.
uint32_t image_at(uint64_t vaddr, uint64_t *off, int *plt)
{
	*plt = 0;
	for (int i = 0; i < nmaps; i++) {
		if (vaddr < maps[i].start || vaddr >= maps[i].end)
			continue;
		const Image *im = &images[maps[i].image];
		*off = vaddr - maps[i].start + maps[i].off;
		for (int k = 0; k < im->nplt; k++)
			if (*off >= im->plt[k].start && *off < im->plt[k].end)
				*plt = BLK_PLT | (im->plt[k].plt0 && *off < im->plt[k].start + 16 ? BLK_PLT0 : 0);
		return maps[i].image;
	}
	*off = vaddr;
	return 0;
}

uint64_t image_hash(uint32_t image) { return images[image].hash; }
int image_is_go(void)
{
	for (uint32_t i = 0; i < nimages; i++)
		if (images[i].go)
			return 1;
	return 0;
}

void image_write(void)
{
	out_u8('I');
	out_u32(nimages);
	for (uint32_t i = 0; i < nimages; i++)
		out_str(images[i].path);
}
