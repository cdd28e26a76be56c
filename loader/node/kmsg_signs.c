// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which lines of the kernel's log tell why a job may be slow or hang, by what drivers and the kernel have said for years. Names of processes
 * are in many lines, and whoever likes may call theirs "NVRM: Xid": so a line counts by its beginning, or if a driver has said
 * it of a device, and not if it begins with a process.
 */
#include <ctype.h>
#include <string.h>
#include "kmsg.h"

#define WARNING	 4 /* KERN_WARNING */
#define ANY	 7
#define COMM_LEN 15 /* of a process' name, at most */

/* The kernel's names of errors of disks, of those that are trouble; before 5.16 with what says so in front. */
#define BLOCK_ERROR(name)                                                                          \
	{KMSG_STORAGE, name " error, dev ", "", ANY},                                              \
	{                                                                                          \
		KMSG_STORAGE, "blk_update_request: " name " error, dev ", "", ANY                  \
	}

static const struct {
	enum kmsg_sign sign;
	const char *begins; /* NULL: a device's, whatever it begins with */
	const char *has;
	uint32_t level; /* this, or worse: the same words may be usual ones */
} signs[] = {
	{KMSG_GPU, "NVRM: Xid", "", ANY}, /* nvidia: the GPU has failed in some way, by number */
	{KMSG_GPU, "NVRM: ", "fallen off the bus", ANY},
	{KMSG_NVLINK, "nvidia-nvswitch", "SXid", ANY},
	{KMSG_PCIE, NULL, "AER: ", ANY},
	{KMSG_PCIE, NULL, "PCIe Bus Error", ANY},
	{KMSG_PCIE, "pcieport ", "", WARNING},
	{KMSG_PCIE, "pcieport ", "pciehp: Slot(", ANY}, /* what is in it leaves, or comes back */
	{KMSG_PCIE, "pcieport ", "DPC: containment event", ANY},
	{KMSG_THERMAL, "CPU", "cpu clock is throttled", ANY},
	{KMSG_THERMAL, "CPU", "cpu clock throttled", ANY}, /* before 5.5 */
	{KMSG_THERMAL, "mce: CPU", "cpu clock is throttled", ANY},
	{KMSG_THERMAL, "mce: CPU", "cpu clock throttled", ANY},
	{KMSG_HARDWARE, "mce: ", "", WARNING},
	{KMSG_HARDWARE, "mce: [Hardware Error]", "", ANY},
	{KMSG_HARDWARE, "[Hardware Error]: ", "", WARNING}, /* AMD's, decoded */
	{KMSG_HARDWARE, "{", "[Hardware Error]", WARNING},  /* by the firmware */
	{KMSG_HARDWARE, "EDAC ", "", WARNING},
	{KMSG_HARDWARE, "Memory failure: 0x", "", WARNING}, /* of a page, and whose it was */
	{KMSG_MEMORY, "Out of memory: Killed process ", "", ANY},
	{KMSG_MEMORY, "Out of memory (oom_kill_allocating_task): Killed process ", "", ANY},
	{KMSG_MEMORY, "Memory cgroup out of memory: Killed process ", "", ANY},
	{KMSG_LINK, "NETDEV WATCHDOG: ", "", ANY},
	{KMSG_LINK, NULL, "NETDEV WATCHDOG: ", ANY},
	{KMSG_LINK, NULL, "Link down", ANY},
	{KMSG_LINK, NULL, "Link up", ANY},
	{KMSG_LINK, NULL, "link down", ANY},
	{KMSG_LINK, NULL, "link up", ANY},
	{KMSG_LINK, NULL, "Link is Down", ANY},
	{KMSG_LINK, NULL, "Link is Up", ANY},
	{KMSG_LINK, NULL, "Port module event", ANY}, /* mlx5: a cable, or what is in the port */
	{KMSG_NIC, "mlx5_core ", "", WARNING}, /* its health, commands that time out, resets */
	{KMSG_HUNG_TASK, "INFO: task ", " for more than ", ANY}, /* "blocked in I/O wait", too */
	{KMSG_LOCKUP, "watchdog: ", "lockup", ANY},
	{KMSG_LOCKUP, "watchdog: ", "LOCKUP", ANY},
	{KMSG_LOCKUP, "NMI watchdog: ", "", WARNING},
	{KMSG_LOCKUP, "rcu: INFO: ", "stall", ANY},
	BLOCK_ERROR("I/O"),
	BLOCK_ERROR("timeout"),
	BLOCK_ERROR("critical space allocation"),
	BLOCK_ERROR("recoverable transport"),
	BLOCK_ERROR("critical target"),
	BLOCK_ERROR("critical nexus"),
	BLOCK_ERROR("reservation conflict"), /* the same, later on */
	BLOCK_ERROR("critical medium"),
	BLOCK_ERROR("device offline"),
	BLOCK_ERROR("protection"),
	{KMSG_STORAGE, "nvme ", "timeout", WARNING},
	{KMSG_FILESYSTEM, "nfs: server ", "", ANY}, /* "not responding, still trying", "OK" */
	{KMSG_FILESYSTEM, "LustreError: ", "", ANY},
	{KMSG_FILESYSTEM, "EXT4-fs error ", "", ANY},
	{KMSG_FILESYSTEM, "XFS (", "", WARNING},
};

/* Lines of a sign that are of no trouble: what each port says when the node boots, and what a disk that cannot do it is asked all the same. */
static const struct {
	enum kmsg_sign sign;
	const char *has;
} usual[] = {
	{KMSG_PCIE, "AER: enabled with IRQ"},
	{KMSG_STORAGE, ":(DISCARD)"},
	{KMSG_STORAGE, ":(SECURE_ERASE"},
	{KMSG_STORAGE, ":(WRITE_ZEROES)"},
};

/* "python[1234]: segfault at ...", "python (1234): ..." */
static bool begins_with_process(const char *text, size_t len)
{
	size_t i, k;

	for (i = 1; i < len && i <= COMM_LEN + 1; i++) {
		if (text[i] != '[' && text[i] != '(')
			continue;
		for (k = i + 1; k < len && isdigit((unsigned char)text[k]); k++)
			;
		if (k > i + 1 && k < len && text[k] == (text[i] == '[' ? ']' : ')'))
			return true;
	}
	return false;
}

static bool has(const struct kmsg_line *line, const char *text)
{
	return memmem(line->text, line->len, text, strlen(text));
}

static bool is_usual(const struct kmsg_line *line, enum kmsg_sign sign)
{
	size_t i;

	for (i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (usual[i].sign == sign && has(line, usual[i].has))
			return true;
	return false;
}

enum kmsg_sign kmsg__sign(const struct kmsg_line *line)
{
	size_t i, n;

	if (begins_with_process(line->text, line->len))
		return KMSG_NO_SIGN;
	for (i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		n = signs[i].begins ? strlen(signs[i].begins) : 0;
		if (line->level > signs[i].level || (!signs[i].begins && !line->device))
			continue;
		if (n <= line->len && !memcmp(line->text, signs[i].begins ?: "", n) &&
		    has(line, signs[i].has))
			return is_usual(line, signs[i].sign) ? KMSG_NO_SIGN : signs[i].sign;
	}
	return KMSG_NO_SIGN;
}

const char *kmsg__sign_name(uint32_t sign)
{
	static const char *const names[] = {
		[KMSG_GPU] = "gpu",
		[KMSG_NVLINK] = "nvlink",
		[KMSG_PCIE] = "pcie",
		[KMSG_HARDWARE] = "hardware",
		[KMSG_THERMAL] = "thermal",
		[KMSG_MEMORY] = "memory",
		[KMSG_LINK] = "link",
		[KMSG_NIC] = "nic",
		[KMSG_HUNG_TASK] = "hung-task",
		[KMSG_LOCKUP] = "lockup",
		[KMSG_STORAGE] = "storage",
		[KMSG_FILESYSTEM] = "filesystem",
	};

	return sign < sizeof(names) / sizeof(names[0]) ? names[sign] : NULL;
}
