/* Reaches the network. */
#include "probe.h"
#include <sys/socket.h>

int main(void)
{
	return verdict(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}
