// SPDX-License-Identifier: BSD-2-Clause
/* A seed of fuzz_elf, for any architecture: symbols, and notes as USDT probes leave them. */

/* clang-format off */
#define NOTE(name)								\
	".pushsection .note.stapsdt, \"\", %note\n"				\
	".balign 4\n"								\
	".4byte 2f - 1f, 4f - 3f, 3\n"						\
	"1: .asciz \"stapsdt\"\n"						\
	"2: .balign 4\n"							\
	"3: .8byte 0x1000, 0, 0x2000\n"						\
	".asciz \"ncclscope\"\n"						\
	".asciz \"" name "\"\n"							\
	".asciz \"8@a 8@b\"\n"							\
	"4: .balign 4\n"							\
	".popsection\n"
/* clang-format on */

__asm__(NOTE("flush") NOTE("start") NOTE("start"));

unsigned char ncclscope_control[104] = {1};
extern const int ncclProfiler_v7;
const int ncclProfiler_v7 = 7;
