// SPDX-License-Identifier: BSD-2-Clause
/* fexit; see fexit.h. */
#include <bpf/btf.h>
#include "fexit.h"

bool fexit_may_sleep(const struct btf *btf)
{
	/* An image of a trampoline, which is kept while anybody is in it, is a thing of its own since then. */
	return btf && btf__find_by_name_kind(btf, "bpf_tramp_image", BTF_KIND_STRUCT) >= 0;
}
