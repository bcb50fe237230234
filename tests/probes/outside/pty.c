/* Runs a program with a new terminal as its controlling one and its standard
 * error, and says afterwards what was typed into that. */
#include "../probe.h"
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

int main(int argc, char **argv)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	if (argc < 2 || master < 0 || grantpt(master) || unlockpt(master))
		unprepared("posix_openpt");
	int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
	pid_t pid = fork();
	if (terminal < 0 || pid < 0)
		unprepared("fork");
	if (pid == 0) {
		if (setsid() < 0 || ioctl(terminal, TIOCSCTTY, 0) || dup2(terminal, 2) < 0)
			unprepared("TIOCSCTTY");
		execv(argv[1], argv + 1);
		unprepared(argv[1]);
	}
	int status = 0, typed = 0;
	waitpid(pid, &status, 0);
	/* Whole lines count, as a shell would read them. */
	if (ioctl(terminal, FIONREAD, &typed))
		unprepared("FIONREAD");
	printf("typed %d\n", typed);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
