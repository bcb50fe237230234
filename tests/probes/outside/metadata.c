/* Modes, owners, times and attributes. */
#include "attempts.h"
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>

static int to_read(const char *path)
{
	int file = open(path, O_RDONLY);
	if (file < 0)
		unprepared(path);
	return file;
}

static int mode(char **with)
{
	return verdict(chmod(with[0], 0640));
}

/* To whom it belongs already: a plain user may that, and the kernel takes the
 * change for one. */
static int owner(char **with)
{
	return verdict(chown(with[0], geteuid(), getegid()));
}

static int times(char **with)
{
	struct timeval to[2] = {{1, 0}, {1, 0}};
	return verdict(utimes(with[0], to));
}

static int times_at(char **with)
{
	struct timespec to[2] = {{1, 0}, {1, 0}};
	return verdict(utimensat(AT_FDCWD, with[0], to, 0));
}

static int attribute(char **with)
{
	return verdict(setxattr(with[0], "user.aegis", "x", 1, 0));
}

static int read_attributes(char **with)
{
	return verdict(listxattr(with[0], NULL, 0));
}

/* Where it is open, if only for reading. */
static int mode_of_open(char **with)
{
	return verdict(fchmod(to_read(with[0]), 0640));
}

static int times_of_open(char **with)
{
	struct timespec to[2] = {{1, 0}, {1, 0}};
	return verdict(futimens(to_read(with[0]), to));
}

static int attribute_of_open(char **with)
{
	return verdict(fsetxattr(to_read(with[0]), "user.aegis", "x", 1, 0));
}

/* Flags of the file system, like that which keeps a file out of backups. */
static int flags_of_open(char **with)
{
	int file = to_read(with[0]), flags = 0;
	if (ioctl(file, FS_IOC_GETFLAGS, &flags))
		return blocked(errno);
	flags |= FS_NODUMP_FL;
	return verdict(ioctl(file, FS_IOC_SETFLAGS, &flags));
}

/* By a descriptor that opened nothing, which proves no right to the file. */
static int times_of_path(char **with)
{
	struct timespec to[2] = {{1, 0}, {1, 0}};
	int file = open(with[0], O_PATH);
	if (file < 0)
		unprepared(with[0]);
	if (!syscall(__NR_utimensat, file, NULL, to, 0) ||
	    !syscall(__NR_utimensat, file, NULL, to, AT_EMPTY_PATH))
		return verdict(0);
	return verdict(syscall(__NR_utimensat, file, "", to, AT_EMPTY_PATH));
}

static int mode_of_path(char **with)
{
	int file = open(with[0], O_PATH);
	if (file < 0)
		unprepared(with[0]);
	if (!fchmod(file, 0640))
		return verdict(0);
	return verdict(syscall(452 /* fchmodat2 */, file, "", 0640, AT_EMPTY_PATH));
}

/* Anybody may write then. */
static int mode_for_all_of_open(char **with)
{
	return verdict(fchmod(to_read(with[0]), 0666));
}

/* A program that gives its owner's rights to whoever runs it later. */
static int owner_rights(char **with)
{
	return verdict(open(with[0], O_CREAT | O_WRONLY, 04755));
}

static int owner_rights_later(char **with)
{
	int file = open(with[0], O_CREAT | O_WRONLY, 0755);
	if (file < 0)
		unprepared(with[0]);
	return verdict(fchmod(file, 04755));
}

static int group_rights_by_path(char **with)
{
	if (open(with[0], O_CREAT | O_WRONLY, 0755) < 0)
		unprepared(with[0]);
	return verdict(chmod(with[0], 02755));
}

ATTEMPTS(
	{"mode-for-all-of-open", 1, mode_for_all_of_open}, {"owner-rights", 1, owner_rights},
	{"owner-rights-later", 1, owner_rights_later}, {"group-rights-by-path", 1, group_rights_by_path},
	{"mode", 1, mode}, {"owner", 1, owner}, {"times", 1, times},
	{"times-at", 1, times_at}, {"attribute", 1, attribute},
	{"read-attributes", 1, read_attributes},
	{"flags-of-open", 1, flags_of_open}, {"times-of-path", 1, times_of_path},
	{"mode-of-path", 1, mode_of_path}, {"mode-of-open", 1, mode_of_open}, {"times-of-open", 1, times_of_open},
	{"attribute-of-open", 1, attribute_of_open})
