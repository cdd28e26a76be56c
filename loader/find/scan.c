// SPDX-License-Identifier: BSD-2-Clause
/* Who has the plugin loaded, from /proc; see scan.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach.h"
#include "clock.h"
#include "log.h"
#include "notify.h"
#include "options.h"
#include "patience.h"
#include "pid_stat.h"
#include "plugin_path.h"
#include "recorder.h"
#include "target.h"

#define PASS_NS	      (1000 * 1000000ull) /* passes begin so far apart, at least */
#define PASS_SHARE    20		  /* and take at most one part in so many of the time */
#define SLICE_NS      (2 * 1000000ull)	  /* of a pass, at a time */
#define LOOK_NS	      (900 * 1000000ull) /* between looks at one process: a pass comes each second */
#define LOOK_SHARE    100 /* the same, for its mappings: the kernel holds a lock meanwhile */
#define UNUSED_PASSES 2	  /* a probe holds on to the container's file system: not for long */
#define TOLD_MAX      16  /* warnings of processes and files that are not recorded, */
#define TOLD_NS	      (600 * NSEC_PER_SEC) /* in so long */

/* Not what it is, but that it could not be asked, or attached to: there was no answer, or nobody to ask it, or no room. */
static bool is_passing(int err)
{
	return err == -ETIMEDOUT || err == -EBUSY || err == -EPIPE || err == -ENOMEM ||
	       err == -EMFILE || err == -ENFILE || err == -ENOSPC;
}

/* ---- Files ------------------------------------------------------------------------------------- */

/* What leads to the very file of a descriptor. */
struct fd_path {
	char s[32];
};

static struct fd_path path_of(int fd)
{
	struct fd_path path;

	snprintf(path.s, sizeof(path.s), "/proc/self/fd/%d", fd);
	return path;
}

static int read_build_id(const struct scan_file *f, char *id, size_t len)
{
	int fd = elf__open(path_of(f->fd).s), err;

	if (fd < 0)
		return fd;
	err = elf__build_id(fd, id, len);
	close(fd);
	return err;
}

static bool is_build(const struct scan *s, const char *id)
{
	uint32_t i;

	for (i = 0; i < SCAN_BUILDS; i++)
		if (s->builds[i][0] && !strcmp(id, s->builds[i]))
			return true;
	return false;
}

/* What else is recorded of the plugin that was named: nothing where it has no build id, or none of the usual length. */
static void copy_build_id(struct scan *s, const struct scan_file *f)
{
	char id[ELF_BUILD_ID_LEN];
	uint32_t i;

	if (!s->only || read_build_id(f, id, sizeof(id)))
		return;
	for (i = 0; i < SCAN_BUILDS - 1 && strcmp(s->builds[i], id); i++)
		;
	memmove(s->builds[1], s->builds[0], i * sizeof(s->builds[0]));
	strcpy(s->builds[0], id);
}

static struct scan_file *file_find(const struct scan *s, const struct elf_file_id *key)
{
	struct scan_file *f;

	HASH_FIND(hh, s->files, key, sizeof(*key), f);
	return f;
}

static struct scan_file *file_add(struct scan *s, const struct elf_file_id *key)
{
	struct scan_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->key = *key;
	f->link = f->copy = -1;
	f->fd = -1;
	HASH_ADD(hh, s->files, key, sizeof(f->key), f);
	if (!HASH_ADDED(hh, f)) {
		free(f);
		return NULL;
	}
	return f;
}

static bool is_wanted(const struct scan *s, const struct scan_file *f)
{
	char id[ELF_BUILD_ID_LEN];

	if (!s->only || f->keep)
		return true;
	return !read_build_id(f, id, sizeof(id)) && is_build(s, id);
}

/* As it is known here, without asking a file system that may not answer. */
static bool version_read(int fd, struct scan_version *v)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE | STATX_MTIME, &st))
		return false;
	*v = (struct scan_version){st.stx_size, (uint64_t)st.stx_mtime.tv_sec * NSEC_PER_SEC +
							st.stx_mtime.tv_nsec};
	return true;
}

/* Of the file at the plugin's path, which nobody may have yet: -EPROTO, its records would be none that we know. */
static int file_check(const struct scan_file *f)
{
	int fd = elf__open(path_of(f->fd).s), err;

	if (fd < 0)
		return fd;
	err = target__check_file(fd);
	close(fd);
	return err == -EPROTO ? err : 0; /* that it is none otherwise, attaching tells */
}

/*
 * The kernel may have taken long to put a probe on or off, and many may come or go at once: those that are armed fill the ring meanwhile, and who
 * waits for a word of us is to know that we are there.
 */
static void serve(struct recorder *r)
{
	uint64_t now;

	attach__poll(r->attach, 0);
	now = monotonic_ns();
	notify__tick(now);
	status_self__waits(&r->status, r, now);
}

static int file_attach(struct recorder *r, struct scan_file *f)
{
	version_read(f->fd, &f->version);
	f->link = attach__plugin(r->attach, path_of(f->fd).s, -1);
	f->attached_ns = monotonic_ns();
	serve(r);
	return f->link < 0 ? f->link : 0;
}

static void link_off(struct recorder *r, int *link)
{
	if (*link < 0)
		return;
	attach__plugin_off(r->attach, *link);
	*link = -1;
	serve(r);
}

static void file_detach(struct recorder *r, struct scan_file *f)
{
	link_off(r, &f->link);
	link_off(r, &f->copy);
	f->same = (struct timespec){0};
}

static void file_close(struct scan_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

static void file_free(struct scan *s, struct scan_file *f)
{
	file_close(f);
	HASH_DEL(s->files, f);
	free(f);
}

/* Not of each of those that jobs fork, or touch, for days. */
static bool may_tell_more(struct scan *s)
{
	if (!s->told)
		s->tell_ns = monotonic_ns() + TOLD_NS;
	if (s->told == TOLD_MAX) {
		s->untold++;
		return false;
	}
	s->told++;
	return true;
}

/* Whether to say why it is not recorded: once, and not of each that has what its parent has loaded. */
static bool may_tell(struct scan *s, struct scan_proc *p)
{
	if (p->told)
		return false;
	p->told = true;
	return may_tell_more(s);
}

static void tell_others(struct scan *s, uint64_t now)
{
	if (!s->told || now < s->tell_ns)
		return;
	if (s->untold)
		pr_warn("%u more such warnings were left out; 'ncclscope status' lists the "
			"processes that have the plugin\n",
			s->untold);
	s->told = s->untold = 0;
}

/* Opened as it was found, and attached to, if it is one to record. 0, also if it is not, or -errno; *f is NULL if it is not known then. */
static int file_open(struct recorder *r, const struct target *t, struct scan_file **f)
{
	int fd = elf__open_same(t->path, &t->file), err;

	/* What the process has done meanwhile says nothing of the file, which others may have, too. */
	*f = fd < 0 ? NULL : file_add(&r->scan, &t->file);
	if (!*f && fd >= 0)
		close(fd);
	if (!*f)
		return fd < 0 ? fd : -ENOMEM;
	(*f)->fd = fd;
	if (!is_wanted(&r->scan, *f)) {
		file_close(*f);
		return 0;
	}
	err = file_attach(r, *f);
	if (is_passing(err)) { /* whoever looks again then is to find it anew */
		file_free(&r->scan, *f);
		*f = NULL;
	}
	return err;
}

static const char *refusal(int err)
{
	return err == -ENOSPC	? "there is no room for another file of it"
	       : err == -EPROTO ? "it is of another version"
				: strerror(-err);
}

/* That there is no room is one thing, however many files and processes wait for it. */
static bool may_tell_refused(struct scan *s, struct scan_proc *p, int err)
{
	uint64_t now = monotonic_ns();

	if (err != -ENOSPC)
		return may_tell(s, p);
	if (s->no_room_ns && now - s->no_room_ns < TOLD_NS)
		return false;
	s->no_room_ns = now;
	return true;
}

/* The file of a plugin that was found in a process. 0, also if it is not to be recorded (*f is NULL if it is not known), or why not now, which may pass. */
static int file_of(struct recorder *r, struct scan_proc *p, const struct target *t,
		   struct scan_file **f)
{
	int err;

	*f = file_find(&r->scan, &t->file);
	if (*f)
		return 0;
	err = file_open(r, t, f);
	if (err && may_tell_refused(&r->scan, p, err))
		pr_warn("Failed to attach to the plugin of process %d: %s, continuing without "
			"processes that have this file%s\n",
			t->pid, refusal(err), is_passing(err) ? ", and trying again later" : "");
	if (*f && (*f)->link >= 0)
		pr_debug("Attached to another file of the plugin, found in process %d\n", t->pid);
	return is_passing(err) ? err : 0;
}

/* It could not be attached to, which may pass: what is at the plugin's path can be another file by now. */
static bool is_retry_due(const struct scan_file *f)
{
	return (f->keep || f->refused) && f->link < 0 && monotonic_ns() >= f->retry_ns;
}

/*
 * They have the file, which was not wanted, or could not be attached to; or they had @anew as it was: without a probe the plugin has turned off
 * what it was asked for (area_disarm()), and is to be asked again. NULL: none.
 */
static void look_again(struct scan *s, const struct scan_file *anew)
{
	struct scan_proc *p;

	for (p = s->procs; p; p = p->hh.next)
		if (!p->file || p->file == anew)
			p->vsize = UINT64_MAX;
}

/* By its path, or by a process that has it; once in TOLD_NS, and of jobs' own files no more than of other reasons. */
static void tell_changed(struct recorder *r, struct scan_file *f)
{
	static const char advice[] =
		"breaks processes that have it loaded, if it was written to: replace it (install, "
		"mv), do not overwrite it; attaching anew";
	const struct scan_proc *p;
	uint64_t now = monotonic_ns();

	if (f->told_ns && now - f->told_ns < TOLD_NS)
		return;
	for (p = r->scan.procs; p && p->file != f; p = p->hh.next)
		;
	if (!f->keep && (!p || !may_tell_more(&r->scan)))
		return;
	f->told_ns = now;
	if (f->keep)
		pr_warn("The plugin '%s' was changed (or touched) while it is in use, which %s\n",
			r->plugin, advice);
	else
		pr_warn("The plugin's file that process %d has was changed (or touched) while it "
			"is in use, which %s\n",
			p->pid, advice);
}

/* The file has another content now: probes off, and on again when it has had the same one for a pass. */
static void file_renew(struct recorder *r, struct scan_file *f)
{
	struct scan_version v;
	int err;

	if (!version_read(f->fd, &v))
		return;
	if (memcmp(&v, &f->version, sizeof(v))) {
		if (!f->changed && f->link >= 0)
			tell_changed(r, f);
		f->changed = true;
		f->version = v;
		f->pause_ns = 0;
		file_detach(r, f);
		return;
	}
	if (!f->changed && !is_retry_due(f))
		return;
	f->changed = false;
	err = f->keep ? file_check(f) : 0;
	if (!err && f->keep)
		copy_build_id(&r->scan, f);
	if (!err)
		err = is_wanted(&r->scan, f) ? file_attach(r, f) : -ENOENT;
	if (!err)
		look_again(&r->scan, f);
	else if (!f->pause_ns)
		pr_warn("Failed to attach to the plugin's file as it is now: %s, continuing "
			"without it\n",
			refusal(err));
	f->refused = is_passing(err);
	f->pause_ns = err ? patience__pause(f->pause_ns) : 0;
	f->retry_ns = monotonic_ns() + f->pause_ns;
}

/*
 * The kernel puts a breakpoint where the probe was, whatever is there by now: amid an instruction, in each process that
 * loads the file.
 */
static void files_renew(struct recorder *r)
{
	struct scan_file *f;

	for (f = r->scan.files; f; f = f->hh.next)
		if (f->fd >= 0)
			file_renew(r, f);
}

/* Whom there was no room for need not wait any longer. */
static void room_again(struct scan *s)
{
	struct scan_file *f;
	struct scan_proc *p;

	for (f = s->files; f; f = f->hh.next)
		if (f->refused)
			f->retry_ns = 0;
	for (p = s->procs; p; p = p->hh.next)
		if (p->no_room)
			p->look_ns = 0;
}

/* Probes on files that nobody has loaded any more. */
static void files_expire(struct recorder *r)
{
	struct scan_file *f, *tmp;
	bool room = false;

	HASH_ITER (hh, r->scan.files, f, tmp) {
		f->unused = f->users || f->keep ? 0 : f->unused + 1;
		if (f->unused < UNUSED_PASSES)
			continue;
		room |= f->link >= 0 || f->copy >= 0;
		file_detach(r, f);
		file_free(&r->scan, f);
	}
	if (room)
		room_again(&r->scan);
}

/* ---- Processes --------------------------------------------------------------------------------- */

static void proc_leaves_file(struct scan_proc *p)
{
	if (p->file)
		p->file->users--;
	p->file = NULL;
}

static void proc_free(struct scan *s, struct scan_proc *p)
{
	HASH_DEL(s->procs, p);
	if (p == s->looked) {
		s->looked_gone = true;
		return;
	}
	proc_leaves_file(p);
	free(p);
}

static struct scan_proc *proc_get(struct scan *s, pid_t pid, uint64_t start)
{
	struct scan_proc *p;

	HASH_FIND_INT(s->procs, &pid, p);
	if (p && p->start != start)
		proc_free(s, p);
	else if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	p->start = start;
	HASH_ADD_INT(s->procs, pid, p);
	if (!HASH_ADDED(hh, p)) {
		free(p);
		return NULL;
	}
	return p;
}

/* Whether the mappings may have changed. One that has the plugin keeps it, but for another program. */
static bool is_due(const struct scan_proc *p, uint64_t vsize, uint64_t now)
{
	return now >= p->look_ns && (p->file ? vsize < p->vsize : vsize != p->vsize);
}

static void set_next_look(struct scan_proc *p, uint64_t now, int err)
{
	uint64_t took = monotonic_ns() - now;

	p->look_ns = now + (took * LOOK_SHARE > LOOK_NS ? took * LOOK_SHARE : LOOK_NS);
	p->hangs = err == -ETIMEDOUT;
	p->no_room = err == -ENOSPC;
	p->pause_ns = is_passing(err) ? patience__pause(p->pause_ns) : 0;
	if (!p->pause_ns)
		return;
	p->look_ns = now + took + p->pause_ns;
	p->vsize = UINT64_MAX; /* however large it is then */
}

/*
 * `next`: of its ids, now; 0 not known. They count up for as long as the program lives: where they are fewer than before it is another one
 * (execve), which we have followed from its first on.
 */
static uint64_t first_id(struct scan_proc *p, uint64_t next)
{
	if (!p->first_id)
		p->first_id = next;
	else if (next && next < p->first_id)
		p->first_id = 1;
	return p->first_id;
}

/* What the process' mapping leads to, unless that was the file we have already: as its inode's last change tells. 0 or -errno. */
static int file_attach_copy(struct recorder *r, struct scan_file *f, const struct target *t)
{
	int fd = elf__open_same(t->path, &t->file), link = -ENOENT;
	struct stat st;

	if (fd < 0)
		return fd;
	if (!fstat(fd, &st) && memcmp(&st.st_ctim, &f->same, sizeof(f->same))) {
		link = attach__plugin(r->attach, path_of(fd).s, -1);
		serve(r);
	}
	close(fd);
	if (link < 0)
		return link;
	f->copy = link;
	f->same = st.st_ctim;
	f->attached_ns = monotonic_ns();
	pr_debug("Attached to a changed file of the plugin, found in process %d\n", t->pid);
	return 0;
}

/*
 * A file of an image that somebody changes, if only its owner, is copied (overlayfs): who loads it later has another inode, which no
 * probe is on, with the numbers of the one before, size and times as well. What a process has mapped tells them apart. One that had it before
 * keeps that, and its probe; if we come later, its mapping leads to the copy, which we may have attached to just now (`fresh`). 0; -ENODATA: no probe
 * can be on it; or why it could not be asked, or attached to, which may pass.
 */
static int file_cover(struct recorder *r, struct scan_proc *p, struct target *t, bool fresh)
{
	int err = target__probed(t), copy_err = 0;

	if (err == -ENODATA && !fresh && p->file->copy < 0) {
		copy_err = file_attach_copy(r, p->file, t);
		err = target__probed(t);
		if (p->file->copy >= 0 && err == -ENODATA)
			link_off(r, &p->file->copy);
	}
	p->bare = err == -ENODATA;
	if (p->bare && is_passing(copy_err))
		err = copy_err;
	if (p->bare && may_tell(&r->scan, p))
		pr_warn("Process %d: %s; continuing without it%s\n", p->pid,
			err == -ENOSPC ? "there is no room for another file of the plugin"
				       : target__error(err),
			err == -ENODATA ? "" : ", and trying again later");
	return p->bare || is_passing(err) ? err : 0;
}

static void look(struct recorder *r, struct scan_proc *p, uint64_t now)
{
	struct target t;
	bool fresh;
	int err;

	err = target__find(&t, p->pid);
	if (err == -EAGAIN) /* as many processes as we may have */
		err = -EBUSY;
	/* Without an address space, as a thread of the kernel or a zombie, it has nothing to look into. */
	p->hidden = p->vsize && (err == -EPERM || err == -EACCES);
	/* One that cannot be looked into now still has what it had: its file's probe is not for us to take away. */
	if (!err || err == -ENOENT || err == -ESRCH)
		proc_leaves_file(p);
	fresh = !err && !file_find(&r->scan, &t.file);
	if (!err) {
		err = file_of(r, p, &t, &p->file);
		if (p->file && p->file->link < 0)
			p->file = NULL;
	}
	/* Another build than the one that was named is not missed. */
	if ((err == -EREMOTE || (err == -EPROTO && !r->scan.only)) && may_tell(&r->scan, p))
		pr_warn("Process %d: %s; continuing without it\n", p->pid, target__error(err));
	if (!err && p->file) {
		p->file->users++;
		err = file_cover(r, p, &t, fresh);
		if (!err)
			err = follow__want(r, &t, p->pid, r->opt.mask);
		first_id(p, t.first_id);
		pr_debug("Process %d has the plugin, %llu us after we began%s%s\n", p->pid,
			 (unsigned long long)(monotonic_ns() - r->s.attach_ns) / 1000,
			 err ? ": " : "",
			 err == -EAGAIN ? "no communicator yet"
			 : err		? strerror(-err)
					: "");
	}
	target__close(&t);
	set_next_look(p, now, err);
}

/* To attach takes long, and the ring is read behind it (serve()): what comes of that may find that p's number is another process' by now. */
static void look_at(struct recorder *r, struct scan_proc *p, uint64_t now)
{
	struct scan *s = &r->scan;

	s->looked = p;
	look(r, p, now);
	s->looked = NULL;
	if (!s->looked_gone)
		return;
	s->looked_gone = false;
	proc_leaves_file(p);
	free(p);
}

static void visit(struct recorder *r, pid_t pid, uint64_t now)
{
	struct scan_proc *p;
	struct pid_stat st;

	if (pid_stat__read(pid, &st))
		return;
	p = proc_get(&r->scan, pid, st.start);
	if (!p)
		return;
	p->pass = r->scan.pass;
	if (!is_due(p, st.vsize, now))
		return;
	p->vsize = st.vsize;
	look_at(r, p, now);
}

/* ---- What is at the plugin's path -------------------------------------------------------------- */

struct named {
	struct elf_file_id known; /* what was there, of which nothing is read */
	char path[PATH_MAX];	  /* as it was named; "": it was not */
};

/* There, as the path's file system may not answer: opens what is at the path now, if that is another file, whole, and of our version. */
static int ask_named(struct patience_call *call)
{
	const struct named *named = call->in;
	struct elf_file_id id;
	char path[PATH_MAX];
	int err = plugin__find(named->path, path, sizeof(path)), fd;

	fd = err ? err : elf__open(path);
	if (fd < 0)
		return fd;
	err = elf__id(fd, &id);
	if (!err && !memcmp(&id, &named->known, sizeof(id)))
		err = -EALREADY;
	if (!err)
		err = target__check_file(fd);
	if (!err)
		call->out_fd = open(path_of(fd).s, O_PATH | O_CLOEXEC);
	if (!err && call->out_fd < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Jobs that start from now on load this one. Who has the one before goes on with that, whose probe goes when nobody has it. */
static void named_take(struct recorder *r, int fd)
{
	struct scan *s = &r->scan;
	struct scan_file *f, *other;
	struct elf_file_id key;

	f = elf__id(fd, &key) ? NULL : file_find(s, &key) ?: file_add(s, &key);
	if (!f) {
		close(fd);
		return;
	}
	for (other = s->files; other; other = other->hh.next)
		other->keep = false;
	f->keep = true;
	file_close(f);
	f->fd = fd;
	if (f->link >= 0) { /* found in a process before */
		copy_build_id(s, f);
		return;
	}
	f->changed = version_read(fd, &f->version); /* for file_renew() */
	pr_info("The plugin '%s' has been replaced: attaching to the new one, too\n", r->plugin);
}

/* An upgrade puts another file there, or has a link lead to another. */
static void named_renew(struct recorder *r, uint64_t now)
{
	struct patience_call call = {.in_len = sizeof(struct named), .in_fd = -1};
	struct scan *s = &r->scan;
	struct named named = {0};
	struct scan_file *f;
	int err;

	if (!r->plugin[0] || now < s->named_ns)
		return;
	for (f = s->files; f && !f->keep; f = f->hh.next)
		;
	if (f)
		named.known = f->key;
	if (r->opt.plugin)
		snprintf(named.path, sizeof(named.path), "%s", r->opt.plugin);
	call.in = &named;
	err = patience__call(ask_named, &call, geteuid());
	s->named_pause_ns = is_passing(err) ? patience__pause(s->named_pause_ns) : 0;
	s->named_ns = now + s->named_pause_ns;
	if (!err)
		named_take(r, call.out_fd);
	if (err == -EPROTO && s->named_err != err)
		pr_warn("The plugin '%s' has been replaced by one of another version: jobs that "
			"load it "
			"are not recorded until the recorder is, too\n",
			r->plugin);
	s->named_err = err;
}

/* ---- Passes ------------------------------------------------------------------------------------ */

static bool pass_begin(struct scan *s, uint64_t now)
{
	s->dir = opendir("/proc");
	if (!s->dir)
		return false;
	s->pass++;
	s->begin_ns = now;
	s->busy_ns = 0;
	return true;
}

static void pass_end(struct recorder *r)
{
	struct scan *s = &r->scan;
	struct scan_proc *p, *tmp;

	closedir(s->dir);
	s->dir = NULL;
	HASH_ITER (hh, s->procs, p, tmp)
		if (p->pass != s->pass)
			proc_free(s, p);
	named_renew(r, monotonic_ns());
	files_renew(r);
	files_expire(r);
	tell_others(s, monotonic_ns());
	s->next_ns = s->begin_ns + PASS_NS;
	if (s->busy_ns * PASS_SHARE > PASS_NS)
		s->next_ns = s->begin_ns + s->busy_ns * PASS_SHARE;
}

/* Until /proc is at its end, or it has taken slice_ns. */
static void pass_go(struct recorder *r, uint64_t slice_ns)
{
	uint64_t begin = monotonic_ns(), now = begin;
	struct dirent *d;
	pid_t pid;

	while (now - begin < slice_ns) {
		d = readdir(r->scan.dir);
		if (!d) {
			r->scan.busy_ns += now - begin;
			pass_end(r);
			return;
		}
		if (!parse_pid(d->d_name, &pid))
			visit(r, pid, now);
		now = monotonic_ns();
	}
	r->scan.busy_ns += now - begin;
}

void scan__tick(struct recorder *r, uint64_t now)
{
	struct scan *s = &r->scan;

	if (r->opt.npids || (!s->dir && (now < s->next_ns || !pass_begin(s, now))))
		return;
	pass_go(r, SLICE_NS);
}

void scan__all(struct recorder *r)
{
	if (pass_begin(&r->scan, monotonic_ns()))
		pass_go(r, UINT64_MAX);
}

uint32_t scan__users(const struct scan *s)
{
	const struct scan_proc *p;
	uint32_t n = 0;

	for (p = s->procs; p; p = p->hh.next)
		n += p->file && !p->bare;
	return n;
}

uint32_t scan__hidden(const struct scan *s)
{
	const struct scan_proc *p;
	uint32_t n = 0;

	for (p = s->procs; p; p = p->hh.next)
		n += p->hidden;
	return n;
}

int scan__init(struct recorder *r, bool only)
{
	struct elf_file_id key;
	struct scan_file *f;
	int fd, err;

	r->scan.only = only;
	fd = open(r->plugin, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = elf__id(fd, &key);
	f = err ? NULL : file_add(&r->scan, &key);
	if (!f) {
		close(fd);
		return err ? err : -ENOMEM;
	}
	f->fd = fd;
	f->keep = true;
	err = file_check(f);
	if (!err)
		err = file_attach(r, f);
	if (!err) {
		copy_build_id(&r->scan, f);
		return 0;
	}
	file_free(&r->scan, f); /* named_renew() is to take what is there then */
	r->scan.named_err = err;
	return err;
}

uint64_t scan__attached_ns(const struct recorder *r, const struct target *t)
{
	const struct scan_file *f = r->scan.files ? file_find(&r->scan, &t->file) : NULL;

	return f && f->link >= 0 ? f->attached_ns : 0;
}

uint64_t scan__first_id(struct recorder *r, const struct target *t)
{
	struct scan_proc *p;
	struct pid_stat st;

	if (pid_stat__read(t->pid, &st))
		return t->first_id;
	p = proc_get(&r->scan, t->pid, st.start);
	if (!p)
		return t->first_id;
	p->pass = r->scan.pass;
	return first_id(p, t->first_id);
}

void scan__free(struct scan *s)
{
	struct scan_proc *p, *ptmp;
	struct scan_file *f, *ftmp;
	struct scan next = {0};

	if (s->dir)
		closedir(s->dir);
	HASH_ITER (hh, s->procs, p, ptmp)
		proc_free(s, p);
	HASH_ITER (hh, s->files, f, ftmp)
		file_free(s, f);
	/* When the next window begins the plugin that was named may not be there: what it is, we know. */
	memcpy(next.builds, s->builds, sizeof(next.builds));
	*s = next;
}
