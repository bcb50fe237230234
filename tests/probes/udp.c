/* Reaches name servers. */
#include "probe.h"
#include <sys/socket.h>

int main(void)
{
	return verdict(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
}
