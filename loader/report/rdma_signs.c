// SPDX-License-Identifier: BSD-2-Clause
/*
 * Drivers call the same things by names of their own: these are of mlx5, mlx4, bnxt_re, irdma, efa, mana, ionic, rxe, and of the folder
 * that all have (IBTA's PortCounters).
 */
#include <string.h>
#include "rdma_signs.h"

struct counter_name {
	enum rdma_sign sign;
	size_t len;
	const char *name;
};

#define NAMED(name) sizeof(name) - 1, name

static const struct counter_name counter_names[] = {
	{SIGN_TIMEOUT, NAMED("local_ack_timeout_err")}, /* mlx5 */
	{SIGN_TIMEOUT, NAMED("roce_adp_retrans_to")},
	{SIGN_TIMEOUT, NAMED("req_transport_retries_exceeded")},
	{SIGN_TIMEOUT, NAMED("sq_num_to")},	 /* mlx4 */
	{SIGN_TIMEOUT, NAMED("to_retransmits")}, /* bnxt_re */
	{SIGN_TIMEOUT, NAMED("max_retry_exceeded")},
	{SIGN_TIMEOUT, NAMED("retrans_timeout_events")}, /* efa */
	{SIGN_TIMEOUT, NAMED("unresponsive_remote_events")},
	{SIGN_TIMEOUT, NAMED("requester_timeout")},   /* mana */
	{SIGN_TIMEOUT, NAMED("RTO")},		      /* irdma, GEN3 */
	{SIGN_TIMEOUT, NAMED("retry_exceeded_err")},  /* rxe */
	{SIGN_TIMEOUT, NAMED("tx_rdma_ack_timeout")}, /* ionic */
	{SIGN_TIMEOUT, NAMED("req_tx_retry_excd_err")},

	{SIGN_LINK, NAMED("symbol_error")}, /* PortCounters */
	{SIGN_LINK, NAMED("link_error_recovery")},
	{SIGN_LINK, NAMED("link_downed")},
	{SIGN_LINK, NAMED("port_rcv_errors")},
	{SIGN_LINK, NAMED("port_rcv_remote_physical_errors")},
	{SIGN_LINK, NAMED("local_link_integrity_errors")},
	{SIGN_LINK, NAMED("excessive_buffer_overrun_errors")},
	{SIGN_LINK, NAMED("port_xmit_discards")},
	{SIGN_LINK, NAMED("rx_icrc_encapsulated")}, /* mlx5 */
	{SIGN_LINK, NAMED("CRC errors")},	    /* irdma */

	{SIGN_RESENT, NAMED("packet_seq_err")}, /* mlx5 */
	{SIGN_RESENT, NAMED("implied_nak_seq_err")},
	{SIGN_RESENT, NAMED("rnr_nak_retry_err")},
	{SIGN_RESENT, NAMED("req_rnr_retries_exceeded")},
	{SIGN_RESENT, NAMED("roce_adp_retrans")},
	{SIGN_RESENT, NAMED("roce_slow_restart")},
	{SIGN_RESENT, NAMED("sq_num_oos")}, /* mlx4 */
	{SIGN_RESENT, NAMED("sq_num_rnr")},
	{SIGN_RESENT, NAMED("seq_err_naks_rcvd")}, /* bnxt_re */
	{SIGN_RESENT, NAMED("rnr_naks_rcvd")},
	{SIGN_RESENT, NAMED("RetransSegs")}, /* irdma */
	{SIGN_RESENT, NAMED("tcpRetransSegs")},
	{SIGN_RESENT, NAMED("Nak Sequence Error")},
	{SIGN_RESENT, NAMED("Nak Sequence Error Implied")},
	{SIGN_RESENT, NAMED("RNR received")},
	{SIGN_RESENT, NAMED("retrans_pkts")},	   /* efa */
	{SIGN_RESENT, NAMED("requester_oos_nak")}, /* mana */
	{SIGN_RESENT, NAMED("requester_rnr_nak")},
	{SIGN_RESENT, NAMED("requester_implicit_nak")},
	{SIGN_RESENT, NAMED("rcvd_seq_err")}, /* rxe */
	{SIGN_RESENT, NAMED("rcvd_rnr_err")},
	{SIGN_RESENT, NAMED("completer_retry_err")},
	{SIGN_RESENT, NAMED("req_rx_pkt_seq_err")}, /* ionic */

	{SIGN_MISSED, NAMED("out_of_sequence")}, /* mlx5 */
	{SIGN_MISSED, NAMED("duplicate_request")},
	{SIGN_MISSED, NAMED("rq_num_dup")}, /* mlx4 */
	{SIGN_MISSED, NAMED("rq_num_oos")},
	{SIGN_MISSED, NAMED("res_oos_drop_count")}, /* bnxt_re */
	{SIGN_MISSED, NAMED("oos_drop_count")},
	{SIGN_MISSED, NAMED("rx_roce_discards")},
	{SIGN_MISSED, NAMED("dup_req")},
	{SIGN_MISSED, NAMED("Rcvd Out of order packets")}, /* irdma */
	{SIGN_MISSED, NAMED("rx_drops")},		   /* efa */
	{SIGN_MISSED, NAMED("impaired_remote_conn_events")},
	{SIGN_MISSED, NAMED("responder_oos")}, /* mana */
	{SIGN_MISSED, NAMED("responder_dup_request")},
	{SIGN_MISSED, NAMED("out_of_seq_request")}, /* rxe */
	{SIGN_MISSED, NAMED("resp_rx_outouf_seq")}, /* ionic */

	{SIGN_MARKED, NAMED("np_ecn_marked_roce_packets")}, /* mlx5 */
	{SIGN_MARKED, NAMED("np_cnp_sent")},
	{SIGN_MARKED, NAMED("rp_cnp_handled")},
	{SIGN_MARKED, NAMED("rx_ecn_marked_pkts")}, /* bnxt_re */
	{SIGN_MARKED, NAMED("rx_cnp_pkts")},
	{SIGN_MARKED, NAMED("tx_cnp_pkts")},
	{SIGN_MARKED, NAMED("cnpHandled")}, /* irdma */
	{SIGN_MARKED, NAMED("cnpSent")},
	{SIGN_MARKED, NAMED("RxECNMrkd")},
	{SIGN_MARKED, NAMED("rx_rdma_cnp_pkts")}, /* ionic */
	{SIGN_MARKED, NAMED("tx_rdma_cnp_pkts")},

	{SIGN_HELD, NAMED("port_xmit_wait")}, /* PortCounters */
};

enum rdma_sign rdma_sign_of(const char *counter, size_t len)
{
	const struct counter_name *c, *end = counter_names + sizeof(counter_names) / sizeof(*c);

	if (len > 3 && !memcmp(counter, "hw_", 3)) { /* another one has that name, too */
		counter += 3;
		len -= 3;
	}
	for (c = counter_names; c < end; c++)
		if (c->len == len && !memcmp(c->name, counter, len))
			return c->sign;
	return NO_SIGN;
}
