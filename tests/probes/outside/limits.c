/* As much as is asked for, no more: what it takes goes back when it ends. */
#include "attempts.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static int processes(char **with)
{
	int wanted = atoi(with[0]), failure = 0;
	pid_t made[64];
	int count = 0;
	for (; count < wanted && count < 64 && !failure; count++) {
		made[count] = fork();
		if (made[count] == 0) {
			for (;;)
				pause();
		}
		if (made[count] < 0)
			failure = errno;
	}
	for (int i = 0; i < count; i++) {
		if (made[i] > 0) {
			kill(made[i], SIGKILL);
			waitpid(made[i], NULL, 0);
		}
	}
	return failure ? blocked(failure) : verdict(0);
}

/* Only asked for, never touched. */
static int memory(char **with)
{
	void *room = mmap(NULL, strtoul(with[0], NULL, 10), PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return verdict(room == MAP_FAILED ? -1 : 0);
}

static int files(char **with)
{
	for (int i = 0; i < atoi(with[0]); i++)
		if (dup(1) < 0)
			return blocked(errno);
	return verdict(0);
}

ATTEMPTS({"processes", 1, processes}, {"memory", 1, memory}, {"files", 1, files})
