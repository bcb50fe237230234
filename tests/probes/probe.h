/* What every probe shares: one attempt, one line, exit 0.
 *
 * `open`: the kernel did it, or came as far as to judge the arguments.
 * `blocked ERRNO`: it refused. */
#ifndef PROBE_H
#define PROBE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static const char *errno_name(int number)
{
	switch (number) {
	case EPERM: return "EPERM";
	case ENOENT: return "ENOENT";
	case ESRCH: return "ESRCH";
	case EBADF: return "EBADF";
	case EACCES: return "EACCES";
	case EFAULT: return "EFAULT";
	case EBUSY: return "EBUSY";
	case EEXIST: return "EEXIST";
	case ENODEV: return "ENODEV";
	case EINVAL: return "EINVAL";
	case EMFILE: return "EMFILE";
	case ENOSPC: return "ENOSPC";
	case EIO: return "EIO";
	case ENOSYS: return "ENOSYS";
	case EAFNOSUPPORT: return "EAFNOSUPPORT";
	case EPROTONOSUPPORT: return "EPROTONOSUPPORT";
	case ESOCKTNOSUPPORT: return "ESOCKTNOSUPPORT";
	case EOPNOTSUPP: return "EOPNOTSUPP";
	case ECONNREFUSED: return "ECONNREFUSED";
	case ENOPROTOOPT: return "ENOPROTOOPT";
	case EAGAIN: return "EAGAIN";
	case ECONNRESET: return "ECONNRESET";
	case EISCONN: return "EISCONN";
	case ENETUNREACH: return "ENETUNREACH";
	case ENOMEM: return "ENOMEM";
	case ENOTTY: return "ENOTTY";
	case ENXIO: return "ENXIO";
	case EPIPE: return "EPIPE";
	case EROFS: return "EROFS";
	case EXDEV: return "EXDEV";
	default: return NULL;
	}
}

static inline int blocked(int number)
{
	const char *name = errno_name(number);
	if (name)
		printf("blocked %s\n", name);
	else
		printf("blocked %d\n", number);
	return 0;
}

/* Of a call that returned `result`, with errno as it left it. */
static inline int verdict(long result)
{
	if (result < 0)
		return blocked(errno);
	puts("open");
	return 0;
}

/* The probe could not be made ready: not an answer, so not exit 0. */
static inline void unprepared(const char *what)
{
	perror(what);
	exit(2);
}

#endif
