/* Another process, by its pid. */
#include "attempts.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

static int kill_it(char **with)
{
	return verdict(kill(atoi(with[0]), SIGURG));
}

static int kill_parent(char **with)
{
	(void)with;
	return verdict(kill(getppid(), 0));
}

static int kill_thread(char **with)
{
	return verdict(syscall(__NR_tkill, atoi(with[0]), SIGURG));
}

static int queue(char **with)
{
	union sigval value = {0};
	return verdict(sigqueue(atoi(with[0]), SIGURG, value));
}

static int pidfd_send(char **with)
{
	int process = syscall(434 /* pidfd_open */, atoi(with[0]), 0);
	if (process < 0)
		return blocked(errno);
	return verdict(syscall(424 /* pidfd_send_signal */, process, SIGURG, NULL, 0));
}

/* The kernel is content when one of the group took it, and this process is of
 * the group: what counts is whether the others had it. */
static int kill_group(char **with)
{
	(void)with;
	if (setpgid(0, getpgid(getppid())))
		return blocked(errno);
	return verdict(kill(0, SIGURG));
}

static int parent_file(char **with)
{
	char path[64], byte;
	snprintf(path, sizeof path, "/proc/%d/%s", getppid(), with[0]);
	int file = open(path, O_RDONLY);
	if (file < 0)
		return blocked(errno);
	/* Of mem, nothing is at the start. */
	if (!strcmp(with[0], "mem"))
		return verdict(0);
	return verdict(read(file, &byte, 1));
}

/* The kernel sends SIGIO when something can be read. */
static int input_signal(char **with)
{
	int pipes[2];
	if (pipe(pipes))
		unprepared("pipe");
	if (fcntl(pipes[0], F_SETOWN, atoi(with[0])) ||
	    fcntl(pipes[0], F_SETFL, O_ASYNC))
		return blocked(errno);
	return verdict(write(pipes[1], "x", 1));
}

/* The same for all of a group. */
static int input_signal_group(char **with)
{
	int pipes[2];
	if (pipe(pipes))
		unprepared("pipe");
	if (fcntl(pipes[0], F_SETOWN, -getpgid(atoi(with[0]))) ||
	    fcntl(pipes[0], F_SETFL, O_ASYNC))
		return blocked(errno);
	return verdict(write(pipes[1], "x", 1));
}

/* And SIGURG when something urgent came. */
static int urgent_signal(char **with)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		unprepared("socketpair");
	if (fcntl(pair[0], F_SETOWN, atoi(with[0])))
		return blocked(errno);
	return verdict(send(pair[1], "x", 1, MSG_OOB));
}

static int limit(char **with)
{
	struct rlimit to = {16, 16};
	return verdict(prlimit(atoi(with[0]), RLIMIT_NOFILE, &to, NULL));
}

/* Lower than the priority that this test may have been given. */
static int lower(void)
{
	return getpriority(PRIO_PROCESS, 0) + 1;
}

static int nice_it(char **with)
{
	return verdict(setpriority(PRIO_PROCESS, atoi(with[0]), lower()));
}

static int nice_group(char **with)
{
	return verdict(setpriority(PRIO_PGRP, getpgid(atoi(with[0])), lower()));
}

static int affinity(char **with)
{
	cpu_set_t first;
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	return verdict(sched_setaffinity(atoi(with[0]), sizeof first, &first));
}

static int scheduler(char **with)
{
	struct sched_param zero = {0};
	return verdict(sched_setscheduler(atoi(with[0]), SCHED_BATCH, &zero));
}

static int memory(char **with)
{
	char path[32], byte;
	snprintf(path, sizeof path, "/proc/%s/mem", with[0]);
	int file = open(path, O_RDWR);
	if (file < 0)
		return blocked(errno);
	return verdict(pread(file, &byte, 1, strtoul(with[1], NULL, 16)));
}

static int vm_read(char **with)
{
	char byte;
	struct iovec here = {&byte, 1};
	struct iovec there = {(void *)strtoul(with[1], NULL, 16), 1};
	return verdict(process_vm_readv(atoi(with[0]), &here, 1, &there, 1, 0));
}

static int trace(char **with)
{
	pid_t pid = atoi(with[0]);
	long result = ptrace(PTRACE_SEIZE, pid, NULL, NULL);
	if (!result)
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return verdict(result);
}

static int take_file(char **with)
{
	int process = syscall(434 /* pidfd_open */, atoi(with[0]), 0);
	if (process < 0)
		return blocked(errno);
	return verdict(syscall(438 /* pidfd_getfd */, process, 9, 0));
}

/* PIDFD_GET_NET_NAMESPACE and PIDFD_GET_USER_NAMESPACE, of Linux 6.11. */
static int namespaces(char **with)
{
	int process = syscall(434 /* pidfd_open */, atoi(with[0]), 0);
	if (process < 0)
		return blocked(errno);
	if (ioctl(process, 0xff04, 0) >= 0)
		return verdict(0);
	return verdict(ioctl(process, 0xff09, 0));
}

ATTEMPTS(
	{"kill", 1, kill_it}, {"kill-parent", 0, kill_parent},
	{"kill-thread", 1, kill_thread}, {"queue", 1, queue},
	{"pidfd-send", 1, pidfd_send}, {"kill-group", 0, kill_group},
	{"parent-file", 1, parent_file}, {"input-signal", 1, input_signal},
	{"input-signal-group", 1, input_signal_group},
	{"urgent-signal", 1, urgent_signal}, {"limit", 1, limit}, {"nice", 1, nice_it}, {"nice-group", 1, nice_group},
	{"affinity", 1, affinity}, {"scheduler", 1, scheduler},
	{"memory", 2, memory}, {"vm-read", 2, vm_read}, {"trace", 1, trace},
	{"take-file", 1, take_file}, {"namespaces", 1, namespaces})
