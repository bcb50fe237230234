/* What is shared without a path, and programs that have none. */
#include "attempts.h"
#include <fcntl.h>
#include <mqueue.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/sem.h>
#include <sys/shm.h>

static int segment(char **with)
{
	return verdict(shmat(atoi(with[0]), NULL, 0) == (void *)-1 ? -1 : 0);
}

static int message(char **with)
{
	struct {
		long kind;
		char text[1];
	} sent = {1, "x"};
	return verdict(msgsnd(atoi(with[0]), &sent, 1, IPC_NOWAIT));
}

static int semaphore(char **with)
{
	struct sembuf up = {0, 1, IPC_NOWAIT};
	return verdict(semop(atoi(with[0]), &up, 1));
}

/* The kernel makes the queue before it asks whether it may be opened: one that
 * can be removed was there, whatever the answer was. */
static int queue(char **with)
{
	struct mq_attr small = {.mq_maxmsg = 1, .mq_msgsize = 1};
	mqd_t made = mq_open(with[0], O_CREAT | O_EXCL | O_WRONLY, 0600, &small);
	int failure = errno;
	if (made != (mqd_t)-1 || !mq_unlink(with[0]))
		return verdict(mq_unlink(with[0]) && errno != ENOENT ? -1 : 0);
	return blocked(failure);
}

static int unlink_queue(char **with)
{
	/* Not the library's, which has EACCES for EPERM. */
	return verdict(syscall(__NR_mq_unlink, with[0] + 1));
}

static int shared(char **with)
{
	int made = shm_open(with[0], O_CREAT | O_EXCL | O_RDWR, 0600);
	if (made >= 0)
		shm_unlink(with[0]);
	return verdict(made);
}

static int as_linux32(char **with)
{
	(void)with;
	return verdict(personality(PER_LINUX32));
}

static int not_randomised(char **with)
{
	(void)with;
	return verdict(personality(ADDR_NO_RANDOMIZE));
}

/* Copies this program to memory and goes on as the copy. */
static int run_from_memory(char **with)
{
	char bytes[65536], *next[] = {"memory", "say", NULL}, *none[] = {NULL};
	int from = open(with[0], O_RDONLY);
	int copy = syscall(__NR_memfd_create, "copy", 0);
	if (from < 0 || copy < 0)
		unprepared(with[0]);
	for (ssize_t got; (got = read(from, bytes, sizeof bytes)) > 0;)
		if (write(copy, bytes, got) != got)
			unprepared("write");
	syscall(__NR_execveat, copy, "", next, none, AT_EMPTY_PATH);
	return blocked(errno);
}

static int say(char **with)
{
	(void)with;
	return verdict(0);
}

/* Whether this program has the authority of the owner of its file. */
static int who(char **with)
{
	(void)with;
	if (geteuid() != 0)
		return blocked(EPERM);
	return verdict(0);
}

/* What only a capability allows: another identity. */
static int other_user(char **with)
{
	(void)with;
	return verdict(setuid(1));
}

/* A descriptor of this program's memory, of which some is written and run. */
static int write_and_run(char **with)
{
	(void)with;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return verdict(page == MAP_FAILED ? -1 : 0);
}

ATTEMPTS(
	{"segment", 1, segment}, {"message", 1, message},
	{"semaphore", 1, semaphore}, {"queue", 1, queue},
	{"unlink-queue", 1, unlink_queue}, {"shared", 1, shared},
	{"as-linux32", 0, as_linux32}, {"not-randomised", 0, not_randomised},
	{"run-from-memory", 1, run_from_memory}, {"say", 0, say}, {"who", 0, who},
	{"other-user", 0, other_user}, {"write-and-run", 0, write_and_run})
