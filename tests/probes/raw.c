/* Writes whole packets. */
#include "probe.h"
#include <sys/socket.h>

int main(void)
{
	return verdict(socket(AF_INET, SOCK_RAW, 255));
}
