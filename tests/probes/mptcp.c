/* TCP of many paths: Landlock's rule for TCP does not know it. */
#include "probe.h"
#include <sys/socket.h>

int main(void)
{
	return verdict(socket(AF_INET, SOCK_STREAM, 262));
}
