// The part of QEMU's TCG plugin interface, version 1, that the virtual PMU
// uses. Debian's qemu-user ships no header; names, order of parameters and
// values are those of QEMU 7.2 (docs/devel/tcg-plugins.rst describes them).
#ifndef QEMU_API_H
#define QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VISIBLE __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;   // a translated block, valid during its translation
struct qemu_plugin_insn; // one instruction of it, likewise

typedef struct {
	const char *target_name;
	struct { int min, cur; } version;
	bool system_emulation;
	struct { int smp_vcpus, max_vcpus; } system;
} qemu_info;

enum cb_flags { CB_NO_REGS = 0 };

void qemu_plugin_register_vcpu_init_cb(plugin_id, void (*)(plugin_id, unsigned vcpu));
void qemu_plugin_register_vcpu_exit_cb(plugin_id, void (*)(plugin_id, unsigned vcpu));
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned vcpu, void *user),
					  enum cb_flags, void *user);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id, void (*)(plugin_id, unsigned vcpu, int64_t num, uint64_t a1,
							      uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,
							      uint64_t a6, uint64_t a7, uint64_t a8));
void qemu_plugin_register_vcpu_syscall_ret_cb(plugin_id, void (*)(plugin_id, unsigned vcpu, int64_t num, int64_t ret));
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *user), void *user);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);

#endif
