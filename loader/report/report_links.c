// SPDX-License-Identifier: BSD-2-Clause
/* What went over the connections of a part, one to each peer and direction: put together, and bounded. */
#include "report_priv.h"

#define SUM_MAX (INT64_C(1) << 60) /* ns, whatever lines say: what is added to it is far less */

static int64_t sum(int64_t a, int64_t b)
{
	return least(a + b, SUM_MAX);
}

void report_receiving_add(struct report_receiving *to, const struct report_receiving *more)
{
	to->ns = sum(to->ns, more->ns);
	to->wait = sum(to->wait, more->wait);
}

int64_t report_link_badness(const struct report_link *l)
{
	return l->rwnd + l->sndbuf + l->loss_wait + l->maybe_wait + l->busy +
	       (l->lost + l->drops) * INT64_C(1000000);
}

void report_link_merge(struct report_link *to, const struct report_link *l)
{
	int64_t worst = report_link_badness(l);

	if (!to->n || worst > to->worst) {
		to->worst = worst;
		to->flow = l->flow;
	}
	to->n++;
	to->dur = sum(to->dur, l->dur);
	to->no_data = sum(to->no_data, l->no_data);
	to->no_room = sum(to->no_room, l->no_room);
	to->tcp |= l->tcp;
	to->recv = sum(to->recv, l->recv);
	to->stall = most(to->stall, l->stall);
	to->gpu = sum(to->gpu, l->gpu);
	to->gpu_n += l->gpu_n;
	to->gpu_from += l->gpu_from;
	to->gpu_to += l->gpu_to;
	to->loss_wait = most(to->loss_wait, l->loss_wait);
	to->maybe_wait = most(to->maybe_wait, l->maybe_wait);
	to->room_wait = most(to->room_wait, l->room_wait);
	to->data_wait = most(to->data_wait, l->data_wait);
	to->rwnd = most(to->rwnd, l->rwnd);
	to->sndbuf = most(to->sndbuf, l->sndbuf);
	to->busy = most(to->busy, l->busy);
	if (l->rtt > to->rtt) {
		to->rtt = l->rtt;
		to->rtt_min = l->rtt_min;
	}
	to->retrans += l->retrans;
	to->lost += l->lost;
	to->dsack += l->dsack;
	to->ooo += l->ooo;
	to->peer_retrans += l->peer_retrans;
	to->peer_lost += l->peer_lost;
	to->peer_dsack += l->peer_dsack;
	if (!to->drops)
		to->reason = l->reason;
	to->drops += l->drops;
}

bool report_links_full(const struct report_link *link, uint32_t n, uint32_t max, bool send)
{
	bool other = false;
	uint32_t i;

	for (i = 0; i < n; i++)
		other |= link[i].send != send;
	return n + !other >= max;
}

struct report_link *report_link_to(struct report_link *link, uint32_t *n, uint32_t max,
				   int32_t peer, bool send)
{
	struct report_link *l = report_link_of(link, *n, peer, send);
	uint32_t i;

	if (l)
		return l;
	if (report_links_full(link, *n, max, send)) {
		for (i = *n - 1; i && link[i].send != send; i--)
			;
		link[i].peer = -1;
		return &link[i];
	}
	link[*n].peer = peer;
	link[*n].send = send;
	return &link[(*n)++];
}
