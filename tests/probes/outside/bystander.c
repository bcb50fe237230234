/* A process of the same user that has nothing to do with the probe, and says
 * what was done to it: one line about what it has, then the number of each
 * signal; 0 is the last, and "queue" says that its queue was taken away. */
#include "../probe.h"
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>

static char secret[16] = "the secret";

int main(int argc, char **argv)
{
	if (argc < 4)
		unprepared("a file, a directory and a name are missing");
	/* So that no rule about strangers (Yama) stands in the way. */
	prctl(PR_SET_PTRACER, -1L);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(open(argv[1], O_RDONLY), 9) < 0 || chdir(argv[2]))
		unprepared(argv[1]);
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	struct mq_attr small = {.mq_maxmsg = 1, .mq_msgsize = 1};
	mqd_t named = mq_open(argv[3], O_CREAT | O_RDWR, 0600, &small);
	int memory = shmget(IPC_PRIVATE, 4096, 0600);
	int queue = msgget(IPC_PRIVATE, 0600);
	int semaphore = semget(IPC_PRIVATE, 1, 0600);
	/* Goes when this process does; it stays attachable by id until then. */
	if (memory < 0 || shmat(memory, NULL, 0) == (void *)-1 ||
	    shmctl(memory, IPC_RMID, NULL))
		unprepared("shmget");
	printf("%p %d %d %d\n", (void *)secret, memory, queue, semaphore);
	fflush(stdout);
	/* Of several that wait, the kernel gives the one of the lowest number. */
	for (int number = 0; number != SIGPWR;) {
		number = sigwaitinfo(&all, NULL);
		printf("%d\n", number == SIGPWR ? 0 : number);
		fflush(stdout);
	}
	/* Some kernels have none. */
	if (named != (mqd_t)-1 && mq_unlink(argv[3]))
		puts("queue");
	msgctl(queue, IPC_RMID, NULL);
	semctl(semaphore, 0, IPC_RMID);
	return 0;
}
