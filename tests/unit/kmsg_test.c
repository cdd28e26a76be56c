// SPDX-License-Identifier: BSD-2-Clause
/* The kernel's log: which lines are whose, what they are a sign of, and how they get into traces. */
#include <errno.h>
#include "kmsg.h"
#include "pipeline.h"
#include "trace.h"
#include "trace_lines.h"

static bool parse(const char *text, struct kmsg_line *line, uint64_t *seq)
{
	return kmsg__parse(text, strlen(text), line, seq);
}

static void records(void **state)
{
	static const char *const bad[] = {"",
					  ";",
					  "3",
					  "3,",
					  "3,1",
					  "3,1,",
					  "3,1,2",
					  "3,1,2;",
					  "x,1,2,-;",
					  ",1,2;",
					  "3,,2,-;",
					  "3,1,,-;a",
					  "-3,1,2,-;a",
					  "3,1,2",
					  "3,1,-2,-;a",
					  "99999999999999999999999,1,2,-;a",
					  "3,99999999999999999999,2,-;a"};
	struct kmsg_line line;
	char text[512];
	uint64_t seq;
	size_t i;

	(void)state;
	assert_true(parse("3,17,5000000,-;NVRM: Xid 79\n SUBSYSTEM=pci\n DEVICE=+pci:0000\n", &line,
			  &seq));
	assert_int_equal(seq, 17);
	assert_int_equal(line.level, 3);
	assert_int_equal(line.ns, 5000000000);
	assert_int_equal(line.len, strlen("NVRM: Xid 79"));
	assert_memory_equal(line.text, "NVRM: Xid 79", line.len);
	assert_true(parse("6,18,1,c,caller=T1;x", &line, &seq));
	assert_int_equal(line.len, 1);
	/* of others: whatever level, it is not the kernel's word, but counts */
	assert_false(parse("11,19,1,-;NVRM: Xid 79", &line, &seq));
	assert_int_equal(seq, 19);
	assert_false(parse("8,20,1,-;NVRM: Xid 79", &line, &seq));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(parse(bad[i], &line, &seq));
	assert_true(parse("3,1,18446744073709551615,-;a", &line, &seq));
	assert_true(line.ns == UINT64_MAX);
	/* as long as it likes */
	i = (size_t)snprintf(text, sizeof(text), "3,1,2,-;");
	memset(text + i, 'y', sizeof(text) - i);
	assert_true(kmsg__parse(text, sizeof(text), &line, &seq));
	assert_int_equal(line.len, KMSG_TEXT_MAX);
}

static const char *sign_of(uint32_t level, bool device, const char *text)
{
	struct kmsg_line line = {.level = level, .device = device, .len = strlen(text)};

	assert_true(line.len <= sizeof(line.text));
	memcpy(line.text, text, line.len);
	return kmsg__sign_name(kmsg__sign(&line));
}

static const char *sign(uint32_t level, const char *text)
{
	return sign_of(level, false, text);
}

static const char *device(uint32_t level, const char *text)
{
	return sign_of(level, true, text);
}

/* Lines as kernels and drivers have them. */
static void signs(void **state)
{
	(void)state;
	assert_string_equal(sign(4, "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', "
				    "name=<unknown>, GPU has fallen off the bus."),
			    "gpu");
	assert_string_equal(sign(3, "nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 12028, Non-fatal, "
				    "Link 32 egress non-posted PRIV error"),
			    "nvlink");
	assert_string_equal(
		device(3, "pcieport 0000:00:1c.5: AER: Correctable error message received"),
		"pcie");
	assert_string_equal(device(6, "pcieport 0000:15:01.0: pciehp: Slot(3): Link Down"), "pcie");
	assert_string_equal(device(6, "pcieport 0000:15:01.0: DPC: containment event, "
				      "status:0x1f01 source:0x0000"),
			    "pcie");
	assert_string_equal(device(4, "pcieport 0000:15:01.0: DPC: ERR_FATAL detected"), "pcie");
	/* of each port when the node boots */
	assert_null(device(6, "pcieport 0000:15:01.0: PME: Signaling with IRQ 44"));
	assert_null(device(6, "pcieport 0000:15:01.0: AER: enabled with IRQ 44"));
	assert_null(device(6, "pcieport 0000:15:01.0: pciehp: Slot #0 AttnBtn- PwrCtrl- MRL- "
			      "AttnInd- PwrInd- HotPlug+ Surprise+ Interlock- NoCompl+"));
	assert_null(device(6, "pcieport 0000:15:01.0: DPC: enabled with IRQ 44"));
	assert_null(device(6, "pcieport 0000:15:01.0: DPC: error containment capabilities: Int Msg "
			      "#0, RPExt+ PoisonedTLP+ SwTrigger+ RP PIO Log 4, DL_ActiveErr+"));
	assert_string_equal(device(3, "nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, "
				      "type=Physical Layer"),
			    "pcie");
	assert_string_equal(sign(0, "mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 5"),
			    "hardware");
	assert_string_equal(sign(3, "{1}[Hardware Error]: Hardware error from APEI Generic "
				    "Hardware Error Source: 4"),
			    "hardware");
	/* of AMD's, decoded */
	assert_string_equal(sign(0, "[Hardware Error]: Uncorrected, software containable error."),
			    "hardware");
	assert_string_equal(sign(0, "[Hardware Error]: CPU:66 (19:11:1) MC18_STATUS[Over|CE|MiscV|"
				    "AddrV|-|-|SyndV|CECC|-|-|-]: 0xdc2040000000011b"),
			    "hardware");
	assert_null(sign(6, "[Hardware Error]: Error Status: none"));
	assert_string_equal(sign(6, "mce: [Hardware Error]: Machine check events logged"),
			    "hardware");
	assert_string_equal(sign(3, "Memory failure: 0x12345: Sending SIGBUS to python3:1473 due "
				    "to hardware memory corruption"),
			    "hardware");
	assert_string_equal(sign(3, "Memory failure: 0x12345: recovery action for dirty LRU page: "
				    "Recovered"),
			    "hardware");
	assert_string_equal(sign(6, "CPU3: Core temperature above threshold, cpu clock throttled "
				    "(total events = 1)"),
			    "thermal");
	/* since 5.5 */
	assert_string_equal(sign(4, "CPU7: Core temperature is above threshold, cpu clock is "
				    "throttled (total events = 219)"),
			    "thermal");
	assert_string_equal(sign(4, "mce: CPU7: Package temperature is above threshold, cpu clock "
				    "is throttled (total events = 219)"),
			    "thermal");
	assert_string_equal(
		sign(3, "Memory cgroup out of memory: Killed process 1234 (python3) total-vm:1kB"),
		"memory");
	assert_string_equal(sign(3, "Out of memory: Killed process 1234 (python3) total-vm:1kB"),
			    "memory");
	assert_string_equal(sign(3, "Out of memory (oom_kill_allocating_task): Killed process 1234 "
				    "(python3) total-vm:1kB"),
			    "memory");
	assert_string_equal(device(6, "mlx5_core 0000:17:00.0 ens1f0np0: Link down"), "link");
	assert_string_equal(device(3, "mlx5_core 0000:17:00.0: wait_func:1195:(pid 7): timeout. "
				      "Will cause a leak of a command resource"),
			    "nic");
	assert_null(device(6, "mlx5_core 0000:17:00.0: firmware version: 28.39.1002"));
	assert_string_equal(sign(3, "INFO: task python3:1234 blocked for more than 120 seconds."),
			    "hung-task");
	assert_string_equal(sign(3, "INFO: task python3:1234 blocked in I/O wait for more than 120 "
				    "seconds."),
			    "hung-task");
	assert_string_equal(
		sign(0, "watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [python3:1234]"),
		"lockup");
	assert_string_equal(sign(3, "rcu: INFO: rcu_preempt self-detected stall on CPU"), "lockup");
	assert_string_equal(sign(3, "I/O error, dev nvme0n1, sector 0 op 0x0:(READ)"), "storage");
	assert_string_equal(sign(3, "blk_update_request: I/O error, dev sda, sector 0"), "storage");
	assert_string_equal(sign(3, "critical medium error, dev nvme0n1, sector 8 op 0x0:(READ)"),
			    "storage");
	assert_string_equal(sign(3, "timeout error, dev sdb, sector 8 op 0x0:(READ)"), "storage");
	assert_string_equal(sign(3, "blk_update_request: critical target error, dev sda, sector 0"),
			    "storage");
	assert_string_equal(sign(3, "device offline error, dev sdb, sector 8 op 0x1:(WRITE)"),
			    "storage");
	assert_string_equal(sign(3, "critical target error, dev sda, sector 8 op 0x1:(WRITE)"),
			    "storage");
	/* of what is asked for to learn whether it can */
	assert_null(sign(3, "critical target error, dev sda, sector 13616 op 0x3:(DISCARD) flags "
			    "0x800 phys_seg 1 prio class 0"));
	assert_null(sign(3, "blk_update_request: critical target error, dev sda, sector 8 op "
			    "0x3:(DISCARD) flags 0x800"));
	assert_null(sign(3, "I/O error, dev sda, sector 8 op 0x3:(DISCARD) flags 0x800"));
	assert_null(sign(3, "I/O error, dev sda, sector 8 op 0x5:(SECURE_ERASE) flags 0x800"));
	assert_null(sign(3, "I/O error, dev sda, sector 8 op 0x9:(WRITE_ZEROES) flags 0x800"));
	assert_null(sign(3, "operation not supported error, dev loop0, sector 8 op 0x3:(DISCARD)"));
	assert_null(sign(3, "blk_update_request: operation not supported error, dev loop0"));
	assert_string_equal(
		device(4,
		       "nvme nvme0: I/O tag 12 (1) opcode 0x2 (I/O Cmd) QID 3 timeout, aborting"),
		"storage");
	assert_string_equal(sign(5, "nfs: server filer7 not responding, still trying"),
			    "filesystem");
	assert_null(sign(3, ""));
	assert_null(kmsg__sign_name(KMSG_SIGNS));
}

/* Anybody may call a process as they like, and have it die. */
static void forged(void **state)
{
	(void)state;
	assert_null(sign(6, "NVRM: Xid[4242]: segfault at 7f12 ip 00007f00 sp 00007ffd error 4"));
	assert_null(
		sign(6, "NVRM: Xid (PCI:[4242]: segfault at 7f12 ip 00007f00 sp 00007ffd error 4"));
	assert_null(sign(4, "NVRM: Xid (PCI: (4242) used greatest stack depth: 1 bytes left"));
	assert_null(sign(4, "a AER: [7] trap int3 ip:7f sp:7f error:0"));
	assert_null(sign(4, "Memory failure: page allocation failure: order:0"));
	assert_null(sign(6, "link down: page allocation failure: order:0"));
	assert_null(sign(6, "eth0: Link down"));
	assert_string_equal(sign(3, "Memory cgroup out of memory: Killed process 1 (NVRM: Xid "
				    "(PCI:) total-vm:1kB"),
			    "memory");
}

/* Of a device is what has one in the lines behind the text; where the kernel's own lie is not told. */
static void devices(void **state)
{
	struct kmsg_line line;
	uint64_t seq;

	(void)state;
	assert_true(parse("6,1,2,-;eth0: Link down\n SUBSYSTEM=net\n DEVICE=n3\n", &line, &seq));
	assert_int_equal(line.sign, KMSG_LINK);
	assert_true(parse("6,1,2,-;eth0: Link down DEVICE=n3\n SUBSYSTEM=net\n", &line, &seq));
	assert_int_equal(line.sign, KMSG_NO_SIGN);
	assert_true(parse("3,1,2,-;LustreError: OST-osc-ffff88017a2b3c4d: ffff and ffff88017a2 of "
			  "ffff8801 ffff88017a2b",
			  &line, &seq));
	assert_int_equal(line.sign, KMSG_FILESYSTEM);
	assert_memory_equal(line.text,
			    "LustreError: OST-osc-xxxxxxxxxxxxxxxx: ffff and ffff88017a2 of "
			    "ffff8801 xxxxxxxxxxxx",
			    line.len);
}

/* Somebody has the kernel kill processes all the time: of that a part is told, of the rest all. */
static void shares(void **state)
{
	struct kmsg k = {.fd = -1};
	uint64_t now = 1000 * (uint64_t)NSEC_PER_SEC;
	int i, n = 0;

	(void)state;
	for (i = 0; i < 100; i++)
		n += kmsg__has_share(&k, KMSG_MEMORY, now);
	assert_int_equal(n, KMSG_BURST);
	assert_int_equal(k.lost, 100 - KMSG_BURST);
	assert_true(kmsg__has_share(&k, KMSG_GPU, now));
	for (n = 0; i < 200; i++)
		n += kmsg__has_share(&k, KMSG_MEMORY, now += NSEC_PER_SEC / 10);
	assert_in_range(n, 10, 11);
}

/* ---- Into traces ------------------------------------------------------------------------------------- */

static int tell(uint64_t ns, bool before, uint32_t sign, const char *text, uint32_t len)
{
	struct {
		struct input_kmsg in;
		char text[KMSG_TEXT_MAX + 8];
	} k = {.in = {.ns = ns, .level = 3, .before = before, .len = len, .sign = sign}};
	size_t n = strlen(text);

	memcpy(k.text, text, n);
	return pipeline_kmsg(s, &k, sizeof(k.in) + n);
}

static void told(uint64_t ns, bool before, uint32_t sign, const char *text)
{
	assert_int_equal(tell(ns, before, sign, text, (uint32_t)strlen(text)), 0);
}

static int times(const char *text)
{
	const char *at = lines;
	int n = 0;

	for (; (at = strstr(at, text)); at++)
		n++;
	return n;
}

/* A line is in each trace once: as it comes, or behind the header, if it is not too old by then. */
static void traces(void **state)
{
	const uint64_t minute = 60 * NSEC_PER_SEC;
	struct proc *p;

	(void)state;
	wanted[0] = "\"kmsg\",";
	s = session_new();
	told(1000, true, KMSG_GPU, "NVRM: Xid 1");
	p = process(0, 11 * minute);
	p->begin_ns = 10 * minute;
	trace__clock(p, 11 * minute); /* and the header before it */
	told(11 * minute, false, KMSG_GPU, "NVRM: Xid \"2\"\\x0a\xff");
	p = process(1, 12 * minute);
	p->begin_ns = 12 * minute;
	told(12 * minute, false, 1000, "no sign any more"); /* of a newer recorder */
	session_free(s);
	chunks_files(take_file);
	assert_int_equal(times("{\"recordType\":\"kmsg\",\"ts\":1.000,\"before\":true,\"level\":3,"
			       "\"sign\":\"gpu\",\"text\":\"NVRM: Xid 1\"}\n"),
			 1);
	assert_int_equal(times("\"ts\":660000000.000,\"level\":3,\"sign\":\"gpu\",\"text\":\"NVRM: "
			       "Xid \\\"2\\\"\\\\x0a\xef\xbf\xbd\"}\n"),
			 2);
	assert_int_equal(times("\"level\":3,\"text\":\"no sign any more\"}\n"), 2);
	assert_int_equal(times("\"kmsg\""), 5);
}

/* A capture is hostile, too. */
static void nonsense(void **state)
{
	char big[KMSG_TEXT_MAX + 8];

	(void)state;
	s = session_new();
	assert_int_equal(tell(1, false, 0, "abc", 4), -EINVAL);
	assert_int_equal(tell(1, false, 0, "abc", 2), -EINVAL);
	assert_int_equal(tell(1, false, 0, "", 0xffffffff), -EINVAL);
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	big[KMSG_TEXT_MAX + 1] = 0;
	assert_int_equal(tell(1, false, 0, big, KMSG_TEXT_MAX + 1), -EINVAL);
	assert_null(s->kmsg);
	session_free(s);
	chunks_files(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(records), cmocka_unit_test(signs),
					   cmocka_unit_test(forged),  cmocka_unit_test(devices),
					   cmocka_unit_test(shares),  cmocka_unit_test(traces),
					   cmocka_unit_test(nonsense)};
	int failed;

	if (!mkdtemp(chunks_dir))
		return 1;
	failed = cmocka_run_group_tests_name("kmsg", tests, NULL, NULL);
	rmdir(chunks_dir);
	return failed;
}
