/* Paths, and what is reached through them. */
#include "attempts.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

static int read_open(int file)
{
	char byte;
	if (file < 0)
		return blocked(errno);
	return verdict(read(file, &byte, 1));
}

static int read_path(char **with)
{
	return read_open(open(with[0], O_RDONLY | O_NONBLOCK));
}

static int read_inherited(char **with)
{
	return read_open(atoi(with[0]));
}

/* Whatever is open besides input, output and errors. */
static int any_descriptor(char **with)
{
	(void)with;
	for (int file = 3; file < 1024; file++)
		if (fcntl(file, F_GETFD) >= 0)
			return verdict(0);
	return blocked(EBADF);
}

static int variable(char **with)
{
	return getenv(with[0]) ? verdict(0) : blocked(ENOENT);
}

static int list(char **with)
{
	return verdict(opendir(with[0]) ? 0 : -1);
}

static int write_path(char **with)
{
	int file = open(with[0], O_WRONLY);
	if (file < 0)
		return blocked(errno);
	return verdict(write(file, "changed", 7));
}

/* For files of which a write would do something to the machine. */
static int open_to_write(char **with)
{
	return verdict(open(with[0], O_WRONLY));
}

static int create(char **with)
{
	return verdict(open(with[0], O_WRONLY | O_CREAT | O_EXCL, 0600));
}

/* What it makes is there for others to run. */
static int create_program(char **with)
{
	static const char text[] = "#!/bin/sh\n";
	int file = open(with[0], O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (file < 0 || write(file, text, sizeof text - 1) < 0)
		return blocked(errno);
	return verdict(fchmod(file, 0755));
}

/* Without a name, which it could be given later. */
static int create_nameless(char **with)
{
	return verdict(open(with[0], O_WRONLY | O_TMPFILE, 0600));
}

/* Of what is open already. */
static int truncate_inherited(char **with)
{
	return verdict(ftruncate(atoi(with[0]), 0));
}

static int truncate_path(char **with)
{
	return verdict(truncate(with[0], 0));
}

static int truncate_opening(char **with)
{
	return verdict(open(with[0], O_RDONLY | O_TRUNC));
}

static int unlink_path(char **with)
{
	return verdict(unlink(with[0]));
}

static int remove_directory(char **with)
{
	return verdict(rmdir(with[0]));
}

static int make_directory(char **with)
{
	return verdict(mkdir(with[0], 0700));
}

static int make_fifo(char **with)
{
	return verdict(mkfifo(with[0], 0600));
}

static int make_link(char **with)
{
	return verdict(symlink("anywhere", with[0]));
}

static int rename_path(char **with)
{
	return verdict(rename(with[0], with[1]));
}

static int exchange(char **with)
{
	return verdict(syscall(__NR_renameat2, AT_FDCWD, with[0], AT_FDCWD, with[1],
			       2 /* RENAME_EXCHANGE */));
}

static int hard_link(char **with)
{
	return verdict(link(with[0], with[1]));
}

/* By a descriptor, as /proc/self/fd has it and linkat takes it. */
static int hard_link_open(char **with)
{
	char name[32];
	int file = open(with[0], O_PATH);
	if (file < 0)
		return blocked(errno);
	snprintf(name, sizeof name, "/proc/self/fd/%d", file);
	return verdict(linkat(AT_FDCWD, name, AT_FDCWD, with[1], AT_SYMLINK_FOLLOW));
}

static int read_by_symlink(char **with)
{
	if (symlink(with[0], with[1]))
		unprepared("symlink");
	return read_open(open(with[1], O_RDONLY));
}

static int write_by_symlink(char **with)
{
	if (symlink(with[0], with[1]))
		unprepared("symlink");
	return write_path(with + 1);
}

/* A descriptor of O_PATH opens nothing, but names what is opened again. */
static int reopen(char **with)
{
	char name[32];
	int file = open(with[0], O_PATH);
	if (file < 0)
		unprepared(with[0]);
	snprintf(name, sizeof name, "/proc/self/fd/%d", file);
	return read_open(open(name, O_RDONLY));
}

static int read_at(char **with)
{
	int directory = open(with[0], O_PATH | O_DIRECTORY);
	if (directory < 0)
		unprepared(with[0]);
	return read_open(openat(directory, with[1], O_RDONLY));
}

/* By the newer call, without its fences. */
static int read_openat2(char **with)
{
	uint64_t how[3] = {O_RDONLY, 0, 0};
	return read_open(syscall(437, AT_FDCWD, with[0], how, sizeof how));
}

static int read_from_within(char **with)
{
	if (chdir(with[0]))
		unprepared(with[0]);
	return read_open(open(with[1], O_RDONLY));
}

/* /dev/null by another name. */
static int make_device(char **with)
{
	return verdict(mknod(with[0], S_IFCHR | 0666, makedev(1, 3)));
}

static int make_block_device(char **with)
{
	return verdict(mknod(with[0], S_IFBLK | 0600, makedev(7, 0)));
}

static int execute(char **with)
{
	/* A child, so that this program can say what came of it. */
	int told[2];
	if (pipe2(told, O_CLOEXEC))
		unprepared("pipe2");
	pid_t pid = fork();
	if (pid < 0)
		unprepared("fork");
	if (pid == 0) {
		close(1);
		close(2);
		execl(with[0], with[0], (char *)NULL);
		int failure = errno;
		if (write(told[1], &failure, sizeof failure) < 0)
			_exit(1);
		_exit(0);
	}
	close(told[1]);
	int failure = 0;
	ssize_t got = read(told[0], &failure, sizeof failure);
	waitpid(pid, NULL, 0);
	return got > 0 ? blocked(failure) : verdict(0);
}

/* By a descriptor that opens nothing. */
static int execute_open(char **with)
{
	char *next[] = {with[0], NULL}, *none[] = {NULL};
	int file = open(with[0], O_PATH);
	if (file < 0)
		unprepared(with[0]);
	syscall(__NR_execveat, file, "", next, none, AT_EMPTY_PATH);
	return blocked(errno);
}

/* The same process goes on as the other, which says what it is. */
static int become(char **with)
{
	execl(with[0], with[0], with[1], (char *)NULL);
	return blocked(errno);
}

/* What is learnt without an open. */
static int stat_path(char **with)
{
	struct stat found;
	return verdict(stat(with[0], &found));
}

static int access_path(char **with)
{
	return verdict(access(with[0], R_OK));
}

static int read_link(char **with)
{
	char target[64];
	return verdict(readlink(with[0], target, sizeof target));
}

static int change_directory(char **with)
{
	return verdict(chdir(with[0]));
}

/* Whoever writes to a leased file has to wait. */
static int lease(char **with)
{
	int file = open(with[0], O_RDONLY);
	if (file < 0)
		unprepared(with[0]);
	return verdict(fcntl(file, F_SETLEASE, F_RDLCK));
}

static int lock(char **with)
{
	int file = open(with[0], O_RDONLY);
	if (file < 0)
		unprepared(with[0]);
	return verdict(flock(file, LOCK_EX | LOCK_NB));
}

static int watch(char **with)
{
	int watches = inotify_init1(IN_NONBLOCK);
	if (watches < 0)
		unprepared("inotify_init1");
	return verdict(inotify_add_watch(watches, with[0], IN_ALL_EVENTS));
}

ATTEMPTS(
	{"read", 1, read_path}, {"read-inherited", 1, read_inherited},
	{"any-descriptor", 0, any_descriptor}, {"variable", 1, variable},
	{"list", 1, list}, {"write", 1, write_path},
	{"open-to-write", 1, open_to_write}, {"create", 1, create},
	{"create-program", 1, create_program}, {"truncate", 1, truncate_path},
	{"create-nameless", 1, create_nameless},
	{"truncate-inherited", 1, truncate_inherited}, {"truncate-opening", 1, truncate_opening}, {"unlink", 1, unlink_path},
	{"rmdir", 1, remove_directory}, {"mkdir", 1, make_directory},
	{"mkfifo", 1, make_fifo}, {"symlink", 1, make_link},
	{"rename", 2, rename_path}, {"exchange", 2, exchange},
	{"link", 2, hard_link}, {"link-open", 2, hard_link_open},
	{"read-by-symlink", 2, read_by_symlink},
	{"write-by-symlink", 2, write_by_symlink}, {"reopen", 1, reopen},
	{"read-at", 2, read_at}, {"read-openat2", 1, read_openat2},
	{"read-from-within", 2, read_from_within},
	{"mknod", 1, make_device}, {"mknod-block", 1, make_block_device},
	{"execute", 1, execute}, {"execute-open", 1, execute_open}, {"become", 2, become}, {"stat", 1, stat_path},
	{"access", 1, access_path}, {"readlink", 1, read_link},
	{"chdir", 1, change_directory}, {"watch", 1, watch},
	{"lease", 1, lease}, {"lock", 1, lock})
