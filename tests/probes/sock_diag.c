/* Lists every socket of the machine. */
#include "probe.h"
#include <sys/socket.h>

int main(void)
{
	return verdict(socket(AF_NETLINK, SOCK_RAW, 4));
}
