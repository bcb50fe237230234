/* Another process, that waits and can be tried on: a child, so that no rule
 * about strangers (Yama) stands in the way of the control. */
#ifndef VICTIM_H
#define VICTIM_H

#include "probe.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static volatile char secret[16] = "the secret";

static inline pid_t victim(void)
{
	pid_t pid = fork();
	if (pid < 0)
		unprepared("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static inline void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
